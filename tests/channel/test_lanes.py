"""Asking for one recipient's replies is asking."""

from bridge.channel import Ask
from bridge.channel.lanes import LaneAsk


def test_it_is_an_ask_with_a_recipient() -> None:
    ask = LaneAsk(7, 2.5, to="main")
    assert isinstance(ask, Ask)
    assert (ask.after, ask.wait_seconds, ask.to) == (7, 2.5, "main")
