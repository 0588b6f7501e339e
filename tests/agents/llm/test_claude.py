"""An answer of Anthropic's messages, mended: its words stay, whatever stands around them."""

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from bridge.agents.llm.claude import ClaudeMender
from bridge.agents.llm.sse import Event, event
from tests.agents.llm.test_oddities import ANY_JSON, near

START: dict[str, Any] = {
    "type": "message_start",
    "message": {"id": "m", "model": "c", "usage": {"input_tokens": 3}},
}
TEXT: dict[str, Any] = {
    "type": "content_block_start",
    "index": 0,
    "content_block": {"type": "text", "text": ""},
}
SAID = {"type": "content_block_delta", "index": 0, "delta": {"type": "text_delta", "text": "a"}}
STOP = {"type": "content_block_stop", "index": 0}
END: dict[str, Any] = {
    "type": "message_delta",
    "delta": {"stop_reason": "end_turn"},
    "usage": {"output_tokens": 2},
}
LAST = {"type": "message_stop"}
WHOLE: list[dict[str, Any]] = [START, TEXT, SAID, STOP, END, LAST]


def mended(*values: Any) -> tuple[ClaudeMender, list[Any]]:
    mender = ClaudeMender()
    given = [value if isinstance(value, Event) else event("", value) for value in values]
    found = [one for each in given for one in mender.mend(each)] + mender.rest()
    assert all(one.name == one.value["type"] for one in found)
    return mender, [one.value for one in found]


def texts(found: list[Any]) -> str:
    return "".join(one["delta"]["text"] for one in found if one.get("delta", {}).get("type") == "text_delta")


def test_what_is_right_stays_and_its_end_and_tokens_are_seen() -> None:
    mender, found = mended(*WHOLE)
    assert (mender.is_whole, mender.is_counted) == (True, True)
    assert [one["type"] for one in found] == [one["type"] for one in WHOLE]
    assert found[0]["message"]["usage"] == {"input_tokens": 3, "output_tokens": 0}
    assert found[4]["usage"] == {"output_tokens": 2}
    assert found[1:4] == WHOLE[1:4]


@pytest.mark.parametrize("last", [END, LAST])
def test_each_of_the_last_two_events_is_an_end(last: Any) -> None:
    assert mended(*WHOLE[:4], last)[0].is_whole
    assert not mended(*WHOLE[:4])[0].is_whole


@pytest.mark.parametrize(
    "usage",
    [
        None,
        "many",
        {},
        {"output_tokens": None},
        {"output_tokens": "2"},
        {"output_tokens": 1, "input_tokens": -1},
    ],
)
def test_field_case_95_odd_usage_costs_the_statistic_and_never_the_content(usage: Any) -> None:
    for odd in (
        [START, TEXT, SAID, {**END, "usage": usage}],
        [{**START, "message": {"usage": usage}}, *WHOLE[1:]],
    ):
        mender, found = mended(*odd)
        assert texts(found) == "a"
        assert not mender.is_counted


def test_null_and_unknown_fields_beside_the_counts_do_not_matter() -> None:
    usage = {"output_tokens": 2, "service_tier": None, "cache_read_input_tokens": None, "surprise": {"x": 1}}
    mender, found = mended(START, TEXT, SAID, {**END, "usage": usage}, LAST)
    assert mender.is_counted
    assert found[3]["usage"] == {"output_tokens": 2}


def test_events_that_are_unknown_or_broken_are_dropped() -> None:
    odd: list[Any] = [
        {"type": "ping"},
        {"type": "surprise"},
        {},
        5,
        None,
        Event("ping", "{oops"),
        {**TEXT, "content_block": {"type": "server_tool"}},
        {**TEXT, "content_block": None},
        {**TEXT, "index": "0"},
        {**SAID, "index": 7},
        {**SAID, "delta": None},
        {**SAID, "delta": {"type": "surprise"}},
        {**SAID, "delta": {"type": "text_delta", "text": 5}},
        {**STOP, "index": 7},
    ]
    mender, found = mended(START, TEXT, *odd, SAID, *odd, END)
    assert [one["type"] for one in found] == ["message_start", *(one["type"] for one in (TEXT, SAID, END))]
    assert mender.is_counted


def test_a_message_without_a_start_gets_one() -> None:
    _, found = mended(TEXT, SAID)
    assert [one["type"] for one in found] == ["message_start", TEXT["type"], SAID["type"]]
    _, found = mended({"type": "message_start", "message": None}, TEXT)
    assert found[0]["message"]["id"] == ""


def test_a_name_is_taken_for_a_type_that_is_missing() -> None:
    _, found = mended(START, Event("content_block_start", event("", {**TEXT, "type": None}).data))
    assert found[1] == TEXT


def test_calls_and_thoughts_keep_what_they_need() -> None:
    call = {"type": "tool_use", "id": "t", "name": "add", "input": {"a": 1}, "caller": None}
    odd: dict[str, Any] = {"type": "tool_use", "id": None, "input": []}
    thought = {"type": "thinking", "thinking": "hm"}
    _, found = mended(
        START, *({**TEXT, "index": at, "content_block": one} for at, one in enumerate((call, odd, thought)))
    )
    assert [one["content_block"] for one in found[1:]] == [
        {"type": "tool_use", "id": "t", "name": "add", "input": {"a": 1}},
        {"type": "tool_use", "id": "", "name": "", "input": {}},
        {"type": "thinking", "thinking": "hm", "signature": ""},
    ]
    for kind, key in (("input_json_delta", "partial_json"), ("signature_delta", "signature")):
        _, found = mended(START, TEXT, {**SAID, "delta": {"type": kind, key: "x", "more": 1}})
        assert found[2]["delta"] == {"type": kind, key: "x"}


def test_an_error_is_passed_on_under_its_name() -> None:
    error = {"type": "error", "error": {"type": "overloaded_error"}}
    assert mended(START, error)[1][-1] == error


def test_nothing_comes_whole_on_this_wire() -> None:
    assert ClaudeMender().whole(b'{"content": []}') == []


MESSAGE = near(id=st.just("m"), usage=near(input_tokens=st.integers(0, 9)))
BLOCK = near(
    type=st.sampled_from(["text", "tool_use", "thinking", "odd"]), text=st.text(max_size=2), input=ANY_JSON
)
DELTA = near(type=st.sampled_from(["text_delta", "input_json_delta", "odd"]), text=st.text(max_size=2))
KINDS = st.sampled_from([one["type"] for one in WHOLE] + ["error", "odd"])
EVENT = near(
    type=KINDS,
    message=MESSAGE,
    index=st.integers(0, 1),
    content_block=BLOCK,
    delta=DELTA,
    usage=near(output_tokens=st.just(1)),
)


@given(st.lists(EVENT | ANY_JSON, max_size=6))
def test_whatever_comes_is_mended(values: list[Any]) -> None:
    mended(*values)
