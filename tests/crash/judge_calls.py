"""Calls that are put to the owner: each runs once for a yes of theirs, and never without one."""

from collections import defaultdict

from bridge.channel.testing.fakes.feishu import OWNER
from tests.crash.agent import left
from tests.crash.journal import Message, Question
from tests.crash.place import APPROVAL_SECONDS, WEBHOOK_OWNER
from tests.crash.record import Record
from tests.crash.saying import DENY, NO, PRESS, decided

_OWNERS = frozenset({OWNER, WEBHOOK_OWNER})
_LATE_SECONDS = APPROVAL_SECONDS - 1.0  # an answer from then on may come as the question ends


def judge_calls(record: Record) -> None:
    verdict, counts = record.verdict, record.verdict.counts
    questions: dict[tuple[str, str], list[Question]] = defaultdict(list)
    for question in record.journal.questions.values():
        questions[question.account, question.token].append(question)
    counts["questions asked"] = len(record.journal.questions)
    for message in record.journal.messages.values():
        ran = record.trace.ran_at.get(message.token, [])
        if len(ran) > 1:
            verdict.breach("a call ran twice", message, f"{len(ran)} times")
        if ran and message.account in record.place.asking_accounts:
            counts["calls that ran"] += 1
            _judge_run(record, message, ran[0], questions[message.account, message.token])
    given = _judge_decisions(record)
    for (account, id_), ways in given.items():
        _judge_given(record, record.journal.questions.get((account, id_)), ways)


def _judge_run(record: Record, message: Message, ran_at: float, questions: list[Question]) -> None:
    """Some owner's yes came before it that may have meant it."""
    verdict = record.verdict
    if message.sender not in _OWNERS:
        verdict.breach("a stranger's call ran", message)
    if not questions:
        verdict.breach("a call ran unasked", message)
        return
    ids = {question.id for question in questions}
    if not any(
        _allowed(record, one, message.account, ids, ran_at) for one in record.journal.messages.values()
    ):
        verdict.breach("a call ran without a yes", message, str(sorted(ids)))


def _allowed(record: Record, one: Message, account: str, ids: set[str], ran_at: float) -> bool:
    """Whether that message may have let a call run that was asked under ``ids``."""
    if one.account != account or one.sender not in _OWNERS or not one.approves or not one.command:
        return False
    if one.sent_at > ran_at or (one.question and one.question not in ids):
        return False
    if one.command == PRESS:
        return True
    said = [decided(text) for text in record.text_to(one).split("\n") if text]
    return not said or any(found and found[0] in ids and found[1] for found in said)


def _judge_decisions(record: Record) -> dict[tuple[str, str], list[tuple[Message, bool]]]:
    """What people were told about their answers, by account and question; each was their own to give."""
    given: dict[tuple[str, str], list[tuple[Message, bool]]] = defaultdict(list)
    for message in record.journal.messages.values():
        told = record.text_to(message) if message.command else ""
        if (found := decided(told)) is None:
            continue
        id_, approved = found
        given[message.account, id_].append((message, approved))
        if message.sender not in _OWNERS:
            record.verdict.breach("a stranger's answer counted", message, id_)
        if message.question and message.question != id_:
            record.verdict.breach("an answer counted for another question", message, id_)
        if approved != message.approves:
            record.verdict.breach("an answer counted as its contrary", message, id_)
    return given


def _judge_given(record: Record, question: Question | None, ways: list[tuple[Message, bool]]) -> None:
    """A call that was allowed in time, and never refused, ran where its turn came to its end."""
    if question is None:
        return
    approved = all(approved for _, approved in ways)
    record.verdict.counts["questions that were allowed" if approved else "questions that were refused"] += 1
    in_time = all(one.acknowledged_at < question.shown_at + _LATE_SECONDS for one, _ in ways)
    message = record.journal.of(question.account, question.token)
    if message is None or not (approved and in_time) or record.trace.ran_at.get(question.token):
        return
    if any(_may_refuse(one, question) for one in record.journal.messages.values()):
        return
    if any(left(question.token) in record.text_to(one) for one in record.journal.messages.values()):
        record.verdict.breach("a call was allowed and did not run", message, question.id)


def _may_refuse(one: Message, question: Question) -> bool:
    """Whether an owner said a no that may have meant it."""
    if one.account != question.account or one.sender not in _OWNERS or not one.command or one.approves:
        return False
    return one.question in ("", question.id) and one.command in (DENY, NO, PRESS)
