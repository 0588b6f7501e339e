"""Which message answers which question."""

from dataclasses import replace
from datetime import timedelta
from types import SimpleNamespace
from typing import Any, cast

import pytest

from bridge.channel import FileKind, RemoteFile
from bridge.channel.testing.clock import FakeClock
from bridge.ids import ConversationKey
from bridge.protocol.ours import ApprovalOption
from bridge.relay.approvals import Approvals, Question, choices_of, short_id
from bridge.relay.intake import Policy
from bridge.relay.judge import Answer
from bridge.relay.payload import conversation_of
from bridge.relay.texts import Language
from tests.relay.harness import OWNER, STRANGER, message

MINE = conversation_of(message("m0"))
OTHER = conversation_of(message("m0", thread="t"))
POLICY = Policy(OWNER, "anyone", tools=True)
STALE = "That question is no longer valid"


class Platform:
    ahead_seconds = 0.0


class Desk:
    """Open questions, and people who write."""

    def __init__(self, *asked: str, shown: bool = True) -> None:
        self.clock, self.platform = FakeClock(), Platform()
        self.approvals = Approvals(POLICY, "auto", self.clock, self.platform)
        self.questions = [self.ask(one, shown=shown) for one in asked]

    def ask(self, approval_id: str, where: ConversationKey = MINE, *, shown: bool = True) -> Question:
        question = self.approvals.open(approval_id, where, 600)
        question.shown_at = self.clock.monotonic() if shown else None
        return question

    def say(self, text: str, sender: str = OWNER, **changes: Any) -> str | None:
        """What is said to it, which is then done."""
        said = self.approvals.answer(message("m1", text, sender, **changes))
        if said is not None:
            said.act()
        return said.text if said is not None else None


def decided(desk: Desk) -> list[bool | None]:
    return [one.answer.approved if one.over.is_set() else None for one in desk.questions]


@pytest.mark.parametrize(
    ("text", "approved"),
    [("/approve", True), ("/批准", True), ("Yes!", True), ("/deny", False), ("算了。", False)],
)
def test_one_open_question_is_answered_by_a_command_or_a_plain_word(text: str, approved: bool) -> None:
    desk = Desk("a")
    assert desk.say(text) is not None
    assert decided(desk) == [approved]


def test_an_answer_by_id_finds_its_question_in_any_chat_of_the_owner_s_case_62() -> None:
    desk = Desk("a", "b")
    assert desk.say(f"/deny {short_id('b').upper()}", thread="elsewhere") == (
        f"Refused ({short_id('b')}). I do not do it."
    )
    assert decided(desk) == [None, False]
    assert desk.say(f"/approve {short_id('a')}") is not None
    assert decided(desk) == [True, False]


def test_which_of_several_is_meant_has_to_be_said() -> None:
    desk = Desk("a", "b")
    said = desk.say("/approve")
    assert said is not None
    assert f"{short_id('a')}, {short_id('b')}" in said
    said = desk.say("yes")
    assert said is not None
    assert f"{short_id('a')}, {short_id('b')}" in said
    assert decided(desk) == [None, None]


def test_what_was_answered_is_answered_once_cases_60_and_61() -> None:
    desk = Desk("a")
    desk.say(f"/approve {short_id('a')}")
    assert str(desk.say(f"/deny {short_id('a')}")).startswith(STALE)
    assert decided(desk) == [True]


def test_of_answers_that_come_together_the_last_one_counts_and_none_once_that_is_passed_on() -> None:
    desk = Desk("a")
    answers = [desk.approvals.answer(message(text, text)) for text in ("/approve", "/deny", "/approve")]
    for said in answers[:2]:
        assert said is not None
        said.act()
    assert decided(desk) == [False]
    desk.questions[0].taken = True
    assert answers[2] is not None
    answers[2].act()
    assert decided(desk) == [False]


def test_an_answer_never_counts_for_a_newer_question_case_61() -> None:
    desk = Desk("a")
    desk.approvals.close("a")
    desk.questions.append(desk.ask("b"))
    assert str(desk.say(f"/approve {short_id('a')}")).startswith(STALE)
    assert decided(desk)[1] is None


@pytest.mark.parametrize("text", ["/approve", "/deny"])
def test_a_command_that_names_none_decides_nothing_that_its_writer_cannot_have_seen_case_61(
    text: str,
) -> None:
    desk = Desk("a")
    long_ago = desk.clock.now() - timedelta(seconds=5)
    assert f"by now: {short_id('a')}" in str(desk.say(text, sent_at=long_ago))
    assert decided(desk) == [None]
    assert desk.say(f"{text} {short_id('a')}", sent_at=long_ago) is not None
    assert decided(desk) == [text == "/approve"]


def test_only_where_a_turn_may_still_wait_a_question_is_kept() -> None:
    desk = Desk("a")
    other = desk.ask("b", OTHER)
    desk.approvals.keep({OTHER})
    assert str(desk.say(f"/approve {short_id('a')}")).startswith(STALE)
    assert not other.over.is_set()
    assert desk.approvals.waits(OTHER)


def test_without_any_question_a_command_says_so_and_a_word_is_an_ordinary_message() -> None:
    desk = Desk()
    assert desk.say("/approve") == "Nothing waits for your approval in this chat."
    assert desk.say("/拒绝") == "这个聊天里没有等待您批准的操作。"
    assert desk.say("yes") is None
    assert desk.say("/help") is None


def test_a_question_of_another_chat_is_not_answered_by_a_word() -> None:
    desk = Desk()
    question = desk.ask("a", OTHER)
    assert desk.say("yes") is None
    assert desk.say("/approve") == "Nothing waits for your approval in this chat."
    assert not question.over.is_set()
    assert desk.approvals.waits(OTHER)
    assert not desk.approvals.waits(MINE)


@pytest.mark.parametrize(
    "changes", [{"sender": STRANGER}, {"group": True}, {"sender": STRANGER, "group": True}]
)
def test_nobody_else_and_no_group_answers(changes: dict[str, Any]) -> None:
    desk = Desk("a")
    assert "only my owner" in str(desk.say(f"/approve {short_id('a')}", **changes)).lower()
    assert desk.say("yes", **changes) is None
    assert decided(desk) == [None]


@pytest.mark.parametrize(
    "changes", [{"files": (RemoteFile("k", FileKind.FILE),)}, {"reference": "m0"}, {"text": "yes please"}]
)
def test_a_word_with_more_to_it_is_an_ordinary_message(changes: dict[str, Any]) -> None:
    desk = Desk("a")
    assert desk.approvals.answer(replace(message("m1", "yes"), **changes)) is None
    assert decided(desk) == [None]


def test_a_word_is_no_answer_to_what_its_writer_cannot_have_seen() -> None:
    desk = Desk("a", shown=False)
    assert desk.say("yes") is None
    desk.questions[0].shown_at = desk.clock.monotonic()
    assert desk.say("yes", sent_at=desk.clock.now() - timedelta(seconds=5)) is None
    desk.platform.ahead_seconds = 5.0
    assert desk.say("yes", sent_at=desk.clock.now()) is None
    assert desk.say("yes", sent_at=desk.clock.now() + timedelta(seconds=4.5)) is not None


@pytest.mark.parametrize("word", ["ok", "OK.", "好", "好的！", "可以", "行", "嗯", "yeah", "没问题"])
def test_a_word_that_may_be_small_talk_approves_nothing_and_is_told_what_does_case_61(word: str) -> None:
    desk = Desk("a")
    said = desk.say(word)
    assert said is not None
    assert f"/approve {short_id('a')}" in said or f"/批准 {short_id('a')}" in said
    assert decided(desk) == [None]
    desk.questions[0].shown_at = None
    assert desk.say(word) is None


def test_a_bare_number_of_a_listed_answer_is_told_how_to_choose_it() -> None:
    desk = Desk("a")
    assert desk.say("1") is None
    desk.questions[0].options = OPTIONS
    assert f"/approve {short_id('a')} 1" in str(desk.say("2"))
    assert desk.say("9") is None
    assert decided(desk) == [None]


def test_an_id_is_known_only_to_who_has_seen_it() -> None:
    desk = Desk("a", shown=False)
    assert desk.say(f"/approve {short_id('a')}", sent_at=desk.clock.now() - timedelta(hours=1)) is not None


async def test_past_its_time_no_answer_counts() -> None:
    desk = Desk("a")
    await desk.clock.advance(600)
    assert str(desk.say(f"/approve {short_id('a')}")).startswith(STALE)
    assert decided(desk) == [None]


def test_a_question_that_is_open_is_not_opened_again() -> None:
    desk = Desk("a")
    assert desk.approvals.open("a", MINE, 600) is desk.questions[0]


async def test_a_question_that_nobody_took_up_again_is_forgotten_at_last() -> None:
    desk = Desk("a")
    await desk.clock.advance(600)
    desk.ask("b")
    assert desk.approvals.open("a", MINE, 600) is desk.questions[0]
    await desk.clock.advance(3600)
    desk.ask("c")
    assert desk.approvals.open("a", MINE, 600) is not desk.questions[0]


def test_a_turn_that_was_not_given_its_answer_has_asked_still() -> None:
    desk = Desk("a")
    desk.say("/approve")
    assert (desk.approvals.waits(MINE), desk.approvals.has_asked(MINE)) == (False, True)
    desk.approvals.close("a")
    assert not desk.approvals.has_asked(MINE)


def test_all_of_a_chat_are_closed_together() -> None:
    desk = Desk("a", "b")
    other = desk.ask("c", OTHER)
    desk.approvals.close_all(MINE)
    assert desk.say("/approve") == "Nothing waits for your approval in this chat."
    assert desk.say(f"/approve {other.id}") is not None


def test_ids_are_short_and_hold_nothing_that_is_taken_for_another() -> None:
    ids = {short_id(str(n)) for n in range(2000)}
    assert len(ids) == 2000
    assert {len(one) for one in ids} == {5}
    assert not set("".join(ids)) & set("01iloIO")


def test_a_question_is_shown_with_its_last_part() -> None:
    desk = Desk("a", shown=False)
    desk.questions[0].reply_id = "r1"

    for part in (Part("r2", 1), Part("r1", 0)):
        desk.approvals.taken(cast(Any, part), desk.clock.monotonic())
    assert desk.questions[0].shown_at is None
    desk.approvals.taken(cast(Any, Part("r1", 1)), desk.clock.monotonic())
    assert desk.questions[0].shown_at == desk.clock.monotonic()


def test_a_question_that_was_asked_for_is_shown_once_it_was_received() -> None:
    desk = Desk("a", shown=False)
    last = SimpleNamespace(reply_id="r1", part=0, parts=1, part_id=7, to="you")
    desk.questions[0].reply_id, desk.questions[0].last = "r1", cast(Any, last)
    desk.approvals.collected(6, "")
    desk.approvals.collected(7, "other")
    assert desk.questions[0].shown_at is None
    desk.approvals.collected(7, "you")
    assert desk.questions[0].shown_at == desk.clock.monotonic()


def button(desk: Desk, approval_id: str, label: str, language: Language = Language.EN) -> str:
    """What the button with that label tells when it is pressed."""
    return next(one.value for one in choices_of(approval_id, (), language) if one.label == label)


def test_a_button_answers_its_own_question_once_and_says_so_in_its_language_case_61() -> None:
    desk = Desk("a", "b")
    assert (
        desk.say("", pressed=button(desk, "b", "拒绝", Language.ZH))
        == f"已拒绝（{short_id('b')}），我不会执行。"
    )
    assert decided(desk) == [None, False]
    again = desk.say("", pressed=button(desk, "b", "Allow"))
    assert str(again).startswith(STALE)
    assert decided(desk) == [None, False]
    assert str(desk.say("", pressed=button(desk, "gone", "Allow"))).startswith(STALE)


@pytest.mark.parametrize("changes", [{"sender": STRANGER}, {"group": True}])
def test_a_button_that_somebody_else_pressed_or_elsewhere_changes_nothing(changes: dict[str, Any]) -> None:
    desk = Desk("a")
    said = desk.say("", pressed=button(desk, "a", "Allow"), **changes)
    assert "only my owner" in str(said).lower()
    assert decided(desk) == [None]


@pytest.mark.parametrize("number", ["x", "-1", "1.5", "²", "9" * 5000])
def test_a_button_with_a_number_that_is_none_changes_nothing(number: str) -> None:
    desk = Desk("a")
    desk.questions[0].options = OPTIONS
    assert "a number from 1 to 3" in str(desk.say("", pressed=f"approve-{number}:a:en"))
    assert decided(desk) == [None]


@pytest.mark.parametrize("pressed", ["x", "approve:a", "approve:a:fr", "confirm:a:en"])
def test_buttons_of_others_are_left_to_others(pressed: str) -> None:
    desk = Desk("a")
    assert desk.say("yes", pressed=pressed) is None
    assert decided(desk) == [None]


def test_a_question_has_its_buttons_under_its_last_part_as_long_as_it_waits() -> None:
    desk = Desk("a")
    question = desk.questions[0]
    question.reply_id, question.choices = "r1", choices_of("a", (), Language.EN)
    first, last, other = Part("r1", 0), Part("r1", 1), Part("r2", 1)
    assert [len(desk.approvals.choices(cast(Any, part))) for part in (first, last, other)] == [0, 2, 0]
    question.decide(Answer(True))
    assert desk.approvals.choices(cast(Any, last)) == ()


OPTIONS = (
    ApprovalOption(id="once", label="Yes", allows=True),
    ApprovalOption(id="each", label="Yes, " + "each " * 50, allows=True),
    ApprovalOption(id="no", label="No", allows=False),
)


@pytest.mark.parametrize(
    ("text", "answer"),
    [
        ("/approve {id} 2", Answer(True, "each")),
        ("/approve {id} 3", Answer(False, "no")),
        ("/deny {id} 3", Answer(False, "no")),
        ("/批准 1", Answer(True, "once")),
        ("/approve {id}", Answer(True)),
        ("yes", Answer(True)),
        ("/deny", Answer(False)),
    ],
)
def test_a_question_with_options_is_answered_by_number_or_by_yes_and_no(text: str, answer: Answer) -> None:
    desk = Desk("a")
    desk.questions[0].options = OPTIONS
    assert desk.say(text.format(id=short_id("a"))) is not None
    assert desk.questions[0].answer == answer
    assert desk.questions[0].over.is_set()


@pytest.mark.parametrize("text", ["/approve {id} 4", "/approve {id} 0", "/deny {id} 1"])
def test_a_number_that_is_no_option_of_that_kind_changes_nothing(text: str) -> None:
    desk = Desk("a")
    desk.questions[0].options = OPTIONS
    assert "a number from 1 to 3" in str(desk.say(text.format(id=short_id("a"))))
    assert decided(desk) == [None]


def test_each_option_has_a_button_and_a_press_chooses_it() -> None:
    desk = Desk("a")
    desk.questions[0].options = OPTIONS
    buttons = choices_of("a", OPTIONS, Language.EN)
    assert [one.label for one in buttons][::2] == ["Yes", "No"]
    assert len(buttons[1].label.encode()) <= 60
    desk.say("", pressed=buttons[1].value)
    assert desk.questions[0].answer == Answer(True, "each")
    assert str(desk.say("", pressed=buttons[2].value)).startswith(STALE)


def test_two_options_are_a_plain_yes_or_no() -> None:
    assert [one.label for one in choices_of("a", OPTIONS[1:], Language.EN)] == ["Allow", "Refuse"]


class Part:
    """All that is looked at of one."""

    def __init__(self, reply_id: str, part: int) -> None:
        self.reply_id, self.part, self.parts = reply_id, part, 2
