"""A conversation's messages in order, and which of them one turn answers."""

from dataclasses import replace
from typing import Any

import pytest

from bridge.channel import FileKind, RemoteFile
from bridge.ids import MessageId, SessionId
from bridge.protocol.limits import PROMPT_BYTES
from bridge.relay.queue import Queue, as_one, together
from bridge.relay.texts import Text
from bridge.relay.work import Message
from bridge.store.contract import MessageState
from tests.relay.harness import message

PICTURE = RemoteFile("k", FileKind.IMAGE)


def one(name: str, text: str = "", session: str = "", missed: bool = False, **changes: Any) -> Message:
    state = MessageState.RUNNING if session else MessageState.CLAIMED
    inbound = message(name, text or name, **changes)
    return Message(MessageId(name), inbound, state, SessionId(session), 0, missed)


def queue(*messages: Message) -> Queue:
    made = Queue()
    for each in messages:
        made.add(each)
    return made


def names(messages: Any) -> list[str]:
    return [each.message_id for each in messages]


def test_messages_keep_their_order_and_are_found_by_their_ids() -> None:
    a, b = one("a"), one("b")
    line = queue(a, b)
    assert (len(line), names(line), line.head is a) == (2, ["a", "b"], True)
    assert line.find(MessageId("b")) is b
    assert line.find(MessageId("c")) is None
    assert names(line.behind([a])) == ["b"]


def test_what_was_changed_is_another_message_in_the_same_place() -> None:
    a, b = one("a"), one("b")
    line = queue(a, b)
    changed = line.change(a, replace(a, inbound=message("a", "new"), revision=2))
    assert [each.inbound.text for each in line] == ["new", "b"]
    assert line.remove(a) is False
    assert line.remove(changed) is True
    assert line.remove(changed) is False
    assert names(line) == ["b"]


def test_what_is_ended_waits_no_more_and_the_first_word_counts() -> None:
    a, b, c = one("a"), one("b"), one("c")
    line = queue(a, b, c)
    line.end(Text.REPLACED, before=c)
    line.end(None)
    assert line.endings == {"a": Text.REPLACED, "b": Text.REPLACED, "c": None}
    assert not line.waits(a)
    line.remove(a)
    assert "a" not in line.endings


def test_the_missed_are_those_at_the_head() -> None:
    line = queue(one("a", missed=True), one("b", missed=True), one("c"), one("d", missed=True))
    assert names(line.missed()) == ["a", "b"]


@pytest.mark.parametrize(
    ("messages", "taken"),
    [
        ([one("a")], ["a"]),
        ([one("a"), one("b"), one("c")], ["a", "b", "c"]),
        ([one("a"), one("b", missed=True), one("c")], ["a"]),
        ([one("a", reference="r"), one("b")], ["a"]),
        ([one("a"), one("b", reference="r"), one("c")], ["a", "b"]),
        ([one("a", files=(PICTURE,) * 2), one("b", files=(PICTURE,)), one("c")], ["a", "b", "c"]),
        ([one("a", files=(PICTURE,) * 3), one("b", files=(PICTURE,)), one("c")], ["a"]),
        ([one("a", files=(PICTURE,) * 9), one("b")], ["a"]),
        ([one("a", "x" * PROMPT_BYTES), one("b")], ["a"]),
        ([one("a"), one("b", "\ud800" * PROMPT_BYTES)], ["a"]),
        ([one("a", session="s"), one("b", session="s"), one("c", session="t"), one("d")], ["a", "b"]),
        ([one("a", missed=True), one("b")], ["a"]),
    ],
)
def test_one_turn_takes_what_it_can_answer(messages: list[Message], taken: list[str]) -> None:
    assert names(together(queue(*messages), max_files=3)) == taken


def test_what_was_ended_is_not_taken_along() -> None:
    a, b, c = one("a"), one("b"), one("c")
    line = queue(a, b, c)
    line.endings[b.message_id] = None
    assert names(together(line, max_files=3)) == ["a"]


def test_several_messages_are_the_last_with_the_texts_and_files_of_all() -> None:
    a, b = one("a", "first", files=(PICTURE,)), one("b", " ")
    c = one("c", "third", files=(PICTURE, PICTURE), reference="r")
    all_of = as_one([a, b, c])
    assert all_of.message_id == "c"
    assert (all_of.inbound.text, len(all_of.inbound.files)) == ("first\n\nthird", 3)
    assert (all_of.inbound.reply_to, all_of.inbound.reference) == ("c", "r")
    assert as_one([a]) is a
