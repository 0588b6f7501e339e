"""A session's messages as any provider takes them."""

from pathlib import Path
from typing import Any

from pydantic_ai.messages import BinaryContent, ModelResponse, TextPart, ToolCallPart, UserPromptPart

from bridge.agents.contract import HistoryEntry, Role, ToolCall, TurnFile
from bridge.agents.llm.history import NO_PICTURES, NOTHING, messages
from bridge.agents.llm.pictures import GONE, Picture, Shown

PATH = Path("/p/a.png")
PHOTO = TurnFile("image", Path("/p/a.png"), "a.png", "image/png", 9, pixels=(3, 2), picture=PATH)


def user(text: str, *files: TurnFile) -> HistoryEntry:
    return HistoryEntry(role=Role.USER, text=text, files=files)


def said(text: str, *calls: ToolCall) -> HistoryEntry:
    return HistoryEntry(role=Role.ASSISTANT, text=text, calls=calls)


def result(call: ToolCall, text: str) -> HistoryEntry:
    return HistoryEntry(role=Role.TOOL, text=text, name=call.name, call_id=call.call_id)


def shape(*entries: HistoryEntry, pictures: Shown | None = None, with_paths: bool = True) -> list[Any]:
    """Each message as what it holds, in short."""
    found = messages(entries, {}, pictures, with_paths=with_paths)
    return [[_short(part) for part in message.parts] for message in found]


def _short(part: Any) -> Any:
    if isinstance(part, TextPart | UserPromptPart):
        return part.content
    if isinstance(part, ToolCallPart):
        return part.tool_name, part.args, part.tool_call_id
    return part.tool_name, part.content, part.tool_call_id


def test_a_person_and_the_model_take_turns() -> None:
    assert shape(user("a"), said("b"), user("c")) == [["a"], ["b"], ["c"]]


def test_what_a_person_says_one_after_the_other_is_one_message() -> None:
    assert shape(user("a"), user("b"), said("c"), user("d")) == [["a\n\nb"], ["c"], ["d"]]


def test_a_note_stands_at_the_beginning_as_one() -> None:
    note = HistoryEntry(role=Role.NOTE, text="3 earlier messages", covers=3)
    assert shape(note, said("a"), user("b")) == [["[3 earlier messages]"], ["a"], ["b"]]
    assert shape(note, user("b")) == [["[3 earlier messages]\n\nb"]]


def test_calls_and_their_results_belong_together() -> None:
    one, two = ToolCall(name="add", arguments={"a": 1}), ToolCall(name="add", arguments={})
    found = shape(
        user("a"), said("", one, two), result(one, "1"), result(two, ""), user("more"), said("done")
    )
    assert found == [
        ["a"],
        [("add", {"a": 1}, one.call_id), ("add", {}, two.call_id)],
        [("add", "1", one.call_id), ("add", NOTHING, two.call_id), "more"],
        ["done"],
    ]


def test_what_other_agents_did_is_sent_as_every_provider_takes_it() -> None:
    call = ToolCall(name="Edit `x`", arguments="no object")
    found = shape(user("a"), said("", call), result(call, "ok"))
    assert found[1] == [("Edit__x_", {"refused": "no object"}, call.call_id)]
    assert found[2] == [("Edit__x_", "ok", call.call_id)]


def test_nothing_is_blank() -> None:
    assert shape(user(" "), said("\n"), user("a")) == [[NOTHING], [NOTHING], ["a"]]


def test_a_step_of_this_turn_is_sent_as_the_model_gave_it() -> None:
    call = ToolCall(name="add", arguments={})
    kept = ModelResponse([TextPart("as it was"), ToolCallPart("add", "{}", call.call_id)])
    found = messages(
        [user("a"), said("b", call), result(call, "1")], {call.call_id: kept}, None, with_paths=True
    )
    assert found[1] is kept


def test_a_picture_follows_the_words_and_the_list() -> None:
    found = messages([user("look", PHOTO)], {}, {PATH: Picture(b"png", "image/png")}, with_paths=True)
    part: Any = found[0].parts[0]
    text, picture = part.content
    assert text.startswith("look\n\n[Files of this message:\n- image a.png")
    assert "at /p/a.png (the picture 1 below)" in text
    assert isinstance(picture, BinaryContent)
    assert (picture.data, picture.media_type) == (b"png", "image/png")


def test_a_picture_that_is_gone_is_a_note() -> None:
    assert GONE in shape(user("look", PHOTO), pictures={PATH: GONE})[0][0]


def test_a_model_that_sees_nothing_is_told_of_the_picture() -> None:
    assert NO_PICTURES in shape(user("look", PHOTO))[0][0]


def test_no_path_is_told_where_none_may_be_seen() -> None:
    assert "/p/" not in shape(user("look", PHOTO), with_paths=False)[0][0]


def test_files_without_words_are_a_message() -> None:
    assert shape(user("", PHOTO))[0][0].startswith("[Files of this message:")


def test_words_and_a_picture_that_follow_each_other_stay_in_order() -> None:
    found = messages(
        [user("a"), user("b", PHOTO)], {}, {PATH: Picture(b"png", "image/png")}, with_paths=False
    )
    part: Any = found[0].parts[0]
    assert [type(one).__name__ for one in part.content] == ["str", "str", "BinaryContent"]


def test_a_file_that_is_no_picture_is_listed_alone() -> None:
    document = TurnFile("file", Path("/p/a.txt"), "a.txt", "text/plain", 9)
    assert "a.txt" in str(shape(user("see", document), pictures={}))
