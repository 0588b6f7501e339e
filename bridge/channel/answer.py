"""What a platform answered over HTTP, and which of our errors that is. Pure."""

import json
import math
from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime
from email.utils import parsedate_to_datetime
from http import HTTPStatus
from typing import Any, Final

from bridge.errors import ChannelError, CredentialsError, OutcomeUnknownError, UnreachableError

MAX_RETRY_AFTER_SECONDS: Final = 86_400.0
SAFE_METHODS: Final = frozenset({"GET", "HEAD", "OPTIONS"})  # asking twice changes nothing
_NOT_ACCEPTED = frozenset({408, 425, 429, 503})


@dataclass(frozen=True, slots=True)
class HttpAnswer:
    """A whole answer. ``headers`` ignores case; ``body`` is the parsed JSON, or ``None`` when it is none."""

    status: int
    headers: Mapping[str, str]
    body: Any = field(repr=False)
    raw: bytes = field(repr=False)
    method: str
    host: str
    received: datetime

    @property
    def date(self) -> datetime | None:
        """The platform's clock when it answered, from the ``Date`` header, in UTC."""
        return http_date(self.headers.get("Date", ""))

    @property
    def retry_after_seconds(self) -> float:
        """The wait that the platform asked for, 0 to 24 hours; 0 when it asked for none."""
        return retry_after(self.headers.get("Retry-After", ""), self.date or self.received)

    def fields(self) -> dict[str, Any]:
        """The body, which must be a JSON object.

        Raises:
            OutcomeUnknownError: it is not, and the request may have had an effect.
            UnreachableError: it is not, and the request only read.
        """
        if isinstance(self.body, dict):
            return self.body
        raise lost(self.method, self.host, "the answer is not a JSON object")


def parse_json(raw: bytes) -> Any:
    """The JSON value in ``raw``, or ``None``: never raises."""
    try:
        return json.loads(raw)
    except (ValueError, RecursionError):
        return None


def failure(answer: HttpAnswer) -> ChannelError:
    """The error that ``answer`` is, where a channel knows no better from the platform's own codes.

    A success that is passed in counts as unreadable.
    """
    text = f"{answer.method} {answer.host}: status {answer.status}{_phrase(answer.status)}"
    if answer.status in (401, 403):
        return CredentialsError(text)
    if answer.status in _NOT_ACCEPTED:
        return UnreachableError(text, answer.retry_after_seconds)
    if answer.status < 300:
        return lost(answer.method, answer.host, "the answer cannot be read")
    if answer.status >= 500 and answer.method not in SAFE_METHODS:
        return OutcomeUnknownError(text)
    if answer.status >= 500:
        return UnreachableError(text, answer.retry_after_seconds)
    return ChannelError(text)


def lost(method: str, host: str, reason: str) -> ChannelError:
    """The error for a request that was sent and has no usable answer. ``reason`` holds nothing remote."""
    text = f"{method} {host}: {reason}"
    return UnreachableError(text) if method in SAFE_METHODS else OutcomeUnknownError(text)


def retry_after(value: str, now: datetime) -> float:
    """Seconds to wait by a ``Retry-After`` header, which holds seconds or a date; 0 when it is neither."""
    try:
        seconds = float(value)
    except ValueError:
        until = http_date(value)
        seconds = 0.0 if until is None else (until - now).total_seconds()
    return 0.0 if math.isnan(seconds) else min(max(seconds, 0.0), MAX_RETRY_AFTER_SECONDS)


def http_date(value: str) -> datetime | None:
    try:
        date = parsedate_to_datetime(value)
        return date.replace(tzinfo=UTC) if date.tzinfo is None else date.astimezone(UTC)
    except (ValueError, TypeError, IndexError, OverflowError):
        return None


def _phrase(status: int) -> str:
    try:
        return f" {HTTPStatus(status).phrase}"
    except ValueError:
        return ""
