"""Who says yes to the calls of one turn: what its session was granted, and its owner where each is asked."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from contextlib import suppress
from dataclasses import dataclass
from typing import Any, Protocol

from bridge.errors import SessionError
from bridge.protocol import ours
from bridge.protocol.events import ToolCompleted, ToolProposed
from bridge.protocol.helpers import CHAT_ATTACH

READ_ONLY = "read_only"


@dataclass(frozen=True, slots=True)
class Call:
    """A call that waits for approval. ``folder`` is where it would run; ``arguments`` are any JSON.

    ``options`` are its answers, where there are other ones than yes and no.
    """

    approval_id: str
    name: str
    arguments: Any
    summary: str
    folder: str
    options: tuple[ours.ApprovalOption, ...] = ()


@dataclass(frozen=True, slots=True)
class Answer:
    """``option`` is the id of the one that was chosen, "" for a plain yes or no."""

    approved: bool
    option: str = ""


class Asks(Protocol):
    """Puts calls to the owner."""

    async def ask(self, call: Call) -> Answer:
        """The owner's answer, a no when none came in time; the same when asked again, until ``withdraw``.

        Cancelled, the question stays open.
        """
        ...

    def withdraw(self, approval_id: str) -> None:
        """The answer has been passed on, or nobody waits for it any more."""
        ...


Resolve = Callable[[str, Answer], Awaitable[None]]
"""Answers the session server; raises SessionError."""


class Judge:
    """Of one turn, by its events. ``tools``: the session was granted tools. ``asks`` None: no call is asked.

    What is asked waits in ``tasks``, so that events are read on meanwhile.
    """

    def __init__(
        self, request_id: str, tools: bool, asks: Asks | None, resolve: Resolve, tasks: asyncio.TaskGroup
    ) -> None:
        self._request_id, self._tools, self._asks, self._resolve = request_id, tools, asks, resolve
        self._tasks = tasks
        self._proposed: dict[str, Any] = {}
        self._open: dict[str, tuple[str, asyncio.Task[None]]] = {}

    async def see(self, event: ours.ServerEvent) -> None:
        """Take in an event of the session.

        Raises:
            SessionError: the session broke.
        """
        match event:
            case ToolProposed(call_id=call_id, arguments=arguments) if event.request_id == self._request_id:
                self._proposed[call_id] = arguments
            case ours.ApprovalRequested():
                await self._judge(event)
            case ToolCompleted(call_id=call_id):
                self._proposed.pop(call_id, None)
                self._withdraw(call_id)

    def over(self) -> None:
        """The turn has ended: no answer counts any more."""
        for call_id in list(self._open):
            self._withdraw(call_id)

    def stop(self) -> None:
        """Wait for no answer any more; the questions stay open, for whoever takes the turn up again."""
        for _, task in self._open.values():
            task.cancel()

    async def _judge(self, event: ours.ApprovalRequested) -> None:
        """Without tools nothing is allowed; of turns that nobody here asked for, nothing that is asked."""
        asks = self._asks
        if not self._tools or asks is None or _is_harmless(event):
            await self._resolve(event.approval_id, Answer(self._tools))
        elif event.request_id != self._request_id:
            await self._resolve(event.approval_id, Answer(False))
        else:
            task = self._tasks.create_task(self._ask(asks, event), name="approval")
            self._open[event.call_id] = (event.approval_id, task)

    async def _ask(self, asks: Asks, event: ours.ApprovalRequested) -> None:
        arguments = self._proposed.get(event.call_id)
        call = Call(event.approval_id, event.name, arguments, event.summary, event.cwd, event.options)
        answer = await asks.ask(call)
        with suppress(SessionError):  # whoever reads the events notices, too, and may take the turn up again
            await self._resolve(event.approval_id, answer)
            asks.withdraw(event.approval_id)

    def _withdraw(self, call_id: str) -> None:
        approval_id, task = self._open.pop(call_id, ("", None))
        if task is not None and self._asks is not None:
            task.cancel()
            self._asks.withdraw(approval_id)


def _is_harmless(event: ours.ApprovalRequested) -> bool:
    """What changes nothing, and what goes to the owner's own chat and nowhere else."""
    return event.risk == READ_ONLY or event.name == CHAT_ATTACH
