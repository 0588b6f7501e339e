"""A session whose client has gone while a turn of it waits for an approval: kept for whoever attaches."""

import asyncio
from dataclasses import dataclass, field
from pathlib import Path

from bridge.clock import Clock
from bridge.sessions.session import Session


@dataclass(slots=True)
class Kept:
    """``turns`` runs the turn, in the task of the connection that had it, and ends with it."""

    session: Session
    turns: asyncio.Task[None]
    taken: asyncio.Event = field(default_factory=asyncio.Event)

    def fits(self, cwd: Path | None) -> bool:
        """Whether it is the session of that workspace."""
        return cwd == self.session.context.cwd

    async def is_taken(self, seconds: float, clock: Clock) -> bool:
        """Whether another connection takes it within ``seconds``, before its turn ends."""
        async with asyncio.TaskGroup() as waits:
            others = [waits.create_task(self.taken.wait()), waits.create_task(clock.sleep(seconds))]
            await asyncio.wait([self.turns, *others], return_when=asyncio.FIRST_COMPLETED)
            for one in others:
                one.cancel()
        return self.taken.is_set()
