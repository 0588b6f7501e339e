"""What was said in the console's chats, in a private file of the home; and who may talk in which.

It says what was shown already, so that nothing is shown twice when a chat ends before it could settle that.
"""

from __future__ import annotations

import fcntl
import hashlib
import json
import os
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from pathlib import Path

from bridge.cli.chat_client import cleaned
from bridge.errors import BridgeError

MOST_BYTES = 4_194_304
KEPT_BYTES = 1_048_576  # what is left of a file that has grown over that
_FLAGS = os.O_RDWR | os.O_APPEND | os.O_CREAT | os.O_NOFOLLOW | os.O_CLOEXEC


@dataclass(frozen=True, slots=True)
class Line:
    """One thing said. ``who`` is ``you``, ``agent`` or a notice's word; ``id`` its message's or part's."""

    conversation: str
    who: str
    id: str
    text: str
    files: tuple[str, ...] = ()
    at: str = ""


class Record:
    """The lines of one conversation, the newest last. What is added is on its way to the disk on return."""

    def __init__(self, path: Path, conversation: str) -> None:
        self._path, self._conversation = path, conversation
        self.lines = [line for line in self._read() if line.conversation == conversation]
        self._ids = {line.id for line in self.lines}

    def has(self, id_: str) -> bool:
        """Whether the part or message was written down."""
        return id_ in self._ids

    def question(self, id_: str) -> str:
        """What was asked in the message ``id_``, or "" where that is not known (any more)."""
        return next((line.text for line in self.lines if line.id == id_ and line.who == "you"), "")

    def add(self, who: str, id_: str, text: str, files: Sequence[str] = (), at: str = "") -> None:
        line = Line(self._conversation, who, id_, cleaned(text), tuple(files), at)
        self.lines.append(line)
        self._ids.add(id_)
        with self._opened() as file:
            os.write(file, json.dumps(asdict(line)).encode() + b"\n")

    def _read(self) -> list[Line]:
        with self._opened() as file:
            data = _kept(os.pread(file, os.fstat(file).st_size, 0))
            if len(data) < os.fstat(file).st_size:
                os.ftruncate(file, 0)
                os.write(file, data)
            if data and not data.endswith(b"\n"):  # cut by a crash: what is added is a line of its own
                os.write(file, b"\n")
        return [line for raw in data.splitlines() if (line := _line(raw)) is not None]

    @contextmanager
    def _opened(self) -> Iterator[int]:
        """The file, while no other chat writes to it."""
        file = os.open(self._path, _FLAGS, 0o600)
        try:
            fcntl.flock(file, fcntl.LOCK_EX)
            yield file
        finally:
            os.close(file)


@contextmanager
def alone_in(path: Path, conversation: str) -> Iterator[None]:
    """Be the only one that shows this conversation while the block runs: each reply goes to one.

    A byte of the lock file stands for each conversation, so that none leaves a file behind.

    Raises:
        BridgeError: another terminal has it.
    """
    file = os.open(path, os.O_RDWR | os.O_CREAT | os.O_NOFOLLOW | os.O_CLOEXEC, 0o600)
    place = int.from_bytes(hashlib.sha256(conversation.encode()).digest()[:7], "big")
    try:
        fcntl.lockf(file, fcntl.LOCK_EX | fcntl.LOCK_NB, 1, place)
        yield
    except (BlockingIOError, PermissionError) as error:
        raise BridgeError(
            f"the conversation {conversation} is open in another terminal: "
            "close it there, or name another with --conversation"
        ) from error
    finally:
        os.close(file)


def _kept(data: bytes) -> bytes:
    """``data``, or its last whole lines where it is too much."""
    return data if len(data) <= MOST_BYTES else data[-KEPT_BYTES:].partition(b"\n")[2]


def _line(raw: bytes) -> Line | None:
    """A line that a crash has cut, or that another version wrote, is left out."""
    try:
        found = json.loads(raw)
        texts = [found[key] for key in ("conversation", "who", "id", "text", "at")]
        files = tuple(found["files"])
    except (ValueError, TypeError, KeyError, RecursionError):
        return None
    if not all(isinstance(each, str) for each in [*texts, *files]):
        return None
    conversation, who, id_, text, at = texts
    return Line(conversation, who, id_, cleaned(text), files, at)
