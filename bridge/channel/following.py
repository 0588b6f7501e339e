"""An ability apart: turns that can be watched while they run."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol, runtime_checkable

from bridge.channel.contract import Answer, Request


@dataclass(frozen=True, slots=True)
class Follow:
    """A request to follow the turn of ``message_id``: answered once its version is over ``version``."""

    message_id: str
    version: int
    wait_seconds: float


@dataclass(frozen=True, slots=True)
class LiveTurn:
    """How a turn stands. ``text`` is what its current step has said so far, ``tool`` the call that runs.

    ``over``: it has ended, or none of that message is known; the reply is what counts.
    """

    version: int = 0
    text: str = ""
    tool: str = ""
    progress: str = ""
    over: bool = False


@runtime_checkable
class FollowsTurns(Protocol):
    """Lets its users watch a turn while it runs, on ``GET <route>/live``: a preview that may be missed."""

    def follow(self, request: Request) -> Follow | Answer:
        """Verify and parse, purely."""
        ...

    def shown(self, follow: Follow, turn: LiveTurn) -> Answer:
        """The response, purely."""
        ...
