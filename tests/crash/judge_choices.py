"""Choices: each is answered once, and what was chosen is in effect from then on, whatever was killed."""

from tests.crash.choosing import ACCOUNT, FIRST, chosen, is_answer, is_choice, is_chosen, seen
from tests.crash.journal import Message
from tests.crash.place import WEBHOOK_OWNER
from tests.crash.record import NOTICES, Record, Row
from tests.crash.saying import SAID
from tests.crash.trace import Where

_CHOSEN = "chosen"  # the reason of what was done in its turn
_SILENT = frozenset({"stopped"})


def judge_choices(record: Record) -> None:
    """All that the owner said there, in the order in which it was claimed.

    A command that nobody was told to have taken effect may have, or not.
    """
    possible = {FIRST}
    for message, row in _said(record):
        if is_choice(message):
            told = _judge_answer(record, message, row)
            after = {chosen(message, one) for one in possible}
            possible = after if told else possible | after
        elif message.token in record.trace.where:
            possible = {_judge_turn(record, message, possible)}


def _said(record: Record) -> list[tuple[Message, Row]]:
    found = [
        (message, row)
        for message in record.journal.messages.values()
        if message.account == ACCOUNT and message.sender == WEBHOOK_OWNER
        if (row := record.row(message)) is not None and row.reason != SAID
    ]
    return sorted(found, key=lambda one: one[1].id)


def _judge_turn(record: Record, message: Message, possible: set[Where]) -> Where:
    """Where it ran."""
    where = seen(record.trace.where[message.token], record.place.work)
    record.verdict.counts[f"turns of {where.agent} that were chosen"] += 1
    if where not in possible:
        told = f"{tuple(where)}, not {sorted(map(tuple, possible))}"
        record.verdict.breach("what was chosen is not in effect", message, told)
    return where


def _judge_answer(record: Record, message: Message, row: Row) -> bool:
    """Whether people were told that it took effect."""
    verdict, replies = record.verdict, record.replies_to(message)
    said = [*replies.texts, *replies.notices]
    if len(said) > 1:
        verdict.breach("a choice was answered twice", message, f"{message.command}: {len(said)} times")
    if row.reason == _CHOSEN:
        for text in {*said, *replies.marked}:
            if not is_answer(message, text):
                verdict.breach("no answer to a choice", message, f"{message.command}: {text[:80]!r}")
    elif row.reason not in {*NOTICES.values(), "missed", *_SILENT}:
        verdict.breach("a choice was taken for something else", message, f"reason {row.reason!r}")
    if said or replies.marked:
        verdict.counts[f"{'answered' if row.reason == _CHOSEN else 'reported'} /{message.command}"] += 1
    elif row.reason not in (*_SILENT, "busy", "missed") and not record.is_given_up(message):
        verdict.breach("a choice was not answered", message, message.command)
    return any(is_chosen(message, text) for text in [*said, *replies.marked])
