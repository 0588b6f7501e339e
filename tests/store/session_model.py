"""What the store does with sessions, told in dictionaries; with messages, as far as sessions depend on it."""

from __future__ import annotations

from dataclasses import dataclass, field

from bridge.ids import ConversationKey, MessageId, SessionId, TurnId
from bridge.store.contract import (
    Answer,
    BeginTurn,
    BindSession,
    BoundSession,
    Claim,
    ClearSession,
    EndTurn,
    OpenSession,
    Prune,
    ReserveSeq,
    SessionRecord,
    Start,
    Step,
    StoredSession,
    UnbindSession,
)


@dataclass
class Stored:
    """One session."""

    record: SessionRecord
    seq: int
    created_ms: int
    used_ms: int
    history: list[str] = field(default_factory=list)
    last_turn: tuple[bytes, ...] = ()
    turns: list[tuple[TurnId, str]] = field(default_factory=list)

    def told(self) -> StoredSession:
        record = SessionRecord(self.record.session_id, self.record.cwd, self.record.settings, self.seq)
        return StoredSession(record, tuple(self.history), self.last_turn, tuple(self.turns))


@dataclass
class SessionModel:
    """``messages``: the session on which each open one runs, "" for none; ``ended``: when the others did."""

    sessions: dict[SessionId, Stored] = field(default_factory=dict)
    bindings: dict[ConversationKey, BoundSession] = field(default_factory=dict)
    messages: dict[MessageId, SessionId] = field(default_factory=dict)
    ended: dict[MessageId, int] = field(default_factory=dict)

    def take(self, step: Step[object]) -> bool:
        """False: the step is refused."""
        match step:
            case BindSession(conversation=chat, session_id=name, authority=authority, now_ms=now_ms):
                self.bindings[chat] = BoundSession(name, authority, now_ms)
            case UnbindSession(conversation=chat):
                self.bindings.pop(chat, None)
            case OpenSession(record=record, now_ms=now_ms):
                if record.session_id in self.sessions:
                    return False
                self.sessions[record.session_id] = Stored(record, record.seq, now_ms, now_ms)
            case BeginTurn() | EndTurn() | ClearSession() | ReserveSeq():
                return step.session_id in self.sessions and self._change(self.sessions[step.session_id], step)
            case Prune(before_ms=before_ms):
                self._prune(before_ms)
            case _:
                self._of_message(step)
        return True

    def bound(self, chat: ConversationKey) -> BoundSession | None:
        bound = self.bindings.get(chat)
        if bound is None:
            return None
        session = self.sessions.get(bound.session_id)
        return BoundSession(
            bound.session_id, bound.authority, max(bound.used_ms, session.used_ms if session else 0)
        )

    def _change(self, session: Stored, step: BeginTurn | EndTurn | ClearSession | ReserveSeq) -> bool:
        match step:
            case BeginTurn(seq_reserved=seq, now_ms=now_ms):
                session.seq, session.used_ms = seq, now_ms
                session.turns.append((step.turn_id, step.request_id))
            case EndTurn(seq=seq, now_ms=now_ms):
                session.seq, session.used_ms, session.last_turn = seq, now_ms, step.events
                session.turns = [turn for turn in session.turns if turn[0] != step.turn_id]
                note = [step.note] if step.note and 0 < step.dropped <= len(session.history) else []
                session.history = [*note, *session.history[step.dropped :], *step.history]
            case ClearSession(seq=seq):
                session.seq, session.history, session.last_turn = seq, [], ()
            case ReserveSeq(seq=seq, used_ms=used_ms):
                session.seq, session.used_ms = max(session.seq, seq), max(session.used_ms, used_ms)
        return True

    def _of_message(self, step: Step[object]) -> None:
        match step:
            case Claim(messages=(message,)):
                if message.message_id not in self.ended:
                    self.messages.setdefault(message.message_id, SessionId(""))
            case Start(message_id=message_id, session_id=name):
                if self.messages.get(message_id) == "":
                    self.messages[message_id] = name
            case Answer(message_id=message_id, now_ms=now_ms):
                if self.messages.pop(message_id, None) is not None:
                    self.ended[message_id] = now_ms
            case _:
                raise AssertionError(step)

    def _prune(self, before_ms: int) -> None:
        self.ended = {one: at_ms for one, at_ms in self.ended.items() if at_ms >= before_ms}
        running = set(self.messages.values())
        gone = {
            name
            for name, one in self.sessions.items()
            if one.used_ms < before_ms and one.created_ms < before_ms and name not in running
        }
        self.sessions = {name: one for name, one in self.sessions.items() if name not in gone}
        elsewhere = {
            chat
            for chat, one in self.bindings.items()
            if one.used_ms < before_ms
            and one.session_id not in self.sessions
            and one.session_id not in running
        }
        self.bindings = {
            chat: one
            for chat, one in self.bindings.items()
            if one.session_id not in gone and chat not in elsewhere
        }
