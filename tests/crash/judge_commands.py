"""Commands: each is answered once, by what answers it, and a ``/stop`` ends what it says that it ends."""

from collections import defaultdict

from bridge.store.change_steps import ALONG, STOPPED
from tests.crash.choosing import is_choice
from tests.crash.journal import Message
from tests.crash.record import Record, Row
from tests.crash.saying import NO, PRESS, SAID, STOP, YES, is_answer

_TOO_MANY = "too_many_commands"
_AS_MESSAGES = frozenset({YES, NO})  # with nothing to answer, these are ordinary words
_ANSWERED = frozenset({"", ALONG})


def judge_commands(record: Record) -> None:
    words = presses = 0
    for message in record.journal.messages.values():
        row = record.row(message)
        if not message.command or row is None or is_choice(message):
            continue
        if message.command in _AS_MESSAGES and row.reason != SAID:
            words += 1
        elif message.command == PRESS:
            presses += 1
        else:
            _judge_command(record, message, row)
    record.verdict.counts["buttons pressed"] = presses
    if record.trace.wordless > words:
        told = f"{record.trace.wordless} of {words}"
        record.verdict.breach("more turns of nothing than words that ask for nothing", more=told)
    _judge_presses(record)
    _judge_stops(record)


def _judge_command(record: Record, message: Message, row: Row) -> None:
    verdict, replies = record.verdict, record.replies_to(message)
    if row.reason not in (SAID, _TOO_MANY):
        verdict.breach(
            "a command was taken for something else", message, f"{message.command}: {row.reason!r}"
        )
        return
    said = [*replies.texts, *replies.notices]
    if len(said) > 1:
        verdict.breach("a command was answered twice", message, f"{message.command}: {len(said)} times")
    for text in [*said, *replies.marked]:
        if not is_answer(message.command, text):
            verdict.breach("no answer to a command", message, f"{message.command}: {text[:60]!r}")
    if said or replies.marked:
        verdict.counts[f"answered /{message.command}"] += 1
    elif row.reason == _TOO_MANY or record.is_given_up(message):
        verdict.counts["commands that nobody could be told about"] += 1
    else:
        verdict.breach("a command was not answered", message, message.command)


def _judge_presses(record: Record) -> None:
    """Presses of one card are answered under it: no more answers than presses, and each an answer."""
    presses: dict[tuple[str, str], int] = defaultdict(int)
    for message in record.journal.messages.values():
        if message.command == PRESS:
            presses[message.account, message.card] += 1
    for (account, card), count in presses.items():
        replies = record.replies.get((account, card))
        said = replies.texts if replies is not None else []
        if len(said) > count:
            told = f"{account} {card}: {len(said)} answers to {count} presses"
            record.verdict.breach("a press was answered twice", more=told)
        for text in said:
            if not is_answer(PRESS, text):
                record.verdict.breach("no answer to a press", more=f"{account} {card}: {text[:60]!r}")


def _judge_stops(record: Record) -> None:
    """What was claimed before a stop either ended with it or was over by then."""
    stops: dict[tuple[str, str], list[tuple[int, float]]] = defaultdict(list)
    for message in record.journal.messages.values():
        row = record.row(message)
        if message.command == STOP and row is not None and row.reason == SAID and message.acknowledged:
            stops[message.account, row.conversation].append((row.id, message.acknowledged_at))
    for message in record.journal.messages.values():
        row = record.row(message)
        if message.command or row is None:
            continue
        later = [at for id_, at in stops[message.account, row.conversation] if id_ > row.id]
        ended_at = record.trace.ended_at.get(message.token, 0.0)
        if row.reason == STOPPED and not later:
            record.verdict.breach("stopped by nothing", message)
        if row.reason in _ANSWERED and later and ended_at > min(later):
            told = f"{ended_at - min(later):.2f} s later"
            record.verdict.breach("answered although it was stopped", message, told)
