"""Cards with buttons, and what is told of a press."""

from typing import Any

import pytest

from bridge.channel import Choice, Claimed, Ignored, Inbound, Unreadable
from channels.feishu.buttons import card, old, pressed, toast
from channels.feishu.wire import envelope

CHOICES = (Choice("approve:1", "Allow"), Choice("deny:1", "Refuse"))


def press(**changes: Any) -> dict[str, Any]:
    """The event of a press on the first button."""
    value = card("May I?", "p2p:oc_1", CHOICES)["body"]["elements"][1]["behaviors"][0]["value"]
    return {
        "operator": {"open_id": "ou_1", "union_id": "on_1"},
        "token": "c-1",
        "action": {"value": value, "tag": "button"},
        "context": {"open_message_id": "om_card", "open_chat_id": "oc_1"},
        **changes,
    }


def read(event: Any, event_id: str = "e1") -> object:
    header = {"event_id": event_id, "event_type": "card.action.trigger", "create_time": "1700000000123"}
    return pressed(envelope({"schema": "2.0", "header": header, "event": event}))


def test_a_card_has_a_text_as_it_is_and_a_button_for_each_choice() -> None:
    shown = card("May *I*?\n```\nx\n```", "p2p:oc_1", CHOICES)
    words, allow, refuse = shown["body"]["elements"]
    assert shown["schema"] == "2.0"
    assert words["text"] == {"tag": "plain_text", "content": "May *I*?\n```\nx\n```"}
    assert [one["text"]["content"] for one in (allow, refuse)] == ["Allow", "Refuse"]
    assert [one["type"] for one in (allow, refuse)] == ["primary", "default"]
    assert refuse["behaviors"] == [{"type": "callback", "value": {"choice": "deny:1", "to": "p2p:oc_1"}}]


def test_nothing_in_a_card_calls_anybody() -> None:
    (words, *_) = card("<at id=all></at>", "p2p:oc_1", CHOICES)["body"]["elements"]
    assert "<at" not in words["text"]["content"]


def test_a_press_says_who_pressed_what_and_is_answered_on_its_card() -> None:
    found = read(press())
    assert isinstance(found, Inbound)
    assert (found.message_id, found.sender, found.pressed) == ("e1", "ou_1", "approve:1")
    assert (found.chat, found.to, found.reply_to, found.group) == ("oc_1", "p2p:oc_1", "om_card", False)
    assert found.text == ""
    assert found.sent_at is not None


@pytest.mark.parametrize(
    "changes",
    [
        {"context": {"open_message_id": "om_2", "open_chat_id": "oc_other"}},
        {"action": {"value": {"choice": "approve:1", "to": "group:oc_1"}}},
        {"action": {"value": {"choice": "approve:1"}}},
    ],
)
def test_a_press_on_a_copy_elsewhere_is_not_in_a_direct_chat(changes: dict[str, Any]) -> None:
    found = read(press(**changes))
    assert isinstance(found, Inbound)
    assert found.group
    assert found.to.startswith("group:")


@pytest.mark.parametrize(
    "changes",
    [
        {"action": {"value": {"k": "v"}}},
        {"action": {"value": "x"}},
        {"action": None},
        {"action": {"value": "{"}},
    ],
)
def test_a_card_of_others_brings_nothing(changes: dict[str, Any]) -> None:
    assert read(press(**changes)) == Ignored("event")


def test_a_value_that_came_as_text_is_read_too() -> None:
    found = read(press(action={"value": '{"choice": "deny:1", "to": "p2p:oc_1"}'}))
    assert isinstance(found, Inbound)
    assert found.pressed == "deny:1"


@pytest.mark.parametrize(
    "changes", [{"operator": {}}, {"operator": None}, {"context": {"open_chat_id": "oc_1"}}]
)
def test_a_press_of_nobody_or_nowhere_is_unreadable(changes: dict[str, Any]) -> None:
    assert isinstance(read(press(**changes)), Unreadable)


def test_a_press_without_an_id_is_unreadable_for_it_could_come_twice() -> None:
    assert isinstance(read(press(), event_id=""), Unreadable)


def test_the_old_address_tells_the_same_in_its_own_way() -> None:
    event = press()
    flat = {
        "open_id": "ou_1", "open_message_id": "om_card", "open_chat_id": "oc_1", "token": "c-1",
        "action": event["action"],
    }  # fmt: skip
    found, again, other = old(flat), old(flat), old({**flat, "token": "c-2"})
    assert isinstance(found, Inbound)
    assert isinstance(other, Inbound)
    assert (found.sender, found.pressed, found.group) == ("ou_1", "approve:1", False)
    assert found == again
    assert found.message_id != other.message_id
    assert "c-1" not in found.message_id
    assert isinstance(old({**flat, "token": ""}), Unreadable)


@pytest.mark.parametrize(
    ("result", "kind", "words"),
    [
        (Claimed.ACCEPTED, "info", "Got it"),
        (Claimed.DUPLICATE, "info", "That has arrived already"),
        (Claimed.IGNORED, "warning", "You cannot answer this"),
    ],
)
def test_whoever_presses_sees_that_it_did_something(result: Claimed, kind: str, words: str) -> None:
    shown = toast(result)["toast"]
    assert (shown["type"], shown["content"], shown["i18n"]["en_us"]) == (kind, words, words)
