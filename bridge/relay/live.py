"""The turns that run now, as whoever follows one sees them: in memory, a preview, never a record."""

from __future__ import annotations

import asyncio
from contextlib import suppress
from dataclasses import dataclass, field, replace
from typing import Protocol

from bridge.channel import Answer, FollowsTurns, LiveTurn, Request
from bridge.protocol import ours
from bridge.protocol.events import (
    AssistantCompleted,
    AssistantDelta,
    ToolCompleted,
    ToolProgress,
    ToolStarted,
)

TEXT_CHARACTERS = 65_536  # of a step; what came before is not shown
OVER = LiveTurn(over=True)


@dataclass(slots=True)
class _Followed:
    turn: LiveTurn = field(default_factory=LiveTurn)
    step_over: bool = False
    changed: asyncio.Event = field(default_factory=asyncio.Event)


class Sees(Protocol):
    """Who is shown what happens in turns."""

    def see(self, message_id: str, event: ours.ServerEvent) -> None:
        """Take in an event of the message's turn."""
        ...


class Live:
    """Turns by the id of their message. ``begin`` and ``end`` frame what ``see`` is told of each."""

    def __init__(self) -> None:
        self._turns: dict[str, _Followed] = {}

    def begin(self, message_id: str) -> None:
        """A message is worked on, or waits to be."""
        self._turns.setdefault(message_id, _Followed())

    def end(self, message_id: str) -> None:
        """It is over: those who follow it are told."""
        followed = self._turns.pop(message_id, None)
        if followed is not None:
            followed.changed.set()

    def close(self) -> None:
        """The run ends: nobody waits any more, and what goes on with the turns is another run's to tell."""
        for followed in self._turns.values():
            followed.changed.set()

    def see(self, message_id: str, event: ours.ServerEvent) -> None:
        """Take in an event of the message's turn."""
        followed = self._turns.get(message_id)
        if followed is None:
            return
        now = followed.turn
        match event:
            case AssistantDelta(content=content):
                text = content if followed.step_over else now.text + content
                now, followed.step_over = replace(now, text=text[-TEXT_CHARACTERS:]), False
            case AssistantCompleted(content=content):
                now, followed.step_over = replace(now, text=content[-TEXT_CHARACTERS:]), True
            case ToolStarted(name=name):
                now = replace(now, tool=name, progress="")
            case ToolProgress(text=text):
                now = replace(now, progress=text)
            case ToolCompleted():
                now = replace(now, tool="", progress="")
            case _:
                return
        followed.turn = replace(now, version=now.version + 1)
        followed.changed.set()
        followed.changed = asyncio.Event()

    async def answer(self, channel: FollowsTurns, request: Request) -> Answer:
        """Tell how a turn stands, at once or when it has changed within the wait asked for.

        Whoever asks with a higher version than there is has it from a run before, which counted for itself.
        """
        follow = channel.follow(request)
        if isinstance(follow, Answer):
            return follow
        followed = self._turns.get(follow.message_id)
        if followed is not None and followed.turn.version == follow.version and follow.wait_seconds > 0:
            with suppress(TimeoutError):
                async with asyncio.timeout(follow.wait_seconds):
                    await followed.changed.wait()
        followed = self._turns.get(follow.message_id)
        return channel.shown(follow, followed.turn if followed is not None else OVER)
