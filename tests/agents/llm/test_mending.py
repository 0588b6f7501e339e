"""A chat completion's events, mended one after the other."""

import json
from typing import Any

from bridge.agents.llm.mending import ChatMender
from bridge.agents.llm.sse import Event, event


def mended(*values: Any) -> tuple[ChatMender, list[dict[str, Any]]]:
    mender = ChatMender()
    given = [value if isinstance(value, Event) else event("", value) for value in values]
    found = [one for each in given for one in mender.mend(each)] + mender.rest()
    return mender, [one.value for one in found]


def delta(**fields: Any) -> dict[str, Any]:
    return {"choices": [{"index": 0, "delta": fields, "finish_reason": None}]}


def piece(name: Any = None, arguments: Any = None, call_id: Any = None, index: Any = None) -> dict[str, Any]:
    return delta(
        tool_calls=[{"index": index, "id": call_id, "function": {"name": name, "arguments": arguments}}]
    )


def received(*pieces: dict[str, Any]) -> dict[int, tuple[str, str]]:
    """The calls as the library puts them together: by their index, name and arguments joined."""
    calls: dict[int, tuple[str, str]] = {}
    for chunk in mended(*pieces)[1]:
        for call in chunk["choices"][0]["delta"]["tool_calls"] or []:
            name, arguments = calls.get(call["index"], ("", ""))
            function = call["function"]
            calls[call["index"]] = (
                name + (function["name"] or ""),
                arguments + (function["arguments"] or ""),
            )
    return calls


def test_the_end_is_seen_by_its_reason_or_its_mark() -> None:
    mender, _ = mended(delta(content="a"))
    assert not mender.is_whole
    mender, _ = mended({"choices": [{"delta": {}, "finish_reason": "length"}]})
    assert mender.is_whole
    mender, found = mended(delta(content="<th"), Event("", "[DONE]"))
    assert mender.is_whole
    assert found[1]["choices"][0]["delta"]["content"] == "<th"
    assert found[2] is None


def test_tokens_are_counted_once_they_were_told() -> None:
    assert not mended(delta(content="a"), {"usage": {"prompt_tokens": "x"}})[0].is_counted
    assert mended({"usage": {"prompt_tokens": 3, "completion_tokens": 1}, "choices": []})[0].is_counted


def test_what_is_no_chunk_is_dropped_and_what_is_no_json_or_an_error_is_passed_on() -> None:
    odd, error = Event("", "{oops"), {"error": {"message": "x"}}
    _, found = mended(Event("", "null"), 5, [], "text", odd, error)
    assert found == [None, error]


def test_thoughts_that_stand_in_the_text_are_taken_out_of_it() -> None:
    _, found = mended(delta(content="<think>hm"), delta(content="</think>yes"))
    said = [(one["choices"][0]["delta"]) for one in found]
    assert [one["content"] for one in said if one.get("content")] == ["yes"]
    assert [one["reasoning_content"] for one in said if one.get("reasoning_content")] == ["hm"]


def test_a_thought_that_ends_with_the_answer_is_passed_on() -> None:
    _, found = mended(delta(content="<think>hm </th"), {"choices": [{"delta": {}, "finish_reason": "stop"}]})
    thought = [one["choices"][0]["delta"].get("reasoning_content") or "" for one in found]
    assert "".join(thought) == "hm </th"
    assert json.dumps(found[-1]).count("stop") == 1


def test_an_answer_that_came_whole_is_as_good_as_one_in_events() -> None:
    mender = ChatMender()
    found = mender.whole(
        b'{"choices": [{"message": {"content": "<think>hm</think>yes"}}], "usage": {"total_tokens": 1}}'
    )
    said = [one.value["choices"][0]["delta"].get("content") for one in found]
    assert [text for text in said if text] == ["yes"]
    assert (mender.is_whole, mender.is_counted) == (True, True)


def test_what_came_whole_and_is_no_answer_is_none() -> None:
    for data in (b"{", b"[1]", b"\xff", b'{"message": "a"}'):
        mender = ChatMender()
        assert mender.whole(data) == []
        assert not mender.is_whole
    mender = ChatMender()
    (error,) = mender.whole(b'{"error": {"code": 1}}')
    assert error.value == {"error": {"code": 1}}


def test_calls_are_told_apart_by_index() -> None:
    both = received(
        piece("a", "{", "x", 0), piece("b", "[", "y", 1), piece(None, "}", None, 0), piece(None, "]", None, 1)
    )
    assert both == {0: ("a", "{}"), 1: ("b", "[]")}


def test_calls_without_an_index_are_told_apart_by_their_ids() -> None:
    assert received(piece("a", "{}", "x"), piece("b", "{}", "y")) == {0: ("a", "{}"), 1: ("b", "{}")}


def test_calls_under_one_index_are_told_apart_by_their_ids() -> None:
    assert received(piece("a", "{}", "x", 0), piece("b", "{", "y", 0), piece(None, "}", None, 0)) == {
        0: ("a", "{}"),
        1: ("b", "{}"),
    }


def test_calls_without_ids_are_told_apart_by_their_names() -> None:
    assert received(piece("a", "{}"), piece("b", "{}")) == {0: ("a", "{}"), 1: ("b", "{}")}


def test_a_name_that_comes_in_pieces_is_one() -> None:
    assert received(piece("ad", None, "x", 0), piece("d", "{}", None, 0)) == {0: ("add", "{}")}


def test_a_name_that_is_said_again_with_each_piece_is_one() -> None:
    assert received(piece("add", "", "x", 0), piece("add", "{", "x", 0), piece("add", "}", "x", 0)) == {
        0: ("add", "{}")
    }


def test_a_call_without_a_name_is_a_call_all_the_same() -> None:
    assert received(piece(None, "{}", "x", 0)) == {0: ("", "{}")}
