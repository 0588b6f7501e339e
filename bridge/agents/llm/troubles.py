"""What went wrong with a request to a model, in our words: what to do next, and whether to try again.

A provider's own text is never told, as it may quote the request or the key; its code is, if it is one word.
"""

import re
from dataclasses import dataclass

import httpx2
from pydantic_ai.exceptions import (
    ModelAPIError,
    ModelAuthenticationError,
    ModelConnectionError,
    ModelContextWindowExceededError,
    ModelHTTPError,
    ModelNotFoundError,
    ModelQuotaExceededError,
    ModelRateLimitError,
    ModelRequestRejectedError,
    ModelServerError,
    ModelUnavailableError,
)

from bridge.agents.contract import AgentError
from bridge.protocol.ours import SETUP_REQUIRED, SIGN_IN_REQUIRED

_CODE = re.compile(r"[A-Za-z][A-Za-z0-9_.-]{0,63}")
_KINDS: dict[str, type[ModelAPIError]] = {  # codes that the library does not know
    "Arrearage": ModelQuotaExceededError,
    "InvalidApiKey": ModelAuthenticationError,
    "exceed_context_size_error": ModelContextWindowExceededError,
    "invalid_api_key": ModelAuthenticationError,
    "ModelNotFound": ModelNotFoundError,
    "Throttling": ModelRateLimitError,
}
_TOO_SLOW = 408  # so the server says of the request, or of itself
_PASSING = (ModelRateLimitError, ModelUnavailableError, ModelServerError, ModelConnectionError)
_TEXTS: dict[type[ModelAPIError], str] = {
    ModelAuthenticationError: "the provider refused the key{said}: check it, and what it may use",
    ModelQuotaExceededError: "the provider says that the account has no credit left{said}: top it up",
    ModelNotFoundError: "there is no model {model} at {address}{said}: set another, or mend base_url",
    ModelContextWindowExceededError: "the conversation is too long for {model}{said}: compact it or begin a "
    "new one; context_tokens of this table should be what the model takes",
    ModelRateLimitError: "the provider takes no more requests for now{said}: try again later",
    ModelUnavailableError: "the provider cannot serve the model for now{said}: try again later",
    ModelServerError: "the provider failed{said}: try again later",
    ModelConnectionError: "{address} cannot be reached: see whether it runs, and whether base_url is right",
    ModelRequestRejectedError: "the provider refused the request{said}: check model, images, thinking and "
    "the other settings",
}
_CODES: dict[type[ModelAPIError], str] = {
    ModelAuthenticationError: SIGN_IN_REQUIRED,
    ModelContextWindowExceededError: "context_limit",
    ModelQuotaExceededError: SETUP_REQUIRED,
    ModelNotFoundError: SETUP_REQUIRED,
    ModelConnectionError: SETUP_REQUIRED,
    ModelRequestRejectedError: SETUP_REQUIRED,
}
BROKE_OFF = "the answer broke off: try again"
SILENT = "{address} keeps silent for too long: try again, or raise first_byte_seconds and silence_seconds"
NO_ANSWER = "what {address} answers is no model's answer: check base_url"
ENDINGS = {
    "content_filter": "the provider's filter holds back the answer: ask in another way",
    "length": "the model wrote all it may and said nothing: raise max_output_tokens, or lower thinking",
}
"""Why an answer without words ended, by its reason to."""


@dataclass(frozen=True, slots=True)
class Source:
    """Whom a request goes to: the profile, the model, and as much of the address as may be told."""

    profile: str
    model: str
    address: str


@dataclass(frozen=True, slots=True)
class Trouble:
    """``is_passing``: it may work when it is tried again, not before ``after_seconds`` have passed.

    ``is_rejected``: the request itself is not to the provider's liking. ``is_mute``: no answer was in it.
    """

    error: AgentError
    is_passing: bool = False
    after_seconds: float = 0.0
    is_rejected: bool = False
    is_mute: bool = False


def told(source: Source, text: str, said: str = "", code: str = "provider_error") -> AgentError:
    """The error that ends the turn."""
    words = text.format(said=f" ({said})" if said else "", model=source.model, address=source.address)
    return AgentError(code, f"[agents.{source.profile}] {words}")


def broke_off(source: Source) -> Trouble:
    """The connection ended within the answer."""
    return Trouble(told(source, BROKE_OFF), is_passing=True)


def silent(source: Source) -> Trouble:
    return Trouble(told(source, SILENT, code=SETUP_REQUIRED), is_passing=True)


def judge(error: Exception, source: Source, *, began: bool = False) -> Trouble:
    """What ``error``, raised by the library for a request to ``source``, comes to.

    ``began``: the answer had begun, so the endpoint can be reached.
    """
    if isinstance(error, httpx2.HTTPError) or (began and isinstance(error, ModelConnectionError)):
        return broke_off(source)
    if not isinstance(error, ModelAPIError):
        return Trouble(told(source, NO_ANSWER, code=SETUP_REQUIRED), is_passing=True, is_mute=True)
    kind = _kind(error)
    if kind is None:
        return Trouble(told(source, NO_ANSWER, _said(error), SETUP_REQUIRED), is_passing=error.in_stream)
    return Trouble(
        told(source, _TEXTS[kind], _said(error), _CODES.get(kind, "provider_error")),
        is_passing=kind in _PASSING,
        after_seconds=error.retry_after or 0.0,
        is_rejected=kind is ModelRequestRejectedError,
    )


def _kind(error: ModelAPIError) -> type[ModelAPIError] | None:
    """The most telling of the kinds that we have words for."""
    for code in (error.provider_error_code, error.provider_error_type):
        if code and (known := _KINDS.get(code.partition(".")[0])):
            return known
    kind = next((kind for kind in _TEXTS if isinstance(error, kind)), None)
    if kind is None and isinstance(error, ModelHTTPError) and 400 <= error.status_code < 500:
        return ModelUnavailableError if error.status_code == _TOO_SLOW else ModelRequestRejectedError
    return kind


def _said(error: ModelAPIError) -> str:
    """The status and the provider's own code, as far as it is a plain word."""
    status = str(error.status_code) if isinstance(error, ModelHTTPError) and not error.in_stream else ""
    code = error.provider_error_code or error.provider_error_type or ""
    return " ".join(filter(None, [status, code if _CODE.fullmatch(code) else ""]))
