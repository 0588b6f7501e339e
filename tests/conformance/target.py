"""The server under test, as the rules see it. Nothing here knows how it is made."""

from __future__ import annotations

import abc
import asyncio
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from tests.conformance.client import Client
    from tests.conformance.rules import Need

SETTLE_SECONDS = 0.25


class Target(abc.ABC):
    """``abilities`` says what can be asked of it; a rule that needs more is not shown.

    ``workspace`` is a folder, resolved, that sessions may use. ``home`` is the server's (Need.HOME), ``user``
    that of the user as whom it runs. An answer may take ``patience_seconds``; the server waits
    ``reply_seconds`` for a client that does not read, and stops within ``stop_seconds``.
    """

    abilities: frozenset[Need]
    workspace: Path
    patience_seconds: float = 10.0
    reply_seconds: float = 3.0
    stop_seconds: float = 10.0
    home: Path
    user: Path

    @abc.abstractmethod
    async def connect(self) -> Client:
        """A connection on which nothing was said yet."""

    @abc.abstractmethod
    async def close(self) -> None:
        """End the connections that were made."""

    async def client(self) -> Client:
        """A connection that is initialized."""
        client = await self.connect()
        await client.initialize()
        return client

    async def session(self, **fields: Any) -> Client:
        """A connection with a session."""
        client = await self.client()
        await client.start(**fields)
        return client

    async def settle(self) -> None:
        """Let the server do what it would do now without being asked."""
        await asyncio.sleep(SETTLE_SECONDS)

    async def pass_time(self, seconds: float) -> None:
        """Let ``seconds`` pass for the server."""
        await asyncio.sleep(seconds)

    @asynccontextmanager
    async def passing(self, step_seconds: float = 0.1) -> AsyncIterator[None]:
        """Time passes meanwhile, step by step."""

        async def pass_on() -> None:
            while True:
                await self.pass_time(step_seconds)

        async with asyncio.TaskGroup() as tasks:
            passing = tasks.create_task(pass_on())
            try:
                yield
            finally:
                passing.cancel()

    def now(self) -> float:
        """Seconds on the clock that ``pass_time`` moves."""
        return asyncio.get_running_loop().time()

    # --- for those that can be started and stopped (Need.STARTS) and show their files (Need.FILES) ----------

    @property
    def socket(self) -> Path:
        raise NotImplementedError

    async def exit_code(self, client: Client) -> int:
        """That of the process behind ``client``, whose end is waited for (Need.STDIO)."""
        raise NotImplementedError

    async def stop(self) -> None:
        """Stop the server as its operator would, and wait for its end."""
        raise NotImplementedError

    async def kill(self) -> None:
        """Let the server die on the spot."""
        raise NotImplementedError

    async def start(self) -> None:
        """Start a server that was stopped or killed."""
        raise NotImplementedError

    async def starts(self, prepare: Callable[[Path], None] | None = None) -> bool:
        """Whether one more server starts: beside this one, or in the place that ``prepare`` made for its
        socket."""
        raise NotImplementedError
