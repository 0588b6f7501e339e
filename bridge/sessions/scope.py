"""One turn's own: what it was asked, what it has said, and how its events are sent."""

import asyncio
from dataclasses import dataclass
from typing import Any, TypeVar

from bridge.agents.contract import AgentError, HistoryEntry
from bridge.agents.estimate import entry_tokens
from bridge.ids import TurnId
from bridge.protocol.events import AssistantCompleted, ToolCompleted, TurnEvent
from bridge.protocol.shared import Attachment
from bridge.sessions.context import Context
from bridge.sessions.errors import FrameTooLargeError
from bridge.sessions.history import MOST_BYTES, MOST_ENTRIES, encode
from bridge.sessions.steering import Steering

Event = TypeVar("Event", bound=TurnEvent)


@dataclass(frozen=True, slots=True)
class Work:
    """A turn to run. ``request_id`` is that of its ``turn.start``."""

    turn_id: TurnId
    request_id: str
    prompt: str
    attachments: tuple[Attachment, ...]


class TurnScope:
    """Grows while the turn runs.

    ``entries`` is its history, and ``tokens`` the estimate for each of them; ``said`` its last whole text,
    ``attached`` reports the files of its reply, and ``copies`` are the paths of all that were made for it.
    """

    def __init__(self, context: Context, work: Work) -> None:
        self.context, self.work = context, work
        self.entries: list[HistoryEntry] = []
        self.tokens: list[int] = []
        self.said: AssistantCompleted | None = None
        self.attached: list[ToolCompleted] = []
        self.copies: list[str] = []
        self.steering = Steering(context)
        self._bytes = 0  # of the entries as they are stored
        self._closed = self._stopped = False

    def stop(self) -> None:
        """Begin nothing more: the turn is cancelled, and ends when its agent does."""
        self._stopped = True

    def check(self) -> None:
        """Before a step or a call begins, also by an agent that goes on after a cancel.

        Raises:
            AgentError: the turn is over.
        """
        if self._stopped or self._closed:
            raise AgentError("internal_error", "the turn is over")

    @property
    def closed(self) -> bool:
        """Whether the terminal event is due."""
        return self._closed

    def close(self) -> None:
        """Send no more events: the terminal one is due."""
        self._closed = True

    def add(self, entry: HistoryEntry) -> None:
        """Let ``entry`` follow the others.

        Raises:
            AgentError: ``history_limit``: they can never be stored, so nothing more of them need be kept.
        """
        self._bytes += len(encode(entry).encode())
        if self._bytes > MOST_BYTES or len(self.entries) == MOST_ENTRIES:
            raise too_large()
        self.entries.append(entry)
        self.tokens.append(entry_tokens(entry))

    async def send(self, kind: type[Event], **fields: Any) -> Event:
        """Send an event of the turn, waiting for as long as the client does not read.

        An agent that never waits by itself lets others go on here, and is stopped here.

        Raises:
            AgentError: it is too large, or the turn is over.
        """
        await asyncio.sleep(0)
        sent: list[Event] = []

        def make(seq: int) -> Event:
            if self._closed:  # maybe only since it waits for room
                raise AgentError("internal_error", "the turn is over")
            sent[:] = [self.event(kind, seq, **fields)]
            return sent[0]

        try:
            await self.context.events.send(make)
        except FrameTooLargeError as error:
            raise AgentError("response_limit", "the answer has a part that is too large") from error
        return sent[0]

    def event(self, kind: type[Event], seq: int, **fields: Any) -> Event:
        return kind(
            request_id=self.work.request_id,
            session_id=self.context.session_id,
            turn_id=self.work.turn_id,
            seq=seq,
            **fields,
        )


def too_large() -> AgentError:
    return AgentError("history_limit", "the turn alone is more than a session's history holds")


def whole(text: str) -> str:
    """``text`` as UTF-8 can hold it: lone surrogates, as odd file names bring them, become ``?``."""
    return text.encode(errors="replace").decode()
