"""What is answered at once, ahead of the queue: commands, answers to questions, a code that makes an owner.

None of it becomes a turn, and none of it waits for one. Whoever answers decides by what the bridge knows in
memory, when the message is claimed; the answer is stored with the claim, and only then is anything done.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from bridge.channel import Inbound
from bridge.store.contract import Effect


def _nothing() -> None:
    """For answers that tell and do nothing."""


@dataclass(frozen=True, slots=True)
class Said:
    """The answer's text, and what is done once the message is durable.

    ``act`` never fails and waits for nothing; a repeat of the message does not come that far. ``effect`` is
    what is durable together with it.
    """

    text: str
    act: Callable[[], None] = _nothing
    effect: Effect = Effect.NONE


Answerer = Callable[[Inbound], Said | None]
"""The answer to a message, None where it is not its to answer. Reads memory alone, and changes nothing."""


@dataclass(frozen=True, slots=True)
class Ahead:
    """The answerers of an account, asked in order: of everybody's messages, and of those that it answers."""

    for_anybody: Sequence[Answerer] = ()
    for_answered: Sequence[Answerer] = ()


NOBODY = Ahead()


def first(answerers: Sequence[Answerer], message: Inbound) -> Said | None:
    """What the first of them says that answers it."""
    for answer in answerers:
        if (said := answer(message)) is not None:
            return said
    return None
