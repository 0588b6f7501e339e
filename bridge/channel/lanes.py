"""Asking for the replies of one recipient: an account's conversations may each have an asker of its own."""

from dataclasses import dataclass

from bridge.channel.contract import Ask


@dataclass(frozen=True, slots=True)
class LaneAsk(Ask):
    """An ``Ask`` for the parts to ``to`` alone: what waits for others is neither shown nor settled."""

    to: str
