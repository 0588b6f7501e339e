"""The durable steps of conversations and agent sessions; see ``contract`` for what holds for all steps."""

from __future__ import annotations

from dataclasses import dataclass

from bridge.ids import AccountId, ConversationKey, SessionId, TurnId
from bridge.store.step import Query, Step


@dataclass(frozen=True, slots=True)
class BindSession(Step[None]):
    """The conversation's session from now on, with the authority it was started with. Again: it is used."""

    account: AccountId
    conversation: ConversationKey
    session_id: SessionId
    authority: str
    now_ms: int


@dataclass(frozen=True, slots=True)
class UnbindSession(Step[None]):
    """The conversation has no session any more."""

    account: AccountId
    conversation: ConversationKey


@dataclass(frozen=True, slots=True)
class SessionRecord:
    """A session as it was started. ``seq`` is a high-water mark: no event with a larger number was sent."""

    session_id: SessionId
    cwd: str
    settings: str  # JSON: no_tools, channel, auto_approve, agent, model …
    seq: int


@dataclass(frozen=True, slots=True)
class OpenSession(Step[None]):
    record: SessionRecord
    now_ms: int


@dataclass(frozen=True, slots=True)
class BeginTurn(Step[None]):
    """A turn runs. ``seq_reserved``, well above what it may use, becomes the high-water mark."""

    session_id: SessionId
    turn_id: TurnId
    request_id: str
    seq_reserved: int
    now_ms: int


@dataclass(frozen=True, slots=True)
class EndTurn(Step[None]):
    """A turn has ended: recorded before its terminal event is sent.

    ``events`` are the encoded frames that an attaching client is told: the last ``assistant.completed``, the
    successful ``chat_attach`` results, the terminal event. ``history`` are JSON entries appended to the
    session; empty for a failed or cancelled turn. Before that the ``dropped`` oldest entries give way to
    ``note``, an entry, or to nothing (""). ``seq`` is exact.
    """

    session_id: SessionId
    turn_id: TurnId
    events: tuple[bytes, ...]
    history: tuple[str, ...]
    seq: int
    now_ms: int
    dropped: int = 0
    note: str = ""


@dataclass(frozen=True, slots=True)
class ClearSession(Step[None]):
    """Drop all that was said, the last turn's events too; ``seq`` stays what it is now.

    ``settings`` are those from now on, since they hold what agents remember; "": as they are.
    """

    session_id: SessionId
    seq: int
    settings: str = ""


@dataclass(frozen=True, slots=True)
class ConfigureSession(Step[None]):
    """The session goes on in this folder and with these settings. Its history stays."""

    session_id: SessionId
    cwd: str
    settings: str


@dataclass(frozen=True, slots=True)
class CompactSession(Step[None]):
    """The whole history gives way to ``entry``, which sums it up."""

    session_id: SessionId
    entry: str


@dataclass(frozen=True, slots=True)
class ReserveSeq(Step[None]):
    """Raise the session's high-water mark to ``seq``: an attach or a pause uses numbers outside of turns.

    A lower ``seq`` changes nothing. ``used_ms`` is when the session was taken up, 0 where it was not.
    """

    session_id: SessionId
    seq: int
    used_ms: int = 0


@dataclass(frozen=True, slots=True)
class BoundSession:
    """``used_ms``: when it was bound, opened or taken up, or when a turn of it began or ended, if later.

    Where the sessions are another server's, only when it was bound.
    """

    session_id: SessionId
    authority: str
    used_ms: int


@dataclass(frozen=True, slots=True)
class SessionOf(Query[BoundSession | None]):
    account: AccountId
    conversation: ConversationKey


@dataclass(frozen=True, slots=True)
class StoredSession:
    """A session with all that a client who takes it up is told.

    ``history`` oldest first. ``last_turn`` are the events of the last ended turn. ``interrupted`` are turns
    that began and never ended, as (turn id, request id), oldest first.
    """

    record: SessionRecord
    history: tuple[str, ...]
    last_turn: tuple[bytes, ...]
    interrupted: tuple[tuple[TurnId, str], ...]


@dataclass(frozen=True, slots=True)
class LoadSession(Query[StoredSession | None]):
    session_id: SessionId
