"""The turns that wait in one session: pure state, changed by requests, checked by revision."""

from bridge.ids import new_uuid
from bridge.protocol.codec import write
from bridge.protocol.limits import PROMPT_BYTES, QUEUE_BYTES, QUEUE_ITEMS
from bridge.protocol.shared import Attachment, QueueEntry
from bridge.sessions.errors import RequestError


class TurnQueue:
    """At most 64 entries and 4 MiB, counted as their compact JSON. A refused change changes nothing."""

    def __init__(self) -> None:
        self._entries: list[QueueEntry] = []

    @property
    def entries(self) -> tuple[QueueEntry, ...]:
        return tuple(self._entries)

    def add(self, prompt: str, submitter: str, attachments: tuple[Attachment, ...]) -> tuple[QueueEntry, int]:
        """Append a turn; returns its entry and position, counted from 0.

        Raises:
            RequestError: ``queue_limit``.
        """
        entry = QueueEntry(
            queue_id=new_uuid(), revision=1, prompt=prompt, submitter=submitter, attachments=attachments
        )
        self._check_room([*self._entries, entry])
        self._entries.append(entry)
        return entry, len(self._entries) - 1

    def take(self) -> QueueEntry | None:
        """Remove the first entry."""
        return self._entries.pop(0) if self._entries else None

    def clear(self) -> None:
        self._entries.clear()

    def restore(self, entries: tuple[QueueEntry, ...]) -> None:
        """Take back a change that could not be told."""
        self._entries = list(entries)

    def update(self, queue_id: str, revision: int, prompt: str) -> QueueEntry:
        """Replace the prompt, as ``turn.start`` would take it; returns the entry with its new revision.

        Raises:
            RequestError: ``invalid_request``, ``queue_not_found``, ``queue_conflict`` or ``queue_limit``.
        """
        with_files = any(entry.attachments for entry in self._entries if entry.queue_id == queue_id)
        check_prompt(prompt, has_attachments=with_files)
        at = self._find(queue_id)
        entry = self._at_revision(at, revision)
        changed = entry.model_copy(update={"prompt": prompt, "revision": revision + 1})
        self._check_room([*self._entries[:at], changed, *self._entries[at + 1 :]])
        self._entries[at] = changed
        return changed

    def move(self, queue_id: str, revision: int, before: str | None) -> tuple[QueueEntry, int]:
        """Put an entry right before another, or last; returns it and where it is now.

        Raises:
            RequestError: ``queue_not_found`` (also for ``before``) or ``queue_conflict``.
        """
        at = self._find(queue_id)
        entry = self._at_revision(at, revision)
        if before == queue_id:
            return entry, at
        if before is not None:
            self._find(before)
        rest = [other for other in self._entries if other is not entry]
        to = len(rest) if before is None else [other.queue_id for other in rest].index(before)
        moved = entry.model_copy(update={"revision": revision + 1})
        self._entries = [*rest[:to], moved, *rest[to:]]
        return moved, to

    def remove(self, queue_id: str, revision: int) -> QueueEntry:
        """Raises RequestError: ``queue_not_found`` or ``queue_conflict``."""
        at = self._find(queue_id)
        self._at_revision(at, revision)
        return self._entries.pop(at)

    def _find(self, queue_id: str) -> int:
        for at, entry in enumerate(self._entries):
            if entry.queue_id == queue_id:
                return at
        raise RequestError("queue_not_found", "no such entry waits: it may have been started or removed")

    def _at_revision(self, at: int, revision: int) -> QueueEntry:
        entry = self._entries[at]
        if entry.revision != revision:
            raise RequestError("queue_conflict", "the entry was changed meanwhile: look at the queue again")
        return entry

    def _check_room(self, entries: list[QueueEntry]) -> None:
        if len(entries) > QUEUE_ITEMS:
            raise RequestError(
                "queue_limit", f"{QUEUE_ITEMS} turns wait already: try again when one has ended"
            )
        if sum(len(write(entry)) for entry in entries) > QUEUE_BYTES:
            raise RequestError("queue_limit", f"the waiting turns would be over {QUEUE_BYTES} bytes")


def check_prompt(prompt: str, *, has_attachments: bool) -> None:
    """Raises RequestError: blank without attachments, or over the limit."""
    if not prompt.strip() and not has_attachments:
        raise RequestError("invalid_request", "the prompt is blank: write something or attach a file")
    if len(prompt.encode()) > PROMPT_BYTES:
        raise RequestError("invalid_request", f"the prompt is over {PROMPT_BYTES} bytes: send a part of it")
