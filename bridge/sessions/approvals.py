"""Who says yes to a tool call: the session's policy, or the client, call by call."""

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass, field
from enum import Enum
from typing import Literal

from bridge.agents.contract import Option
from bridge.ids import new_uuid
from bridge.protocol.events import TurnEvent
from bridge.sessions.errors import RequestError
from bridge.tools.contract import Risk

Policy = Literal["on-risk", "always", "never"]

Announce = Callable[[str], Awaitable[Sequence[TurnEvent]]]
"""Tells a question under its id; returns what it told."""

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


@dataclass(frozen=True, slots=True)
class Answer:
    """``option`` is the one that was chosen, None where there is none of that kind."""

    approved: bool
    option: Option | None = None


@dataclass(slots=True)
class _Question:
    answer: asyncio.Future[Answer]
    options: Sequence[Option]
    told: Sequence[TurnEvent] = field(default=())


class Approvals:
    """The questions that wait for the client, each found by the id that was given out."""

    def __init__(self) -> None:
        self._open: dict[str, _Question] = {}

    @property
    def told(self) -> list[TurnEvent]:
        """What was told of the questions that wait."""
        return [event for question in self._open.values() for event in question.told]

    async def ask(self, announce: Announce, seconds: float, options: Sequence[Option] = ()) -> Answer:
        """Announce a new question under its id and wait for the answer. Cancelling withdraws it.

        ``announce`` returns what it told. After ``seconds``, if not 0, it is withdrawn and the answer is no.
        """
        approval_id = new_uuid()
        answer: asyncio.Future[Answer] = asyncio.get_running_loop().create_future()
        self._open[approval_id] = question = _Question(answer, options)
        try:
            question.told = await announce(approval_id)
            await asyncio.wait([answer], timeout=seconds or None)
            return answer.result() if answer.done() else first(options, False)
        finally:
            self._open.pop(approval_id, None)

    def resolve(self, approval_id: str, approved: bool, option: str | None = None) -> None:
        """Answer once.

        Raises:
            RequestError: ``approval_not_found``: unknown, answered or withdrawn; ``invalid_request``: there
                is no such option, and the question stays open.
        """
        question = self._open.get(approval_id)
        if question is None:
            raise RequestError("approval_not_found", "no such question is open: it was answered or withdrawn")
        if option is None:
            answer = first(question.options, approved)
        else:
            answer = Answer(approved, _chosen(question.options, option, approved))
        del self._open[approval_id]
        question.answer.set_result(answer)


def first(options: Sequence[Option], approved: bool) -> Answer:
    """A yes or no alone takes the first option of its kind."""
    return Answer(approved, next((one for one in options if one.allows is approved), None))


def _chosen(options: Sequence[Option], option_id: str, approved: bool) -> Option:
    for one in options:
        if one.option_id == option_id and one.allows is approved:
            return one
    raise RequestError("invalid_request", "the question has no such option for that answer")
