"""Whether anything was lost, doubled, out of order or told to a log.

The judge knows the daemon only from outside: what was acknowledged, what people saw, which turns ran, and the
database once everything has come to rest. Commands and calls are judged in files of their own.
"""

import re
from collections import Counter, defaultdict
from collections.abc import Iterator
from itertools import pairwise

from bridge.store.change_steps import ALONG, RECALLED, STOPPED
from tests.crash import trace
from tests.crash.agent import file_name
from tests.crash.journal import Journal, Message
from tests.crash.judge_calls import judge_calls
from tests.crash.judge_choices import judge_choices
from tests.crash.judge_commands import judge_commands
from tests.crash.operator import UNPROMPTED
from tests.crash.place import Place
from tests.crash.record import GIVEN_UP, NOTICES, Record, Replies, Row, Verdict, read_replies, stored
from tests.crash.saying import SAID
from tests.crash.wishes import EDITED, LONG_LINES, TOKEN

_SILENT = frozenset({RECALLED, STOPPED})  # reasons for which nothing is said
_REASONS = frozenset({*NOTICES.values(), "missed", ALONG, *_SILENT})
RECALL_SECONDS = 1.5  # a sending that was under way as a recall came is seen by then


def judge(place: Place, journal: Journal) -> Verdict:
    verdict = Verdict()
    rows = stored(place.home.db, verdict)
    replies, carried = read_replies(journal)
    record = Record(place, journal, rows, replies, carried, trace.read(place.turns), verdict)
    for message in journal.messages.values():
        if (row := _accepted(record, message)) is not None and not message.command:
            _judge(record, message, row)
    known = {message.token for message in journal.messages.values()}
    for token in set(record.trace.turns) - known:
        verdict.breach("a turn of no message", more=token)
    _judge_together(record)
    judge_commands(record)
    judge_calls(record)
    judge_choices(record)
    _judge_order(record)
    _judge_posted(journal, verdict)
    _judge_log(place, journal, verdict)
    verdict.counts["turns"] = sum(record.trace.turns.values())
    return verdict


def _accepted(record: Record, message: Message) -> Row | None:
    """Its row, where it was taken and is over."""
    verdict, row = record.verdict, record.row(message)
    verdict.counts["commands" if message.command else "messages"] += 1
    verdict.counts["repeated after their 200"] += len(message.again)
    if not message.acknowledged:
        verdict.breach("never acknowledged", message)
    if row is None:
        verdict.breach("acknowledged and not stored" if message.acknowledged else "not stored", message)
        return None
    if row.state not in ("done", "seen"):
        verdict.breach("not over", message, f"state {row.state}")
    _judge_doubles(message, record.replies_to(message), verdict)
    return row


def _judge(record: Record, message: Message, row: Row) -> None:
    verdict, replies, turns = record.verdict, record.replies_to(message), record.trace.turns[message.token]
    if turns > 1:
        verdict.breach("ran twice", message, f"{turns} turns")
    _judge_recall(message, turns, replies, verdict)
    answers = [text for text in [*replies.texts, *replies.marked] if text not in NOTICES]
    notices = [NOTICES.get(text, "missed") for text in replies.notices]
    notices += [NOTICES[text] for text in replies.marked if text in NOTICES]
    if answers and notices:
        verdict.breach("answered and reported", message, notices[0])
    if len(set(notices)) > 1:
        verdict.breach("reported twice", message, str(notices))
    if not turns and not notices and row.reason not in _REASONS:
        verdict.breach("no turn and no reason", message, f"reason {row.reason!r}")
    if answers:
        verdict.counts["answered"] += 1
        _judge_answer(record, message, row, answers)
    elif notices:
        verdict.counts[f"reported as {notices[0]}"] += 1
    else:
        _judge_silence(record, message, row)


def _judge_doubles(message: Message, replies: Replies, verdict: Verdict) -> None:
    verdict.counts["parts sent again with a mark"] += len(replies.marked)
    for kind, values in (("text", replies.texts + replies.notices), ("file", replies.files)):
        for value, times in Counter(values).items():
            if times > 1:
                verdict.breach(f"a {kind} was doubled without a mark", message, f"{times}: {value[:60]!r}")


def _judge_recall(message: Message, turns: int, replies: Replies, verdict: Verdict) -> None:
    """What was taken back gets nothing any more; what was taken back before it came never ran."""
    if not message.recalled_at:
        return
    verdict.counts["recalled"] += 1
    if replies.last_at > message.recalled_at + RECALL_SECONDS:
        late = replies.last_at - message.recalled_at
        verdict.breach("answered after its recall", message, f"{late:.1f} s")
    if message.recalled_first and (turns or replies.last_at):
        verdict.breach("ran although it was recalled before", message, f"{turns} turns")


def _judge_silence(record: Record, message: Message, row: Row) -> None:
    """Nobody saw a reply to this very message: there is a record of why, or it is lost."""
    counts = record.verdict.counts
    if message.token in record.carried:
        counts["answered later, carried by a reply"] += 1
    elif row.reason == RECALLED:
        counts["recalled in time"] += 1
    elif row.reason == STOPPED:
        counts["stopped"] += 1
    elif row.reason == ALONG:
        _judge_along(record, message, row)
    elif message.anonymous and row.reason in _REASONS and set(row.parts) == {"sent"}:
        counts[f"reported as {row.reason}"] += 1
    elif row.reason == "busy":
        counts["busy without a notice of its own"] += 1
    elif set(row.parts) & GIVEN_UP:
        counts["dead letters, as the platform refused"] += 1
    else:
        told = f"state {row.state}, reason {row.reason!r}"
        record.verdict.breach("no answer and no report", message, told)


def _judge_along(record: Record, message: Message, row: Row) -> None:
    """The reply to a later message is for this one, too, or tells of both, unless that could not be seen."""
    later = list(_until_one_ends_otherwise(record.after(message, row)))
    tellers = [one for one, _ in later if message.token in record.text_to(one)]
    lost = any(one.recalled_at or record.is_given_up(one) for one, _ in later)
    if tellers:
        record.verdict.counts["answered together with another"] += 1
        if not lost:
            _judge_whole(record, message, tellers[0])
    elif lost:
        record.verdict.counts["answered together with one that could not be delivered"] += 1
    elif any(record.replies_to(one).notices for one, _ in later):
        record.verdict.counts["reported together with another"] += 1
    else:
        record.verdict.breach("answered along, and no reply has it", message)


def _until_one_ends_otherwise(later: list[tuple[Message, Row]]) -> Iterator[tuple[Message, Row]]:
    """As many as a turn may have had together."""
    for message, row in later:
        yield message, row
        if row.reason not in (ALONG, *_SILENT):
            return


def _judge_together(record: Record) -> None:
    """One reply answers a message, whoever else is answered by it."""
    tellers: dict[tuple[str, str], list[str]] = defaultdict(list)
    for message in record.journal.messages.values():
        for token in set(TOKEN.findall(record.text_to(message))) if not message.command else ():
            tellers[message.account, token].append(message.handle)
    for (account, token), handles in tellers.items():
        if len(handles) > 1:
            record.verdict.breach("answered by two replies", more=f"{account} {token} {handles}")
    record.verdict.counts["collected"] = record.trace.together
    record.verdict.counts["steered"] = record.trace.steered_in.total()


def _judge_answer(record: Record, message: Message, row: Row, answers: list[str]) -> None:
    verdict, token = record.verdict, message.token
    if not record.trace.turns[token]:
        verdict.breach("answered without a turn", message)
    if row.reason in _SILENT and not message.recalled_at:
        verdict.breach("answered although it had ended", message, row.reason)
    whole = "\n".join(answers)
    foreign = set(TOKEN.findall(whole)) - {token} - record.trace.with_others[token]
    if foreign or token not in whole:
        verdict.breach("answered with another's answer", message, str(sorted(foreign)))
    if not set(row.parts) & GIVEN_UP:  # else what is missing is recorded
        _judge_whole(record, message, message)


def _judge_whole(record: Record, message: Message, teller: Message) -> None:
    """All that it asked for is in the reply to ``teller``."""
    verdict, replies, token = record.verdict, record.replies_to(teller), message.token
    row, whole = record.row(message), record.text_to(teller)
    revision = row.revision if row else 0
    if (f"answer {token}{EDITED}" in whole) != (revision > 0):
        verdict.breach("an edit was lost or undone", message, f"revision {revision}")
    verdict.counts["edited in time"] += revision > 0
    lines = {int(line) for line in re.findall(rf"{token} line (\d{{4}})\.", whole)}
    if message.wants_long and lines != set(range(LONG_LINES)):
        verdict.breach("a long answer is not whole", message)
    was_asked = not record.trace.steered_in[token]  # what a turn takes in on its way, it only answers
    if message.wants_file and was_asked and file_name(token) not in [*replies.files, *replies.marked]:
        verdict.breach("its file is missing", message)


def _judge_order(record: Record) -> None:
    """Within a conversation, replies are seen in the order in which the messages were claimed."""
    lines: dict[tuple[str, str], list[tuple[int, int, Message]]] = defaultdict(list)
    for message in record.journal.messages.values():
        row, found = record.row(message), record.replies_to(message)
        if row is not None and found.first >= 0 and row.reason not in ("busy", SAID):
            lines[message.account, row.conversation].append((row.id, found.first, message))
    for line in lines.values():
        line.sort(key=lambda one: one[0])
        for (_, earlier, _), (_, later, message) in pairwise(line):
            if later < earlier:
                record.verdict.breach("out of order", message)


def _judge_posted(journal: Journal, verdict: Verdict) -> None:
    texts = Counter(
        one.text
        for seen in journal.seen.values()
        for one in seen
        if not one.to and one.text.startswith(UNPROMPTED)
    )
    shown = " ".join(one.text for seen in journal.seen.values() for one in seen)
    for token in journal.posted:
        times = texts[f"{UNPROMPTED} {token}"]
        verdict.counts["unprompted"] += 1
        retried = journal.retried[token]
        if times > 1 + retried:
            told = f"{token}: seen {times} times, sent once more {retried} times"
            verdict.breach("an unprompted message was doubled", more=told)
        if not times and token not in shown:
            verdict.counts["unprompted and refused"] += 1


def _judge_log(place: Place, journal: Journal, verdict: Verdict) -> None:
    log = place.log.read_text(errors="replace")
    for number, secret in enumerate(place.secrets):
        if secret in log or secret.removeprefix("whsec_") in log:
            verdict.breach("a secret is in the log", more=f"number {number}")
    if TOKEN.search(log):
        verdict.breach("a message's text is in the log")
    for sender in {message.sender for message in journal.messages.values()}:
        if sender in log:
            verdict.breach("a sender's id is in the log", more=sender)
    if "Traceback" in log:
        verdict.breach("a traceback is in the log")
