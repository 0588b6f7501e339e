"""The console's kit. There is no platform to fake: its other side is a client of the daemon's own socket.

It only takes what is asked for, so nothing is ever sent to it; and it has one person, and no groups.
"""

import json
import secrets
import tempfile
from contextlib import ExitStack
from dataclasses import replace
from pathlib import Path
from typing import Any, Self

import pytest
from multidict import CIMultiDict, CIMultiDictProxy

from bridge.channel.contract import FileKind, RemoteFile, Request
from bridge.channel.spec import ChannelSpec
from bridge.channel.testing.kit import KitFile, KitMessage, KitSent, Trouble
from bridge.clock import SystemClock
from bridge.registry import channels


class ConsoleKit:
    """Entering makes a folder for the files that the person sends, each under its own name."""

    def __init__(self) -> None:
        self._folder = Path()
        self._stack = ExitStack()

    @property
    def spec(self) -> ChannelSpec:
        return channels().load("console")

    async def __aenter__(self) -> Self:
        self._folder = Path(self._stack.enter_context(tempfile.TemporaryDirectory(prefix="console-")))
        return self

    async def __aexit__(self, *exc: object) -> None:
        self._stack.close()

    @property
    def settings(self) -> dict[str, Any]:
        return {}

    @property
    def credentials(self) -> dict[str, Any]:
        return {}

    def person(self, n: int) -> str:
        return "you"

    def chat(self, n: int, group: bool = False) -> str:
        if group:
            pytest.skip("the console has no groups")
        return f"conversation {n}"

    def sent(self) -> list[KitSent]:
        return []

    def trouble(self, *troubles: Trouble) -> None:
        raise NotImplementedError("it sends nothing")

    def supports(self, trouble: Trouble) -> bool:
        return False

    def push(self, message: KitMessage) -> Request:
        files = [{"path": str(self._keep(file)), "size": len(file.data)} for file in message.files]
        return self._request(
            type="message",
            id=message.message_id or f"m-{secrets.token_hex(8)}",
            conversation=message.chat,
            text=message.text,
            files=files,
        )

    def forged(self, message: KitMessage) -> list[Request]:
        good = self.push(message)
        fields = json.loads(good.body)
        changes: list[dict[str, Any]] = [
            {"type": "order"},
            {"id": ""},
            {"id": "a\nb"},
            {"conversation": None},
            {"text": ""},
            {"files": [{"path": "etc/passwd"}]},
            {"files": [{"path": "/etc/pass\0wd"}]},
        ]
        return [
            replace(good, method="GET"),
            replace(good, body=b"{"),
            replace(good, body=b"[]"),
            *(self._request(**{**fields, **change}) for change in changes),
        ]

    def uninteresting(self) -> list[Request]:
        return []

    def remote(self, file: KitFile) -> RemoteFile:
        return RemoteFile(str(self._keep(file)), FileKind.FILE, file.name, file.mime, len(file.data))

    def _keep(self, file: KitFile) -> Path:
        folder = Path(tempfile.mkdtemp(dir=self._folder))
        path = folder / file.name
        path.write_bytes(file.data)
        return path

    def _request(self, **fields: Any) -> Request:
        headers = CIMultiDictProxy(CIMultiDict({"Content-Type": "application/json"}))
        return Request("POST", "", {}, headers, json.dumps(fields).encode(), SystemClock().now())


KIT = ConsoleKit
