"""Who says yes to a tool call: the session's policy, or the client, call by call."""

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass, field
from enum import Enum
from typing import Literal

from bridge.ids import new_uuid
from bridge.protocol.events import TurnEvent
from bridge.sessions.errors import RequestError
from bridge.tools.contract import Risk

Policy = Literal["on-risk", "always", "never"]

DENIED = "The call was denied. Do not try it again unless the user asks for it."


class Decision(Enum):
    ALLOW = "allow"
    ASK = "ask"
    DENY = "deny"


def decide(policy: Policy, risk: Risk) -> Decision:
    """What ``policy`` says to a call of ``risk``."""
    if policy == "always":
        return Decision.ASK
    if risk is Risk.READ_ONLY:
        return Decision.ALLOW
    return Decision.ASK if policy == "on-risk" else Decision.DENY


@dataclass(slots=True)
class _Question:
    answer: asyncio.Future[bool]
    told: Sequence[TurnEvent] = field(default=())


class Approvals:
    """The questions that wait for the client, each found by the id that was given out."""

    def __init__(self) -> None:
        self._open: dict[str, _Question] = {}

    @property
    def told(self) -> list[TurnEvent]:
        """What was told of the questions that wait."""
        return [event for question in self._open.values() for event in question.told]

    async def ask(self, announce: Callable[[str], Awaitable[Sequence[TurnEvent]]], seconds: float) -> bool:
        """Announce a new question under its id and wait for the answer. Cancelling withdraws it.

        ``announce`` returns what it told. After ``seconds``, if not 0, it is withdrawn and the answer is no.
        """
        approval_id = new_uuid()
        answer: asyncio.Future[bool] = asyncio.get_running_loop().create_future()
        self._open[approval_id] = question = _Question(answer)
        try:
            question.told = await announce(approval_id)
            await asyncio.wait([answer], timeout=seconds or None)
            return answer.done() and answer.result()
        finally:
            self._open.pop(approval_id, None)

    def resolve(self, approval_id: str, approved: bool) -> None:
        """Answer once.

        Raises:
            RequestError: ``approval_not_found``: unknown, answered or withdrawn.
        """
        question = self._open.pop(approval_id, None)
        if question is None:
            raise RequestError("approval_not_found", "no such question is open: it was answered or withdrawn")
        question.answer.set_result(approved)
