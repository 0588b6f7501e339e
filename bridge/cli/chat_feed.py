"""What happens at the daemon, as events for the one who draws: two threads ask, and neither ever draws.

Replies are asked past, and so settled, only once ``settle`` says that they were shown.
"""

from __future__ import annotations

import os
import threading
from collections import deque
from dataclasses import dataclass

from bridge.cli.chat_client import AWAY, POLL_SECONDS, ConsoleClient, NotReadyError, Part, Progress
from bridge.errors import BridgeError

RETRY_SECONDS = 0.5
UNREADY_TIMES = 4  # an account that takes up new settings is not ready for a moment, which is no news
STEP_SECONDS = 0.05  # between two looks at a turn that changes all the time


@dataclass(frozen=True, slots=True)
class Came:
    """Parts of replies, to be shown and then settled."""

    parts: list[Part]


@dataclass(frozen=True, slots=True)
class Moved:
    """A turn that goes on, or that is over."""

    message_id: str
    progress: Progress


@dataclass(frozen=True, slots=True)
class Lost:
    """The daemon is gone; it is asked again and again."""


@dataclass(frozen=True, slots=True)
class Back:
    """The daemon is there again."""


@dataclass(frozen=True, slots=True)
class Failed:
    """Asking was refused, which no repetition mends."""

    error: BridgeError


Event = Came | Moved | Lost | Back | Failed


class Feed:
    """``start`` starts the threads, which end with the process or soon after ``close``."""

    def __init__(self, client: ConsoleClient) -> None:
        self._client, self._settled = client, 0
        self._events: deque[Event] = deque()
        self._shown = threading.Event()
        self._followed, self._lock = "", threading.Lock()
        self._follow = threading.Event()
        self._closed = threading.Event()
        self.wakes, self._wake = os.pipe()  # readable while there are events
        os.set_blocking(self._wake, False)

    def start(self) -> None:
        for run in (self._ask_replies, self._ask_progress):
            threading.Thread(target=run, daemon=True).start()

    def close(self) -> None:
        """Nothing more is asked once what is under way is answered."""
        self._closed.set()
        self._shown.set()
        self._follow.set()

    def take(self) -> list[Event]:
        """The events since the last time."""
        events = []
        while self._events:
            events.append(self._events.popleft())
            os.read(self.wakes, 1)
        return events

    def settle(self, cursor: int) -> None:
        """All parts up to ``cursor`` were shown."""
        self._settled = cursor
        self._shown.set()

    @property
    def settled(self) -> int:
        return self._settled

    @property
    def followed(self) -> str:
        return self._followed

    def follow(self, message_id: str) -> None:
        """Tell how this message's turn goes on, from now on; "": none."""
        with self._lock:
            self._followed = message_id
            self._follow.set() if message_id else self._follow.clear()

    def _put(self, event: Event) -> None:
        self._events.append(event)
        os.write(self._wake, b"x")

    def _ask_replies(self) -> None:
        away, missed = False, 0
        while not self._closed.is_set():
            try:
                parts = self._client.replies(self._settled, 0 if away else POLL_SECONDS)
            except AWAY as error:
                missed += 1
                if not away and (missed > UNREADY_TIMES or not isinstance(error, NotReadyError)):
                    away = True
                    self._put(Lost())
                self._closed.wait(RETRY_SECONDS)
                continue
            except BridgeError as error:
                self._put(Failed(error))
                return
            if away:
                self._put(Back())
            away, missed = False, 0
            if parts:
                self._shown.clear()
                self._put(Came(parts))
                self._shown.wait()

    def _ask_progress(self) -> None:
        version, last = 0, ""
        while self._follow.wait() and not self._closed.is_set():
            message_id = self._followed
            if message_id != last:
                version, last = 0, message_id
            try:
                progress = self._client.progress(message_id, version, POLL_SECONDS)
            except BridgeError:
                version = 0  # a daemon that starts again counts from the beginning
                self._closed.wait(RETRY_SECONDS)
                continue
            version = progress.version
            if self._is_news(message_id, progress):
                self._put(Moved(message_id, progress))
            self._closed.wait(STEP_SECONDS)

    def _is_news(self, message_id: str, progress: Progress) -> bool:
        """Whether this turn is still followed. Once it is over it is not any more."""
        with self._lock:
            followed = message_id == self._followed and not self._closed.is_set()
            if followed and progress.over:
                self._followed = ""
                self._follow.clear()
            return followed
