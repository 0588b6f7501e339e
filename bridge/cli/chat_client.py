"""A client of the console: HTTP over the home's Unix socket, by the standard library alone.

Whatever comes from the other side is cleaned here, once, so that nothing of it plays with a terminal.
"""

from __future__ import annotations

import json
import socket
from collections.abc import Sequence
from dataclasses import dataclass
from http.client import HTTPConnection, HTTPException
from pathlib import Path
from typing import Any
from urllib.parse import urlencode

from bridge.cli.common import NotRunningError, visible
from bridge.errors import BridgeError

POLL_SECONDS = 20.0  # of one asking; the daemon holds none for over 25
HTTP_SECONDS = 15.0  # beside that


class NotReadyError(BridgeError):
    """The daemon is there and cannot take it yet: it is to be tried again."""


class HungUpError(BridgeError):
    """The daemon went away meanwhile: what it was told may have arrived."""


AWAY = (NotRunningError, NotReadyError, HungUpError)  # what passes by itself once the daemon is back


@dataclass(frozen=True, slots=True)
class LocalFile:
    """A file to send: its absolute path without links, and its size in bytes."""

    path: Path
    size: int


@dataclass(frozen=True, slots=True)
class ReplyFile:
    """A file of a reply: ``path`` is the daemon's copy, which is gone once its part is settled."""

    path: Path
    name: str
    mime: str
    size: int


@dataclass(frozen=True, slots=True)
class Part:
    """One text or file of the reply ``reply``, which answers the message ``reply_to``, "" for none.

    ``notice`` is "" for the agent's answer, else the bridge's word for what it says itself.
    """

    cursor: int
    id: str
    reply: str
    reply_to: str
    text: str
    notice: str
    file: ReplyFile | None
    final: bool

    @classmethod
    def read(cls, data: dict[str, Any]) -> Part:
        file = data.get("file")
        return cls(
            cursor=data["cursor"],
            id=data["id"],
            reply=data["reply"],
            reply_to=data["reply_to"],
            text=cleaned(data["text"]),
            notice=cleaned(data["notice"]),
            file=ReplyFile(Path(file["path"]), file["name"], cleaned(file["mime"]), file["size"])
            if file
            else None,
            final=data["part"] >= data["parts"],
        )


@dataclass(frozen=True, slots=True)
class Progress:
    """How a turn stands; ``over`` once it has ended, or is not known."""

    version: int = 0
    text: str = ""
    tool: str = ""
    progress: str = ""
    over: bool = False


def cleaned(text: str) -> str:
    """``text`` as it may be shown: line ends are those of Unix, other controls are replaced."""
    return visible(text.replace("\r\n", "\n"))


class ConsoleClient:
    """One conversation with an account. Every call is a connection of its own, so threads may share it."""

    def __init__(
        self, path: Path, account: str, conversation: str, start: str, most_bytes: int | None = None
    ) -> None:
        """``start`` is the command that starts the daemon, ``most_bytes`` what a file may have, if known."""
        self._path, self._route, self._start = path, f"/channels/console/{account}", start
        self.account, self.conversation, self.most_bytes = account, conversation, most_bytes

    def send(self, message_id: str, text: str, files: Sequence[LocalFile] = ()) -> str:
        """Send a message, or the same once more, and return what became of it: ``accepted``, ``busy`` …

        Raises:
            NotRunningError, NotReadyError: it was not taken. HungUpError: it may have been.
            BridgeError: it was refused.
        """
        return self._post(
            type="message",
            id=message_id,
            text=text.encode(errors="replace").decode(),  # half a character, from a terminal's other encoding
            files=[{"path": str(file.path), "size": file.size} for file in files],
        )

    def recall(self, message_id: str) -> None:
        """Take a message back, which stops its turn. Raises as ``send``."""
        self._post(type="recall", id=message_id)

    def replies(self, after: int, wait_seconds: float) -> list[Part]:
        """The parts that wait, oldest first; those up to ``after`` are settled. Raises as ``send``."""
        asked = {"conversation": self.conversation, "after": after, "wait": f"{wait_seconds:.3f}"}
        answer = self._request("GET", f"/replies?{urlencode(asked)}", wait_seconds)
        return [Part.read(each) for each in answer["replies"]]

    def progress(self, message_id: str, version: int, wait_seconds: float) -> Progress:
        """A message's turn once it is over ``version``, or as it is after the wait. Raises as ``send``."""
        asked = {"message": message_id, "version": version, "wait": f"{wait_seconds:.3f}"}
        told = self._request("GET", f"/live?{urlencode(asked)}", wait_seconds)
        text, tool, progress = (cleaned(told[key]) for key in ("text", "tool", "progress"))
        return Progress(told["version"], text, tool, progress, told["over"])

    def _post(self, **fields: Any) -> str:
        body = json.dumps({"conversation": self.conversation, **fields}).encode()
        return str(self._request("POST", "", 0, body)["outcome"])

    def _request(self, method: str, target: str, wait_seconds: float, body: bytes | None = None) -> Any:
        connection = _Unix(self._path, HTTP_SECONDS + wait_seconds)
        try:
            connection.request(method, self._route + target, body)
            response = connection.getresponse()
            status, answer = response.status, response.read()
        except (FileNotFoundError, ConnectionRefusedError) as error:
            raise NotRunningError(f"no daemon runs there: start it with: {self._start}") from error
        except (OSError, HTTPException) as error:
            raise HungUpError("the daemon hung up: look at its log") from error
        finally:
            connection.close()
        return self._told(status, answer)

    def _told(self, status: int, answer: bytes) -> Any:
        if status < 300:
            return json.loads(answer)
        if status in (500, 503):
            raise NotReadyError(f"console:{self.account} is not ready: look at turnbridge status")
        if status == 404:
            raise BridgeError(f"console:{self.account} is not served: look at turnbridge status")
        if status == 413:
            raise BridgeError(
                "the message is too long, over about 1 MiB: send a part of it, or send it as a file"
            )
        raise BridgeError(
            f"the daemon answered with status {status}: {cleaned(answer.decode(errors='replace'))[:200]}"
        )


class _Unix(HTTPConnection):
    """An HTTP connection to a Unix socket."""

    def __init__(self, path: Path, seconds: float) -> None:
        super().__init__("localhost", timeout=seconds)
        self._socket_path, self._seconds = path, seconds

    def connect(self) -> None:
        self.sock = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        self.sock.settimeout(self._seconds)
        self.sock.connect(str(self._socket_path))
