"""What went wrong, in our words: what to do, whether to try again, and never the provider's text."""

from typing import Any

import httpx2
import pytest
from pydantic_ai.exceptions import (
    ModelAPIError,
    ModelAuthenticationError,
    ModelConnectionError,
    ModelHTTPError,
    ModelNotFoundError,
    ModelOverloadedError,
    ModelQuotaExceededError,
    ModelRateLimitError,
    ModelRequestRejectedError,
    ModelServerError,
    UnexpectedModelBehavior,
)

from bridge.agents.llm.troubles import Source, broke_off, judge, silent

FOR_NOW = ("for now", "more requests", "provider failed", "broke off")
SOURCE = Source("fast", "small", "https://api.example.org")
BODY = {"message": "Incorrect API key provided: sk-secret, for prompt 'my diary'"}


def http(kind: Any, status: int, **more: Any) -> ModelHTTPError:
    return ModelHTTPError.for_category(kind, status_code=status, model_name="small", body=BODY, **more)


@pytest.mark.parametrize(
    ("error", "text", "is_passing"),
    [
        (
            http(ModelAuthenticationError, 401, provider_error_code="invalid_api_key"),
            "refused the key (401 inv",
            False,
        ),
        (http(ModelQuotaExceededError, 402), "no credit left (402): top it up", False),
        (http(ModelRateLimitError, 429), "takes no more requests for now (429)", True),
        (http(ModelOverloadedError, 529), "cannot serve the model for now (529)", True),
        (http(ModelServerError, 502), "the provider failed (502)", True),
        (http(ModelRequestRejectedError, 400), "refused the request (400): check model", False),
        (http(None, 413), "refused the request (413): check model", False),
        (http(None, 408), "cannot serve the model for now (408)", True),
        (ModelAPIError("small", "sk-secret"), "is no model's answer", False),
        (http(None, 400, provider_error_code="Arrearage"), "no credit left (400 Arrearage)", False),
        (http(None, 400, provider_error_code="Throttling.RateQuota"), "takes no more requests", True),
        (ModelConnectionError("small", "sk-secret"), "https://api.example.org cannot be reached: see", True),
        (ModelAPIError("small", "sk-secret", in_stream=True), "is no model's answer", True),
        (UnexpectedModelBehavior("sk-secret"), "is no model's answer: check base_url", True),
        (httpx2.ReadError("sk-secret"), "the answer broke off", True),
        (AttributeError("sk-secret"), "is no model's answer", True),
    ],
)
def test_each_trouble_says_what_to_do_next(error: Exception, text: str, is_passing: bool) -> None:
    found = judge(error, SOURCE)
    assert str(found.error).startswith("[agents.fast] ")
    assert text in str(found.error)
    assert str(found.error)[-1].isalpha()  # as it is told within a sentence
    assert found.is_passing is is_passing
    is_key, is_for_now = isinstance(error, ModelAuthenticationError), any(one in text for one in FOR_NOW)
    lasting = "sign_in_required" if is_key else "setup_required"
    assert found.error.code == ("provider_error" if is_for_now else lasting)
    for private in ("sk-secret", "diary", "Incorrect"):
        assert private not in str(found.error)


def test_a_model_that_is_not_there_is_named_with_its_address() -> None:
    said = str(judge(http(ModelNotFoundError, 404), SOURCE).error)
    assert "there is no model small at https://api.example.org (404)" in said


def test_too_long_a_conversation_has_a_code_of_its_own() -> None:
    found = judge(http(None, 400, provider_error_type="exceed_context_size_error"), SOURCE)
    assert (found.error.code, found.is_passing) == ("context_limit", False)
    assert "compact it" in str(found.error)


def test_the_provider_s_wish_for_a_wait_is_kept() -> None:
    assert judge(http(ModelRateLimitError, 429, retry_after=7.0), SOURCE).after_seconds == 7.0
    assert judge(http(ModelRateLimitError, 429), SOURCE).after_seconds == 0.0


def test_a_code_that_is_no_plain_word_is_not_told() -> None:
    error = http(ModelRequestRejectedError, 400, provider_error_code="the key sk-secret is bad")
    assert "(400)" in str(judge(error, SOURCE).error)


def test_an_endpoint_that_had_begun_can_be_reached() -> None:
    lost = judge(ModelConnectionError("small", "x"), SOURCE, began=True)
    assert "broke off" in str(lost.error)
    assert lost.is_passing


def test_only_a_request_that_was_refused_is_rejected() -> None:
    assert judge(http(ModelRequestRejectedError, 400), SOURCE).is_rejected
    assert not judge(http(ModelAuthenticationError, 401), SOURCE).is_rejected
    assert not judge(http(ModelServerError, 500), SOURCE).is_rejected


def test_what_broke_off_and_who_keeps_silent_may_do_better_next_time() -> None:
    assert broke_off(SOURCE).is_passing
    assert silent(SOURCE).is_passing
    assert "first_byte_seconds" in str(silent(SOURCE).error)
