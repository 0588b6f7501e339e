"""A profile's endpoint: the connections to it, opened with the first request and shared by all."""

import asyncio
import math
import ssl
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import httpx2
from pydantic_ai.models import Model

from bridge.agents.llm.models import make_model, secret_headers, silence_libraries
from bridge.agents.llm.settings import LlmSettings
from bridge.agents.llm.troubles import Source
from bridge.agents.llm.wire import Watch, Wire
from bridge.clock import Clock

_LIMITS = httpx2.Limits(max_connections=100, max_keepalive_connections=20, keepalive_expiry=30.0)


class Endpoint:
    """``profile`` is the name of the table whose ``settings`` these are."""

    def __init__(self, profile: str, settings: LlmSettings, key: str, clock: Clock) -> None:
        silence_libraries()
        self.profile, self.settings, self.has_key = profile, settings, bool(key)
        self._clock = clock
        self._secrets = secret_headers(settings, key)
        self._pool: httpx2.AsyncHTTPTransport | None = None
        self._opening = asyncio.Lock()

    def source(self, model: str) -> Source:
        return Source(self.profile, model, self.settings.told_address)

    def watch(self, seconds: float = math.inf) -> Watch:
        """For one request, beginning now, which may be silent for no longer than ``seconds`` either."""
        first, silence = self.settings.first_byte_seconds, self.settings.silence_seconds
        return Watch(self._clock, min(first, seconds), min(silence, seconds))

    async def model(self, name: str, watch: Watch, *, streams: bool = True) -> Model[Any]:
        """The model ``name``, for the one request that ``watch`` sees to."""
        return make_model(self.settings, name, await self._open(), self._secrets, watch, streams=streams)

    @asynccontextmanager
    async def client(self, watch: Watch) -> AsyncIterator[httpx2.AsyncClient]:
        """For a plain request to the endpoint."""
        wire = Wire(await self._open(), self._secrets, watch)
        timeout = httpx2.Timeout(None, connect=self.settings.connect_seconds)
        async with httpx2.AsyncClient(transport=wire, trust_env=False, timeout=timeout) as client:
            yield client

    async def close(self) -> None:
        """Let go of all connections; a later request opens them anew."""
        pool, self._pool = self._pool, None
        if pool is not None:
            await pool.aclose()

    async def _open(self) -> httpx2.AsyncHTTPTransport:
        async with self._opening:
            if self._pool is None:
                self._pool = httpx2.AsyncHTTPTransport(
                    verify=await self._trusted(),
                    trust_env=False,
                    limits=_LIMITS,
                    proxy=self.settings.proxy or None,
                )
            return self._pool

    async def _trusted(self) -> ssl.SSLContext:
        """Whom the system trusts; nobody where nothing is encrypted, as hundreds of files are read for it."""
        if any(one.startswith("https:") for one in (self.settings.address, self.settings.proxy)):
            return await asyncio.to_thread(ssl.create_default_context)
        return ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
