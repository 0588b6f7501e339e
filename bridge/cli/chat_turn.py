"""One message and its answer, for whoever does not draw: a pipe, or a script."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from functools import partial
from secrets import token_hex
from typing import TypeVar

from bridge.cli.chat_client import AWAY, ConsoleClient, LocalFile, Part
from bridge.errors import BridgeError

R = TypeVar("R")

ASK_SECONDS = 5.0
STOP_SECONDS = 5.0  # for a turn that was taken back
GONE_SECONDS = 60.0  # a daemon that is being restarted is waited for
PAUSE_SECONDS = 0.5
ANSWERS = frozenset({"", "empty", "chosen", "said"})  # a command's too; other notices say there is none


class StoppedError(BridgeError):
    """There is no answer: the turn was stopped, or ran out of time."""


class Turns:
    """Turns of one conversation, one after the other. ``settled`` is the cursor that was shown last."""

    def __init__(self, client: ConsoleClient, monotonic: Callable[[], float] = time.monotonic) -> None:
        self._client, self._monotonic = client, monotonic
        self.settled, self.most_bytes = 0, client.most_bytes
        self._until = float("inf")  # when the answer is due

    def waiting(self) -> Iterator[Part]:
        """What waits already; each part is settled once the next one is asked for."""
        while parts := self._replies(0):
            yield from self._told(parts)

    def answer(
        self, text: str, files: Sequence[LocalFile], message_id: str, seconds: float | None = None
    ) -> Iterator[Part]:
        """Send a message, and give what comes in this conversation up to the end of its answer.

        The turn is stopped after ``seconds``, and when the caller is interrupted or told to exit.

        Raises:
            NotRunningError: no daemon is there, at first. StoppedError: there is no answer.
            BridgeError: the message was refused, or the daemon went away and stayed away.
        """
        self._until = self._monotonic() + seconds if seconds is not None else float("inf")
        try:
            if self._sent(text, files, message_id) == "busy":
                yield Part(0, "", "", message_id, "Too many messages are waiting.", "busy", None, True)
                return
            yield from self._until_final(message_id)
        except (KeyboardInterrupt, SystemExit):
            with suppress(BridgeError):
                self._client.recall(message_id)
            raise

    def _sent(self, text: str, files: Sequence[LocalFile], message_id: str) -> str:
        try:
            return self._client.send(message_id, text, files)
        except AWAY[1:]:  # it is there, or was: the same id is taken once
            return self._patiently(lambda: self._client.send(message_id, text, files))

    def _until_final(self, message_id: str) -> Iterator[Part]:
        while (left := self._until - self._monotonic()) > 0:
            parts = self._patiently(partial(self._replies, min(left, ASK_SECONDS)))
            if not parts and self._patiently(lambda: self._client.progress(message_id, 0, 0)).over:
                parts = self._replies(0)  # it was stored before the turn was over
                if not parts:
                    raise StoppedError("the turn ended without an answer: somebody stopped it")
            yield from self._told(parts)
            if _is_final(parts, message_id):
                self._replies(0)  # settles what was shown last
                return
        yield from self._out_of_time(message_id)

    def _out_of_time(self, message_id: str) -> Iterator[Part]:
        """Stop the turn; an answer that was there first still counts."""
        self._client.recall(message_id)
        until, version = self._monotonic() + STOP_SECONDS, 0
        while (left := until - self._monotonic()) > 0:
            progress = self._client.progress(message_id, version, left)
            version = progress.version
            if progress.over:
                break
        parts = self._replies(0)
        yield from self._told(parts)
        if not _is_final(parts, message_id):
            raise StoppedError("no answer in time: the turn was stopped")
        self._replies(0)

    def _replies(self, wait_seconds: float) -> list[Part]:
        return self._client.replies(self.settled, wait_seconds)

    def _told(self, parts: Sequence[Part]) -> Iterator[Part]:
        for part in parts:
            yield part
            self.settled = part.cursor

    def _patiently(self, call: Callable[[], R]) -> R:
        """What ``call`` gives, also when the daemon is away for a while."""
        until = min(self._monotonic() + GONE_SECONDS, self._until)
        while True:
            try:
                return call()
            except AWAY:
                if self._monotonic() > until:
                    raise
                threading.Event().wait(PAUSE_SECONDS)


def _is_final(parts: Sequence[Part], message_id: str) -> bool:
    return any(part.final and part.reply_to == message_id for part in parts)


def new_id() -> str:
    """A message's id, of which there is no other."""
    return f"console-{token_hex(12)}"
