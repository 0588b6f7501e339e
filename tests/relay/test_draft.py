from dataclasses import replace

import pytest

from bridge.channel import Edited, Ignored, Inbound, Recalled, Unreadable
from bridge.channel.testing.clock import FakeClock
from bridge.config import LimitsTable
from bridge.ids import ConversationKey
from bridge.relay.draft import draft
from bridge.relay.intake import Fate, Policy
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
