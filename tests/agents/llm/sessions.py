"""A session of a running daemon, as a client sees it."""

from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from typing import Any, cast

from bridge.client import Connection, connected, expect
from bridge.paths import Home
from bridge.protocol import ours
from bridge.protocol.events import AssistantCompleted, AssistantDelta, TurnCancelled, TurnFailed
from bridge.protocol.messages import TurnCancel, TurnStart

ENDS = (ours.TurnCompleted, TurnCancelled, TurnFailed)


class Talk:
    """Turns of one session; ``events`` are those of the last one."""

    def __init__(self, connection: Connection, session_id: str) -> None:
        self._connection, self._session_id = connection, session_id
        self._turns = 0
        self.events: list[Any] = []

    async def say(self, prompt: str, stop: Callable[[Any], bool] = lambda _: False) -> Any:
        """A turn up to its last event, which is returned. It is cancelled at an event that ``stop`` names."""
        self._turns += 1
        request = f"turn-{self._turns}"
        await self._connection.send(TurnStart(request_id=request, session_id=self._session_id, prompt=prompt))
        self.events = []
        while not isinstance(event := cast(Any, await self._connection.next()), ENDS):
            self.events.append(event)
            if stop(event):
                cancel = TurnCancel(request_id="stop", session_id=self._session_id, turn_id=event.turn_id)
                await self._connection.send(cancel)
        return event

    @property
    def shown(self) -> str:
        """What was shown of the last turn while it ran."""
        return "".join(event.content for event in self.events if isinstance(event, AssistantDelta))

    @property
    def said(self) -> str:
        return next(event.content for event in reversed(self.events) if isinstance(event, AssistantCompleted))


@asynccontextmanager
async def talking(home: Home, *, no_tools: bool = True) -> AsyncIterator[Talk]:
    """A session with the daemon's default agent."""
    async with connected(home.socket, "test", "1", "hello") as connection:
        start = ours.SessionStart(request_id="session", cwd=str(home.root), no_tools=no_tools)
        await connection.send(start)
        started = expect(await connection.next(), ours.SessionStarted)
        yield Talk(connection, started.session_id)
