"""Server-sent events: the same ones however the bytes arrive, and none over its limit."""

import itertools

import pytest
from hypothesis import given
from hypothesis import strategies as st

from bridge.agents.contract import AgentError
from bridge.agents.llm.sse import EVENT_BYTES, Event, EventDecoder, event

STREAM = (
    'event: a\ndata: {"x": 1}\n\n: a comment\n\ndata: one\ndata: two\nid: 7\n\n'
    "data:é\n\nevent: only a name\n\ndata\n\nretry: 5\ndata: [DONE]\n\n"
)
EVENTS = [Event("a", '{"x": 1}'), Event("", "one\ntwo"), Event("", "é"), Event("", ""), Event("", "[DONE]")]


def decoded(*pieces: bytes) -> list[Event]:
    decoder = EventDecoder()
    return [one for piece in pieces for one in decoder.feed(piece)] + decoder.rest()


@pytest.mark.parametrize("end", ["\n", "\r\n", "\r"])
@given(cuts=st.lists(st.integers(0, 200), max_size=6))
def test_events_do_not_depend_on_how_the_bytes_arrive(end: str, cuts: list[int]) -> None:
    whole = STREAM.replace("\n", end).encode()
    places = [0, *sorted(cuts), len(whole)]
    assert decoded(*(whole[a:b] for a, b in itertools.pairwise(places))) == EVENTS


def test_byte_by_byte_is_the_same() -> None:
    whole = STREAM.replace("\n", "\r\n").encode()
    assert decoded(*(whole[at : at + 1] for at in range(len(whole)))) == EVENTS


def test_what_is_not_ended_is_an_event_all_the_same() -> None:
    assert decoded(b"data: a") == [Event("", "a")]
    assert decoded(b"data: a\n") == [Event("", "a")]
    assert decoded(b"event: a\n") == []
    assert decoded() == []


def test_bytes_that_are_no_text_are_replaced() -> None:
    assert decoded(b'data: "\xff"\n\n') == [Event("", '"\ufffd"')]


def test_a_value_is_json_or_none() -> None:
    assert Event("", '{"x": 1}').value == {"x": 1}
    for odd in ("{", "[" * 100_000, "9" * 5000, ""):
        assert Event("", odd).value is None


@given(st.text(alphabet="abc\n{}: ").map(lambda text: Event("n", text)))
def test_an_event_comes_out_as_it_went_in(one: Event) -> None:
    assert decoded(one.encode()) == [one]


def test_a_value_is_made_an_event() -> None:
    assert event("n", {"x": "é"}).value == {"x": "é"}
    assert event("", [1]).encode() == b"data: [1]\n\n"


@pytest.mark.parametrize("piece", [b"x" * 65_536, b"data: " + b"x" * 1000 + b"\n"])
def test_an_event_over_its_limit_is_refused(piece: bytes) -> None:
    count = EVENT_BYTES // len(piece)
    decoded(*[piece] * (count - 1), b"\n\n", *[piece] * (count - 1))
    with pytest.raises(AgentError, match=f"over {EVENT_BYTES} bytes") as caught:
        decoded(*[piece] * (count + 2))
    assert caught.value.code == "response_limit"
