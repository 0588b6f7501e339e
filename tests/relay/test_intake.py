from dataclasses import dataclass, replace
from typing import Any

import pytest

from bridge.channel import FileKind, Ignored, Inbound, RemoteFile, Unreadable
from bridge.ids import ConversationKey
from bridge.relay.ahead import Ahead, Said
from bridge.relay.intake import Decision, Fate, Policy, classify, set_aside
from bridge.relay.limits import Excess, Limit
from bridge.relay.payload import conversation_of
from bridge.relay.texts import Text

MESSAGE = Inbound("m1", "u1", "c1", "c1", text="hello")
VOICE = RemoteFile("k", FileKind.AUDIO)


@dataclass
class FakeRoom:
    free: bool = True
    notice: bool = True
    asked_as_owner: bool | None = None
    excess: Excess | None = None
    enough: bool = False

    def has_said_enough(self, conversation: ConversationKey) -> bool:
        return self.enough

    def over(self, conversation: ConversationKey) -> Excess | None:
        return self.excess

    def admits(self, conversation: ConversationKey, owner: bool) -> bool:
        self.asked_as_owner = owner
        return self.free

    def notice_due(self, conversation: ConversationKey) -> bool:
        return self.notice


def decide(message: Inbound, policy: Policy, room: FakeRoom) -> Decision:
    return classify(message, conversation_of(message), policy, room)


def owner(**changes: Any) -> Policy:
    return replace(Policy("u1", "owner", tools=True), **changes)


def test_the_owner_s_message_is_work() -> None:
    room = FakeRoom()
    assert decide(MESSAGE, owner(), room) == Decision(Fate.WORK)
    assert room.asked_as_owner is True


def test_ignored_and_unreadable_items_are_only_marked_seen() -> None:
    assert set_aside(Ignored("own", "m2")) == Decision(Fate.SEEN, "own")
    assert set_aside(Unreadable("no json", "m3")) == Decision(Fate.SEEN, "no json")


@pytest.mark.parametrize(
    ("policy", "sender", "answered"),
    [
        (Policy("u1", "owner", False), "u1", True),
        (Policy("u1", "owner", False), "u2", False),
        (Policy("", "owner", False), "", False),
        (Policy("", "owner", False), "u1", False),
        (Policy("", "anyone", False), "u2", True),
        (Policy("", "anyone", False), "", False),
        (Policy("u1", ("u3",), False), "u3", True),
        (Policy("u1", ("u3",), False), "u1", True),
        (Policy("u1", ("u3",), False), "u2", False),
    ],
)
def test_whom_an_account_answers(policy: Policy, sender: str, answered: bool) -> None:
    decision = decide(replace(MESSAGE, sender=sender), policy, FakeRoom())
    assert decision.fate is (Fate.WORK if answered else Fate.SEEN)


@pytest.mark.parametrize("impostor", ["U1", "u1 ", " u1", "u", "u11", "\u0075\u0031\u200b", "ｕ1"])
def test_cases_71_and_72_only_the_exact_stable_id_is_the_owner(impostor: str) -> None:
    policy = owner()
    assert not policy.is_owner(replace(MESSAGE, sender=impostor))
    assert not policy.grants_tools(replace(MESSAGE, sender=impostor))
    assert decide(replace(MESSAGE, sender=impostor), policy, FakeRoom()).fate is Fate.SEEN


def test_tools_need_grant_owner_and_a_direct_chat() -> None:
    assert owner().grants_tools(MESSAGE)
    assert not owner(tools=False).grants_tools(MESSAGE)
    assert not owner(owner="").grants_tools(MESSAGE)
    assert not owner().grants_tools(replace(MESSAGE, group=True))


@pytest.mark.parametrize("notice", [True, False])
def test_without_room_the_sender_is_told_when_a_notice_is_due(notice: bool) -> None:
    decision = decide(MESSAGE, owner(), FakeRoom(free=False, notice=notice))
    assert decision == Decision(Fate.BUSY, "busy", Text.BUSY if notice else None)


def test_case_26_voice_alone_is_answered_at_once_even_without_room() -> None:
    voice = replace(MESSAGE, text=" ", files=(VOICE,))
    assert decide(voice, owner(), FakeRoom(free=False)) == Decision(Fate.NOTICE, "voice", Text.VOICE)


@pytest.mark.parametrize(
    "message",
    [
        replace(MESSAGE, text="and this?", files=(VOICE,)),
        replace(MESSAGE, text="", files=(replace(VOICE, transcript="hi"),)),
        replace(MESSAGE, text="", files=(VOICE, RemoteFile("i", FileKind.IMAGE))),
        replace(MESSAGE, text="", files=(VOICE,), reference="m0"),
        replace(MESSAGE, text="", files=()),
    ],
)
def test_voice_with_anything_readable_is_work(message: Inbound) -> None:
    assert decide(message, owner(), FakeRoom()).fate is Fate.WORK


def test_an_unanswered_sender_gets_no_notice_at_all() -> None:
    stranger = replace(MESSAGE, sender="u2", text="", files=(VOICE,))
    assert decide(stranger, owner(), FakeRoom(free=False)) == Decision(Fate.SEEN, "sender_not_answered")


def test_a_message_that_is_only_seen_says_why_but_not_to_strangers() -> None:
    key, room = conversation_of(MESSAGE), FakeRoom()
    decision = classify(MESSAGE, key, owner(), room, lambda item: "asked_for_answer")
    assert decision == Decision(Fate.SEEN, "asked_for_answer")
    stranger = replace(MESSAGE, sender="stranger")
    assert classify(stranger, key, owner(), room, lambda item: "asked").reason == "sender_not_answered"


@pytest.mark.parametrize(("limit", "text"), [(Limit.MINUTE, Text.TOO_FAST), (Limit.DAY, Text.TOO_MANY_TODAY)])
def test_who_asks_too_much_is_told_so_once_and_then_nothing(limit: Limit, text: Text) -> None:
    for tell, told in ((True, text), (False, None)):
        room = FakeRoom(free=False, excess=Excess(limit, tell))
        assert decide(replace(MESSAGE, text="", files=(VOICE,)), owner(), room) == Decision(
            Fate.OVER, limit, told
        )


def test_a_command_is_answered_whatever_its_sender_has_used_up() -> None:
    room = FakeRoom(excess=Excess(Limit.MINUTE, True))
    ahead = Ahead(for_answered=[lambda message: Said("stopped")])
    decision = classify(MESSAGE, conversation_of(MESSAGE), owner(), room, ahead=ahead)
    assert decision.fate is Fate.SAID


def test_who_is_not_answered_is_not_told_of_limits_either() -> None:
    room = FakeRoom(excess=Excess(Limit.MINUTE, True))
    assert decide(replace(MESSAGE, sender="u2"), owner(), room) == Decision(Fate.SEEN, "sender_not_answered")


def test_a_flood_of_commands_is_only_seen() -> None:
    ahead = Ahead(for_answered=[lambda message: Said("help")])
    room = FakeRoom(enough=True)
    decision = classify(MESSAGE, conversation_of(MESSAGE), owner(), room, ahead=ahead)
    assert decision == Decision(Fate.SEEN, "too_many_commands")


def test_a_button_that_nobody_knows_is_only_seen_and_never_work_case_61() -> None:
    press = replace(MESSAGE, text="", pressed="allow")
    assert decide(press, owner(), FakeRoom()) == Decision(Fate.SEEN, "pressed")
    assert decide(replace(press, text="allow"), owner(), FakeRoom()).fate is Fate.SEEN


def test_case_26_voice_alone_is_work_where_it_is_transcribed() -> None:
    voice = replace(MESSAGE, text="", files=(RemoteFile("v", FileKind.AUDIO),))
    assert decide(voice, owner(), FakeRoom()).text is Text.VOICE
    assert decide(voice, owner(listens=True), FakeRoom()) == Decision(Fate.WORK)
