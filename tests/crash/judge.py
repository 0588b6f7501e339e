"""Whether anything was lost, doubled, out of order or told to a log.

The judge knows the daemon only from outside: what was acknowledged, what people saw, which turns ran, and the
database once everything has come to rest.
"""

import re
import sqlite3
from collections import Counter, defaultdict
from dataclasses import dataclass, field
from itertools import pairwise
from pathlib import Path

from bridge.relay.texts import Language, Text, say
from bridge.store.change_steps import RECALLED
from tests.crash.agent import EDITED, LONG_LINES, TOKEN, file_name
from tests.crash.journal import Journal, Message, Seen
from tests.crash.operator import UNPROMPTED
from tests.crash.place import Place

MARK = say(Text.REPEAT, Language.EN) + "\n"
EARLIER, LATEST = say(Text.EARLIER, Language.EN), say(Text.LATEST, Language.EN)
_REASONED = (Text.BUSY, Text.INTERRUPTED, Text.FAILURE, Text.UNREADABLE_DOWNLOAD)
NOTICES = {say(text, Language.EN): text.value for text in _REASONED}
_REASONS = frozenset({*NOTICES.values(), "missed", RECALLED})
RECALL_SECONDS = 1.5  # a sending that was under way as a recall came is seen by then
_MISSED = say(Text.MISSED, Language.EN)
_UNASKED = frozenset(say(text, Language.EN) for text in (Text.CRASHED,))  # about no message
_SHOWN_TWICE = "(2) "
_LINE = re.compile(r"line (\d{4})\.")
_GIVEN_UP = frozenset({"refused", "skipped", "expired", "unknown"})


@dataclass
class Row:
    """A stored message, and the states of its reply's parts."""

    id: int
    conversation: str
    state: str
    reason: str
    revision: int
    parts: list[str] = field(default_factory=list)


@dataclass
class Verdict:
    breaches: list[str] = field(default_factory=list)
    counts: Counter[str] = field(default_factory=Counter)

    def breach(self, kind: str, message: Message | None = None, more: str = "") -> None:
        about = f" {message.account} {message.message_id} {message.token}" if message else ""
        self.breaches.append(f"{kind}:{about} {more}".rstrip())


@dataclass
class Replies:
    """What was seen in reply to one message. ``marked`` are texts and names that were visibly repeated."""

    notices: list[str] = field(default_factory=list)
    texts: list[str] = field(default_factory=list)
    files: list[str] = field(default_factory=list)
    marked: list[str] = field(default_factory=list)
    first: int = -1
    last_at: float = 0.0


def judge(place: Place, journal: Journal) -> Verdict:
    verdict = Verdict()
    rows = stored(place.home.db, verdict)
    turns = Counter(place.turns.read_text().split()) if place.turns.exists() else Counter[str]()
    replies, carried = read_replies(journal)
    for message in journal.messages.values():
        found = replies[message.account, message.handle]
        _judge(message, _row(rows, message), turns[message.token], found, message.token in carried, verdict)
    known = {message.token for message in journal.messages.values()}
    for token in set(turns) - known:
        verdict.breach("a turn of no message", more=token)
    _judge_order(journal, rows, replies, verdict)
    _judge_posted(journal, rows, verdict)
    _judge_log(place, journal, verdict)
    verdict.counts["turns"] = sum(turns.values())
    return verdict


def stored(path: Path, verdict: Verdict) -> dict[tuple[str, str], Row]:
    """All messages by account and id; also judges whether the database is sound and at rest."""
    db = sqlite3.connect(f"file:{path}?mode=ro", uri=True)
    try:
        check = [row[0] for row in db.execute("PRAGMA integrity_check")]
        if check != ["ok"]:
            verdict.breach("the database is damaged", more=str(check[:3]))
        rows = {}
        by_id = {}
        for id_, account, message_id, *fields in db.execute(
            "SELECT id, account, message_id, conversation, state, reason, revision FROM messages ORDER BY id"
        ):
            by_id[id_] = row = Row(id_, *fields)
            if (account, message_id) in rows:
                verdict.breach("stored twice", more=f"{account} {message_id}")
            rows[account, message_id] = row
        for id_, state in db.execute("SELECT message, state FROM parts"):
            if id_ in by_id:
                by_id[id_].parts.append(state)
            if state in ("pending", "sending"):
                verdict.breach("a part that is not over", more=f"of message {id_}")
    finally:
        db.close()
    return rows


def read_replies(journal: Journal) -> tuple[dict[tuple[str, str], Replies], set[str]]:
    """What was seen, by message; and the tokens of earlier replies that later ones carried along."""
    found: dict[tuple[str, str], Replies] = defaultdict(Replies)
    carried: set[str] = set()
    for account, seen in journal.seen.items():
        for number, one in enumerate(seen):
            replies = found[account, one.to]
            replies.first = number if replies.first < 0 else replies.first
            replies.last_at = one.at
            _sort(one, replies, carried)
    return found, carried


def _sort(one: Seen, replies: Replies, carried: set[str]) -> None:
    text, file = one.text, one.file
    if file:
        (replies.marked if file.startswith(_SHOWN_TWICE) else replies.files).append(
            file.removeprefix(_SHOWN_TWICE)
        )
        return
    marked = text.startswith(MARK)
    text = text.removeprefix(MARK)
    if EARLIER in text or text.startswith(LATEST):
        before, latest, after = text.rpartition(LATEST)
        carried.update(TOKEN.findall(before if latest else text))
        if not latest:  # it went ahead of the next reply, in a message of its own
            return
        text = after.strip()
    if text in _UNASKED:
        return
    if marked:
        replies.marked.append(text)
    elif text in NOTICES or text.startswith(_MISSED):
        replies.notices.append(text)
    else:
        replies.texts.append(text)


def _row(rows: dict[tuple[str, str], Row], message: Message) -> Row | None:
    return rows.get((message.account, message.message_id))


def _judge(
    message: Message, row: Row | None, turns: int, replies: Replies, carried: bool, verdict: Verdict
) -> None:
    counts = verdict.counts
    counts["messages"] += 1
    counts["repeated after their 200"] += len(message.again)
    if not message.acknowledged:
        verdict.breach("never acknowledged", message)
    if row is None:
        verdict.breach("acknowledged and not stored" if message.acknowledged else "not stored", message)
        return
    if row.state not in ("done", "seen"):
        verdict.breach("not over", message, f"state {row.state}")
    if turns > 1:
        verdict.breach("ran twice", message, f"{turns} turns")
    _judge_replies(message, row, turns, replies, carried, verdict)


def _judge_replies(
    message: Message, row: Row, turns: int, replies: Replies, carried: bool, verdict: Verdict
) -> None:
    _judge_doubles(message, replies, verdict)
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
        _judge_answer(message, row, turns, answers, replies, verdict)
    elif notices:
        verdict.counts[f"reported as {notices[0]}"] += 1
    else:
        _judge_silence(message, row, carried, verdict)


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


def _judge_silence(message: Message, row: Row, carried: bool, verdict: Verdict) -> None:
    """Nobody saw a reply to this very message: there is a record of why, or it is lost."""
    if carried:
        verdict.counts["answered later, carried by a reply"] += 1
    elif row.reason == RECALLED:
        verdict.counts["recalled in time"] += 1
    elif message.anonymous and row.reason in _REASONS and set(row.parts) == {"sent"}:
        verdict.counts[f"reported as {row.reason}"] += 1
    elif row.reason == "busy":
        verdict.counts["busy without a notice of its own"] += 1
    elif set(row.parts) & _GIVEN_UP:
        verdict.counts["dead letters, as the platform refused"] += 1
    else:
        verdict.breach("no answer and no report", message, f"state {row.state}, reason {row.reason!r}")


def _judge_answer(
    message: Message, row: Row, turns: int, answers: list[str], replies: Replies, verdict: Verdict
) -> None:
    if not turns:
        verdict.breach("answered without a turn", message)
    whole = "\n".join(dict.fromkeys(answers))
    foreign = set(TOKEN.findall(whole)) - {message.token}
    if foreign or message.token not in whole:
        verdict.breach("answered with another's answer", message, str(sorted(foreign)))
    if set(row.parts) & _GIVEN_UP:
        return  # what is missing is recorded
    if (EDITED in whole) != (row.revision > 0):
        verdict.breach("an edit was lost or undone", message, f"revision {row.revision}")
    verdict.counts["edited in time"] += row.revision > 0
    if message.wants_long and sorted(map(int, _LINE.findall(whole))) != list(range(LONG_LINES)):
        verdict.breach("a long answer is not whole", message)
    if message.wants_file and file_name(message.token) not in [*replies.files, *replies.marked]:
        verdict.breach("its file is missing", message)


def _judge_order(
    journal: Journal,
    rows: dict[tuple[str, str], Row],
    replies: dict[tuple[str, str], Replies],
    verdict: Verdict,
) -> None:
    """Within a conversation, replies are seen in the order in which the messages were claimed."""
    lines: dict[tuple[str, str], list[tuple[int, int, Message]]] = defaultdict(list)
    for message in journal.messages.values():
        row, found = _row(rows, message), replies.get((message.account, message.handle))
        if row is not None and found is not None and found.first >= 0 and row.reason != "busy":
            lines[message.account, row.conversation].append((row.id, found.first, message))
    for line in lines.values():
        line.sort(key=lambda one: one[0])
        for (_, earlier, _), (_, later, message) in pairwise(line):
            if later < earlier:
                verdict.breach("out of order", message)


def _judge_posted(journal: Journal, rows: dict[tuple[str, str], Row], verdict: Verdict) -> None:
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
