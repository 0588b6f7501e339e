"""What endpoints send, brought into shape: nothing makes it fail, and what is right stays as it is."""

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from bridge.agents.llm.oddities import (
    Slots,
    as_chunk,
    call_id,
    call_name,
    mend_chunk,
    read_arguments,
    sent_arguments,
    sent_name,
)

ANY_JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | st.text(max_size=5),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=5), inner, max_size=3),
    max_leaves=8,
)


def near(**known: st.SearchStrategy[Any]) -> st.SearchStrategy[Any]:
    """Objects whose values are anything, more often what is expected."""
    return st.fixed_dictionaries({}, optional={key: value | ANY_JSON for key, value in known.items()})


FUNCTION = near(name=st.just("add"), arguments=st.just("{}"))
CALL = near(index=st.integers(0, 2), id=st.just("c"), function=FUNCTION)
DELTA = near(content=st.text(max_size=3), tool_calls=st.lists(CALL, max_size=2), refusal=st.just("no"))
CHOICE = near(delta=DELTA, finish_reason=st.just("stop"), index=st.just(0))
USAGE = near(prompt_tokens=st.integers(0, 9), completion_tokens=st.integers(0, 9))
CHUNK = near(choices=st.lists(CHOICE, max_size=2), usage=USAGE, id=st.just("c"), created=st.just(1))


@given(CHUNK)
def test_whatever_comes_has_the_promised_shape(raw: Any) -> None:
    mended = mend_chunk(raw)
    assert isinstance(mended["id"], str)
    assert isinstance(mended["model"], str)
    assert isinstance(mended["created"], int)
    for choice in mended["choices"]:
        assert isinstance(choice["delta"].get("content", ""), str)
        for call in choice["delta"]["tool_calls"] or []:
            assert isinstance(call["index"], int)
            assert isinstance(call["function"]["arguments"], str | None)
    assert mended["usage"] is None or all(isinstance(value, int | dict) for value in mended["usage"].values())


def test_what_is_right_stays_as_it_is() -> None:
    call = {"index": 1, "id": "c", "function": {"name": "add", "arguments": "{"}, "extra_content": {"x": 1}}
    delta = {"content": "a", "reasoning_content": "b", "tool_calls": [call]}
    usage = {"prompt_tokens": 1, "completion_tokens": 2, "total_tokens": 3}
    raw = {"id": "i", "created": 5, "model": "m", "usage": usage}
    mended = mend_chunk({**raw, "choices": [{"delta": delta, "finish_reason": "stop"}]})
    assert {key: mended[key] for key in raw} == raw
    assert mended["choices"] == [{"index": 0, "delta": delta, "finish_reason": "stop"}]


@pytest.mark.parametrize(
    "usage",
    [
        None,
        "many",
        [],
        {"prompt_tokens": "12", "completion_tokens": 1},
        {"prompt_tokens": -1},
        {"prompt_tokens": 1.5},
        {"prompt_tokens": True},
        {"prompt_tokens": 1 << 60},
    ],
)
def test_field_case_95_odd_usage_costs_the_statistic_and_never_the_content(usage: Any) -> None:
    choices = [{"delta": {"content": "a"}, "finish_reason": None}]
    mended = mend_chunk({"choices": choices, "usage": usage, "service_tier": None, "surprise": {"x": None}})
    assert mended["usage"] is None
    assert mended["choices"][0]["delta"]["content"] == "a"


def test_usage_keeps_what_is_a_count() -> None:
    details = {"cached_tokens": 3, "audio_tokens": None, "odd": "x"}
    mended = mend_chunk(
        {"usage": {"prompt_tokens": 4, "total_tokens": None, "prompt_tokens_details": details}}
    )
    assert mended["usage"] == {
        "prompt_tokens": 4,
        "completion_tokens": 0,
        "total_tokens": 0,
        "prompt_tokens_details": {"cached_tokens": 3},
    }


def test_parts_of_a_delta_that_are_no_text_are_dropped() -> None:
    delta = {"content": None, "reasoning": {"x": 1}, "refusal": 3, "tool_calls": "none", "role": "assistant"}
    mended = mend_chunk({"choices": [{"delta": delta, "finish_reason": 7}]})
    assert mended["choices"] == [
        {"index": 0, "delta": {"role": "assistant", "tool_calls": None}, "finish_reason": None}
    ]


def test_a_content_that_comes_in_parts_is_its_words() -> None:
    parts = [{"type": "text", "text": "a"}, 7, {"type": "thinking", "thinking": []}, {"text": "b"}]
    mended = mend_chunk({"choices": [{"delta": {"content": parts}}]})
    assert mended["choices"][0]["delta"]["content"] == "ab"


def test_calls_get_an_index_and_arguments_that_are_a_text() -> None:
    calls = [7, {"function": {"name": "a", "arguments": {"x": 1}}}, {"id": 3, "function": None}]
    (choice,) = mend_chunk({"choices": [{"delta": {"tool_calls": calls}}]})["choices"]
    first, second = choice["delta"]["tool_calls"]
    assert (first["index"], first["function"]) == (1, {"name": "a", "arguments": '{"x": 1}'})
    assert (second["index"], second["id"], second["function"]) == (2, None, {"name": None, "arguments": None})


@pytest.mark.parametrize(
    ("raw", "value"),
    [
        (None, {}),
        ("", {}),
        ('{"a": 1}', {"a": 1}),
        ({"a": 1}, {"a": 1}),
        ('"{}"', "{}"),
        ("[1]", [1]),
        (" {} ", {}),
    ],
)
def test_arguments_are_read_as_json(raw: Any, value: Any) -> None:
    assert read_arguments(raw) == value


@pytest.mark.parametrize(
    "raw",
    [
        '{"a": 1',
        "{'a': 1}",
        "1, 2",
        "1],[2",
        "{}{}",
        '{"a": NaN}',
        '{"a": 1e999}',
        "[" * 200 + "]" * 200,
        '"\\ud800"',
        "\ud800",
        "add(1)",
    ],
)
def test_what_is_no_json_stays_a_text(raw: str) -> None:
    assert read_arguments(raw) == raw


@given(ANY_JSON)
def test_arguments_that_are_sent_back_are_an_object(value: Any) -> None:
    sent = sent_arguments(value)
    assert sent == value if isinstance(value, dict) else sent == {"refused": value}
    json.dumps(sent)


def test_ids_are_ours_and_never_the_same() -> None:
    assert len({call_id() for _ in range(100)}) == 100
    assert call_id().isalnum()


def test_names_are_bounded_and_sent_as_every_provider_takes_them() -> None:
    assert call_name("a b" * 100) == ("a b" * 100)[:128]
    assert sent_name("Edit `x.py`") == "Edit__x_py_"
    assert sent_name("工具") == "__"
    assert sent_name("") == "unnamed"
    assert len(sent_name("a" * 100)) == 64


@pytest.mark.parametrize(
    ("raw", "content", "calls"),
    [
        ({"choices": [{"message": {"content": "a", "tool_calls": [{"id": "x"}, 7, {}]}}]}, "a", [0, 2]),
        ({"choices": [{"message": {"content": "a", "tool_calls": None}}]}, "a", []),
        ({"choices": [{"message": 7}]}, None, []),
        ({"choices": []}, None, []),
        ({"choices": None}, None, []),
        ({}, None, []),
    ],
)
def test_a_completion_that_came_whole_is_one_chunk(raw: Any, content: Any, calls: list[int]) -> None:
    choices = mend_chunk(as_chunk(raw))["choices"]
    delta = choices[0]["delta"] if choices else {}
    assert delta.get("content") == content
    assert [call["index"] for call in delta.get("tool_calls") or []] == calls


def placed(*pieces: tuple[Any, Any, Any, Any]) -> list[tuple[int, Any]]:
    """Where pieces of calls (index, id, name, arguments) belong, and under which name each goes on."""
    slots, found = Slots(), []
    for index, its_id, name, arguments in pieces:
        call = {"index": index, "id": its_id, "function": {"name": name, "arguments": arguments}}
        slots.place(call)
        found.append((call["index"], call["function"]["name"]))
    return found


@pytest.mark.parametrize(
    ("pieces", "expected"),
    [
        ([(0, "x", "a", "{"), (1, "y", "b", "{"), (0, None, None, "}")], [(0, "a"), (1, "b"), (0, None)]),
        ([(0, "x", "a", "{}"), (0, "y", "b", "{"), (0, None, None, "}")], [(0, "a"), (1, "b"), (1, None)]),
        ([(0, None, "a", "{}"), (0, None, "b", "{}")], [(0, "a"), (1, "b")]),
        ([(0, "x", "ad", None), (0, None, "d", "{}")], [(0, "ad"), (0, "d")]),
        ([(0, "x", "a", ""), (0, "x", "a", "{"), (0, "x", "a", "}")], [(0, "a"), (0, None), (0, None)]),
        ([(0, "", None, "{"), (0, "x", None, "}")], [(0, ""), (0, None)]),
        ([(5, "x", "a", "{}")], [(0, "a")]),
    ],
)
def test_pieces_of_calls_find_each_other(
    pieces: list[tuple[Any, Any, Any, Any]], expected: list[tuple[int, Any]]
) -> None:
    assert placed(*pieces) == expected
