"""Calls of WeChat's interface, each with the access token that it needs.

The token is part of the address, as the platform wants it; no error of ours holds an address.
"""

from collections.abc import AsyncIterator, Awaitable, Callable, Mapping
from contextlib import asynccontextmanager
from datetime import datetime
from typing import Final
from urllib.parse import urlencode

from pydantic import SecretStr
from yarl import URL

from bridge.channel import ChannelError, Http, HttpAnswer, OutcomeUnknownError, UnreachableError
from bridge.channel.http import Stream, UploadFile
from channels.wechat_mp import codes
from channels.wechat_mp.answers import Result, judge
from channels.wechat_mp.tokens import Tokens

_UPLOAD_SECONDS = 120.0
_REFUSAL_BYTES = 65_536
_DATA: Final = frozenset({"application/json", "text/plain", "text/json", ""})
_NAME = "Content-Disposition"
_HOSTS = (".qq.com", ".qpic.cn")  # where WeChat keeps what followers send
_STALE = "the platform does not take its own access token"


class Api:
    """One account's calls. Every one raises as ``judge`` does, or what ``Http`` raises."""

    def __init__(self, http: Http, base: str, app_id: str, secret: SecretStr) -> None:
        self._http = http.at(base)
        self._base = URL(base)
        self._tokens = Tokens(self._http, app_id, secret)

    def now(self) -> datetime:
        return self._http.clock.now()

    async def get(self, path: str) -> tuple[Result, datetime | None]:
        """Read something; also the platform's clock."""
        answers: list[HttpAnswer] = []

        async def call(token: str) -> HttpAnswer:
            answers.append(await self._http.get(path, {"access_token": token}))
            return answers[-1]

        return await self._with_token(call), answers[-1].date

    async def post(self, path: str, json: object) -> Result:
        """Do something; letters go as they are, since the platform shows escapes of them."""

        async def call(token: str) -> HttpAnswer:
            return await self._http.request("POST", path, query={"access_token": token}, json=json)

        return await self._with_token(call)

    async def upload(self, kind: str, file: UploadFile) -> Result:
        """Put a file on the platform, where nobody sees it: so a lost answer is as good as none."""

        async def call(token: str) -> HttpAnswer:
            query = urlencode({"access_token": token, "type": kind})
            path = f"/cgi-bin/media/upload?{query}"
            return await self._http.upload(path, {}, file, timeout_seconds=_UPLOAD_SECONDS)

        try:
            return await self._with_token(call)
        except OutcomeUnknownError as error:
            raise UnreachableError(str(error)) from None

    @asynccontextmanager
    async def download(self, path: str, query: Mapping[str, str]) -> AsyncIterator[Stream | Result]:
        """Open a file; what is no file is a result, under status 200 too."""
        token = await self._tokens.get()
        for last in (False, True):
            async with self._http.stream(path, {**query, "access_token": token}) as stream:
                if stream.status == 200 and (stream.mime not in _DATA or _NAME in stream.headers):
                    yield stream
                    return
                result = judge(await stream.answer(_REFUSAL_BYTES), self.now())
            if result.code not in codes.TOKEN:
                yield result
                return
            if not last:
                token = await self._tokens.other_than(token)
        raise UnreachableError(_STALE)

    @asynccontextmanager
    async def public(self, address: str) -> AsyncIterator[Stream]:
        """Open a file at an address of WeChat's that an answer or a message gave, without the token.

        Raises:
            ChannelError: it is none of WeChat's, or gives no file. The guard may refuse it, too.
        """
        async with self._http.stream(self._safe(address)) as stream:
            if stream.status != 200:
                raise ChannelError(f"GET {stream.host}: status {stream.status}")
            yield stream

    def _safe(self, address: str) -> str:
        """``address`` of a host of WeChat's, by TLS; that of the configured base as it is."""
        try:
            url = URL(address, encoded=address.isascii())
            if url.origin() == self._base.origin():
                return str(url)
            if url.scheme not in ("http", "https") or not (url.raw_host or "").endswith(_HOSTS):
                raise ValueError("not WeChat's")
        except ValueError:
            raise ChannelError("a file's address is none of WeChat's") from None
        return str(url.with_scheme("https").with_port(None) if url.scheme == "http" else url)

    async def _with_token(self, call: Callable[[str], Awaitable[HttpAnswer]]) -> Result:
        """``call`` with a good token; once more where that one was refused, as nothing was done then."""
        token = await self._tokens.get()
        result = judge(await call(token), self.now())
        if result.code not in codes.TOKEN:
            return result
        result = judge(await call(await self._tokens.other_than(token)), self.now())
        if result.code in codes.TOKEN:
            raise UnreachableError(_STALE, codes.TOKEN_SECONDS)
        return result
