from dataclasses import replace
from typing import Any

import pytest

from bridge.channel import Edited, FileKind, Ignored, Inbound, Recalled, RemoteFile, Unreadable
from bridge.channel.testing.clock import FakeClock
from bridge.config import LimitsTable
from bridge.ids import ConversationKey
from bridge.relay.ahead import Ahead, Said
from bridge.relay.draft import Draft, draft
from bridge.relay.intake import Fate, Policy
from bridge.relay.limits import COMMANDS_PER_MINUTE, Excess, Limit, SenderLimits
from bridge.relay.payload import conversation_of, decode
from bridge.relay.room import ClaimRoom
from bridge.store.contract import MessageState

POLICY = Policy("u1", "anyone", tools=False)
ELSEWHERE = ConversationKey("elsewhere")
MESSAGE = Inbound("m1", "u1", "c1", "to", "m1", "你好", body_digest="d", stamp="17")


def room(**limits: int) -> ClaimRoom:
    return ClaimRoom(LimitsTable.model_validate(limits), FakeClock())


def test_work_is_claimed_whole_and_holds_its_room_until_it_is_given_back() -> None:
    own = room(account_claims=1)
    one = draft(MESSAGE, POLICY, own, "auto")
    assert one.message is not None
    assert one.message.state is MessageState.CLAIMED
    assert decode(one.message.payload) == MESSAGE
    assert one.message.conversation == conversation_of(MESSAGE)
    assert (one.message.body_digest, bool(one.message.redelivery)) == ("d", True)
    assert not own.admits(ELSEWHERE, owner=True)
    one.give_back(own)
    assert own.admits(ELSEWHERE, owner=True)


def test_a_busy_account_answers_once_and_keeps_no_content() -> None:
    own = room(conversation_claims=1)
    draft(MESSAGE, POLICY, own, "auto")
    first = draft(Inbound("m2", "u1", "c1", "to", "m2", "你好"), POLICY, own, "auto")
    second = draft(Inbound("m3", "u1", "c1", "to", "m3", "你好"), POLICY, own, "auto")
    assert first.message is not None
    assert second.message is not None
    assert first.message.state is MessageState.ANSWERED
    assert first.message.reply is not None
    assert first.message.reply.transient
    assert "稍后" in first.message.reply.parts[0].body
    assert (first.message.payload, first.message.reply.reply_to) == ("", "m2")
    assert (second.decision.fate, second.message.state) == (Fate.BUSY, MessageState.SEEN)
    first.give_back(own)
    assert not own.admits(conversation_of(MESSAGE), owner=True)  # it held no claim
    assert own.notice_due(conversation_of(MESSAGE))  # nobody was told


def test_what_needs_no_answer_is_stored_as_seen() -> None:
    one = draft(Ignored("bot", "m9"), POLICY, room(), "auto")
    assert one.message is not None
    assert (one.message.state, one.message.reason, one.message.payload) == (MessageState.SEEN, "bot", "")


def test_without_a_usable_id_nothing_is_stored() -> None:
    assert draft(Unreadable("broken"), POLICY, room(), "auto").message is None
    own = room(account_claims=1)
    long = draft(Inbound("m" * 257, "u1", "c1", "to"), POLICY, own, "auto")
    assert long.message is None
    assert own.admits(ELSEWHERE, owner=True)
    long.give_back(own)
    draft(MESSAGE, POLICY, own, "auto")
    assert not own.admits(ELSEWHERE, owner=True)  # it gave nothing back that it had not taken


def test_a_message_with_an_id_that_no_store_takes_is_unreadable() -> None:
    one = draft(replace(MESSAGE, reply_to="\ud800"), POLICY, room(), "auto")
    assert one.message is not None
    assert (one.message.state, one.message.reason) == (MessageState.SEEN, "an id is no text")
    assert draft(replace(MESSAGE, message_id="\ud800"), POLICY, room(), "auto").message is None


def test_case_68_an_item_that_cannot_be_stored_holds_no_room_and_takes_no_notice_away() -> None:
    odd = replace(MESSAGE, sent_at=object())  # type: ignore[arg-type]  # an adapter's bug
    own = room(account_claims=1, owner_claims=0)
    with pytest.raises(TypeError):
        draft(odd, POLICY, own, "auto")
    assert draft(MESSAGE, POLICY, own, "auto").decision.fate is Fate.WORK
    with pytest.raises(TypeError):
        draft(replace(MESSAGE, message_id="m2", stamp="18", files=5), POLICY, own, "auto")  # type: ignore[arg-type]  # the same
    assert draft(replace(MESSAGE, message_id="m3"), POLICY, own, "auto").message is not None


@pytest.mark.parametrize("item", [Recalled("m1"), Edited(MESSAGE, 1)])
def test_a_change_is_no_message(item: Recalled | Edited) -> None:
    with pytest.raises(TypeError):
        draft(item, POLICY, room(), "auto")


def test_what_is_only_seen_takes_no_room_and_says_why() -> None:
    own = room(account_claims=1)
    one = draft(MESSAGE, POLICY, own, "auto", lambda item: "asked" if item == MESSAGE else "")
    assert one.message is not None
    assert (one.message.state, one.message.reason, one.message.payload) == (MessageState.SEEN, "asked", "")
    assert own.admits(conversation_of(MESSAGE), owner=True)


# --- limits of one sender


def limited(messages_per_minute: int = 0, turns_per_day: int = 0, **limits: int) -> ClaimRoom:
    clock = FakeClock()
    senders = SenderLimits(messages_per_minute, turns_per_day, "owner", clock)
    return ClaimRoom(LimitsTable.model_validate(limits), clock, senders)


def drafted(own: ClaimRoom, message_id: str, **changes: Any) -> Draft:
    return draft(replace(MESSAGE, message_id=message_id, **changes), POLICY, own, "auto")


def test_what_is_over_is_told_once_keeps_no_content_and_holds_no_room() -> None:
    own = limited(turns_per_day=1, conversation_claims=2)
    drafted(own, "m1")
    told, silent = drafted(own, "m2"), drafted(own, "m3")
    assert told.message is not None
    assert silent.message is not None
    assert (told.decision.fate, told.message.reason) == (Fate.OVER, "turns_per_day")
    assert told.message.reply is not None
    assert told.message.reply.transient
    assert told.message.payload == ""
    assert (silent.decision.fate, silent.message.state) == (Fate.OVER, MessageState.SEEN)
    assert own.admits(conversation_of(MESSAGE), owner=False)


def test_what_was_not_stored_did_not_count_and_told_nobody() -> None:
    own = limited(messages_per_minute=1, turns_per_day=1)
    first = drafted(own, "m1")
    over = drafted(own, "m2")
    assert over.decision.fate is Fate.OVER
    over.give_back(own)
    assert own.over(conversation_of(MESSAGE)) == Excess(Limit.DAY, tell=True)
    first.give_back(own)
    assert own.over(conversation_of(MESSAGE)) is None


def test_messages_that_are_answered_at_once_count_as_messages_and_not_as_turns() -> None:
    own = limited(messages_per_minute=3, turns_per_day=2, conversation_claims=1)
    voice = drafted(own, "m1", text="", files=(RemoteFile("k", FileKind.AUDIO),))
    work, busy = drafted(own, "m2"), drafted(own, "m3")
    assert [one.decision.fate for one in (voice, work, busy)] == [Fate.NOTICE, Fate.WORK, Fate.BUSY]
    assert own.over(conversation_of(MESSAGE)) == Excess(Limit.MINUTE, tell=True)
    busy.give_back(own)
    assert own.over(conversation_of(MESSAGE)) is None


def test_commands_that_are_answered_are_counted_and_those_that_were_not_stored_are_not() -> None:
    own, ahead = limited(), Ahead(for_answered=[lambda message: Said("help")])
    key = conversation_of(replace(MESSAGE, sender="u2"))
    said = [
        draft(replace(MESSAGE, message_id=f"m{n}", sender="u2"), POLICY, own, "auto", ahead=ahead)
        for n in range(COMMANDS_PER_MINUTE)
    ]
    assert {one.decision.fate for one in said} == {Fate.SAID}
    assert own.has_said_enough(key)
    said[0].give_back(own)
    assert not own.has_said_enough(key)
