"""Calls of Feishu's interface: the token that they need, and what every answer has in common.

Source: https://open.feishu.cn/document/server-docs/authentication-management/access-token/tenant_access_token_internal
"""

import asyncio
from collections.abc import AsyncIterator, Callable, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from typing import Any
from urllib.parse import quote

from pydantic import SecretStr

from bridge.channel import (
    ChannelError,
    CredentialsError,
    Http,
    HttpAnswer,
    OutcomeUnknownError,
    UnreachableError,
    failure,
)
from bridge.channel.http import Stream, TooLargeError, UploadFile
from channels.feishu import codes
from channels.feishu.wire import text_of

_LIFE_SECONDS = 7200.0  # of a token whose life is not told
_EARLY_SECONDS = 600.0  # both the old and the new one are good that long
_LEAST_SECONDS = 60.0
_LOGIN = "/open-apis/auth/v3/tenant_access_token/internal"
NO_CODE = -1

Now = Callable[[], float]
"""Seconds that never go back."""


@dataclass(frozen=True, slots=True)
class Result:
    """An answer that is final for its request: ``code`` 0 is success, ``NO_CODE`` a status without one."""

    code: int
    reason: str
    body: dict[str, Any] = field(repr=False)
    answer: HttpAnswer = field(repr=False)

    @property
    def data(self) -> dict[str, Any]:
        found = self.body.get("data")
        return found if isinstance(found, dict) else {}

    def checked(self) -> "Result":
        """Itself, for a request that only reads.

        Raises:
            ChannelError: it was refused.
        """
        if self.code:
            raise ChannelError(f"{self.answer.method} {self.answer.host}: {self.reason}")
        return self


class Api:
    """One app's calls. Every one raises as ``judge`` does, or what ``Http`` raises."""

    def __init__(self, http: Http, app_id: str, secret: SecretStr, now: Now) -> None:
        self._http = http
        self._tokens = Tokens(http, app_id, secret, now)

    async def get(self, path: str, query: Mapping[str, str] | None = None) -> Result:
        """Read something; a token that is no longer good is replaced at once, as nothing was changed."""
        for _ in range(2):
            token = await self._tokens.get()
            result = judge(await self._http.get(path, query, headers=_bearer(token)))
            if result.code not in codes.TOKEN:
                return result
            self._tokens.drop(token)
        raise UnreachableError(_STALE)

    async def post(self, path: str, json: object, query: Mapping[str, str] | None = None) -> Result:
        token = await self._tokens.get()
        return self._judged(
            await self._http.request("POST", path, query=query, json=json, headers=_bearer(token)), token
        )

    async def put(self, path: str, json: object) -> Result:
        token = await self._tokens.get()
        return self._judged(await self._http.request("PUT", path, json=json, headers=_bearer(token)), token)

    async def delete(self, path: str) -> Result:
        token = await self._tokens.get()
        return self._judged(await self._http.request("DELETE", path, headers=_bearer(token)), token)

    async def upload(self, path: str, fields: Mapping[str, str], file: UploadFile) -> Result:
        """Put a file on the platform, where nobody sees it: so a lost answer is as good as none."""
        token = await self._tokens.get()
        try:
            answer = await self._http.upload(
                path, fields, file, headers=_bearer(token), timeout_seconds=_UPLOAD_SECONDS
            )
            return self._judged(answer, token)
        except OutcomeUnknownError as error:
            raise UnreachableError(str(error)) from None

    @asynccontextmanager
    async def download(self, path: str, query: Mapping[str, str]) -> AsyncIterator[Stream]:
        """Open something large; a token that is no longer good is replaced at once, as in ``get``.

        Raises:
            TooLargeError: it is over what the platform gives out. ChannelError: it was refused.
        """
        for _ in range(2):
            token = await self._tokens.get()
            async with self._http.stream(path, query, headers=_bearer(token)) as stream:
                if _is_file(stream):
                    yield stream
                    return
                result = judge(await stream.answer(_REFUSAL_BYTES))
            if result.code == codes.TOO_LARGE:
                raise TooLargeError(f"GET {stream.host}: {result.reason}")
            if result.code not in codes.TOKEN:
                raise ChannelError(f"GET {stream.host}: {result.reason or 'no file came'}")
            self._tokens.drop(token)
        raise UnreachableError(_STALE)

    def _judged(self, answer: HttpAnswer, token: str) -> Result:
        result = judge(answer)
        if result.code in codes.TOKEN:
            self._tokens.drop(token)
            raise UnreachableError(_STALE)
        return result


class Tokens:
    """The app's access token, fetched by one caller at a time and kept as long as it is good."""

    def __init__(self, http: Http, app_id: str, secret: SecretStr, now: Now) -> None:
        self._http = http
        self._app_id = app_id
        self._secret = secret
        self._lock = asyncio.Lock()
        self._token = ""
        self._now = now
        self._until = 0.0

    async def get(self) -> str:
        """A good token.

        Raises:
            CredentialsError: the app is refused. UnreachableError: no answer, try again.
        """
        async with self._lock:
            if not self._token or self._now() >= self._until:
                self._token, keep_seconds = await self._fetch()
                self._until = self._now() + keep_seconds
            return self._token

    def drop(self, token: str) -> None:
        """Forget ``token``, which the platform refused; a newer one stays."""
        if self._token == token:
            self._token = ""

    async def _fetch(self) -> tuple[str, float]:
        body = {"app_id": self._app_id, "app_secret": self._secret.get_secret_value()}
        try:
            result = judge(await self._http.post(_LOGIN, body))
        except OutcomeUnknownError as error:  # fetching one twice does no harm
            raise UnreachableError(str(error)) from None
        if result.code in codes.WRONG_SECRET:
            raise CredentialsError(f"the app id and its secret do not belong together (code {result.code})")
        token = text_of(result.body, "tenant_access_token")
        if result.code or not _is_token(token):
            raise UnreachableError(f"{result.answer.host}: no access token: {result.reason or 'none came'}")
        return token, max(life_seconds(result.body.get("expire")) - _EARLY_SECONDS, _LEAST_SECONDS)


def judge(answer: HttpAnswer) -> Result:
    """Read ``code``, which rides on any status.

    Raises:
        UnreachableError: too many requests, or a passing fault. OutcomeUnknownError: maybe accepted.
        CredentialsError: the app is refused.
    """
    body = answer.body if isinstance(answer.body, dict) else {}
    code = body.get("code")
    if isinstance(code, bool) or not isinstance(code, int):
        return _without_code(answer)
    text = codes.reason(code, text_of(body, "msg")) if code else ""
    if code in codes.RATE:
        wait = max(codes.wait_seconds(answer.headers), answer.retry_after_seconds)
        raise UnreachableError(f"{answer.host}: too many requests (code {code})", wait)
    if code in codes.PASSING:
        raise UnreachableError(f"{answer.host}: {text}")
    if code == codes.IN_FLIGHT:
        raise OutcomeUnknownError(f"{answer.host}: the same message is being sent (code {code})")
    if code in codes.ACCOUNT:
        raise CredentialsError(f"{answer.host}: the app is disabled or not installed (code {code})")
    if _is_passing(answer.status) and not codes.is_known(code):
        raise _failed(answer)
    return Result(code, text, body, answer)


def _without_code(answer: HttpAnswer) -> Result:
    if 400 <= answer.status < 500 and not _is_passing(answer.status):
        return Result(NO_CODE, f"refused with status {answer.status}", {}, answer)
    raise _failed(answer)


def _is_passing(status: int) -> bool:
    return status in (408, 425, 429) or status >= 500


def _failed(answer: HttpAnswer) -> ChannelError:
    error = failure(answer)
    wait = codes.wait_seconds(answer.headers)
    if isinstance(error, UnreachableError) and wait > error.retry_after_seconds:
        return UnreachableError(str(error), wait)
    return error


def life_seconds(value: object) -> float:
    """How long a token lives, told as a number or as digits; what makes no sense is two hours."""
    try:
        seconds = float(value) if isinstance(value, int | float | str) else 0.0
    except (ValueError, OverflowError):
        return _LIFE_SECONDS
    return seconds if 0 < seconds <= _LIFE_SECONDS else _LIFE_SECONDS


def segment(value: str) -> str:
    """``value`` as one part of a path, whatever is in it."""
    return quote(value, safe="", errors="replace")


def _is_file(stream: Stream) -> bool:
    """A refusal may come as JSON under status 200; a file that is JSON comes with its name."""
    return stream.status == 200 and (stream.mime != "application/json" or _NAME in stream.headers)


def _is_token(token: str) -> bool:
    return token.isascii() and token.isprintable() and token != "" and " " not in token


def _bearer(token: str) -> dict[str, str]:
    return {"Authorization": f"Bearer {token}"}


_NAME = "Content-Disposition"
_STALE = "the platform's access token is no longer good"
_UPLOAD_SECONDS = 120.0
_REFUSAL_BYTES = 65_536
