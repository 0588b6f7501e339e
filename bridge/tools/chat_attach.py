"""The tool ``chat_attach``: send a file to the chat, with the turn's answer.

What is sent is a private copy, so that it stays what it was when the call was approved. Private places of
this machine are refused, after all links are resolved.
"""

import asyncio
import json
from collections.abc import Sequence
from pathlib import Path
from typing import Annotated

from pydantic import AfterValidator, Field

from bridge.errors import ConfigError
from bridge.media.outbox import MAX_BYTES, Copied, CopyRefusal, NotCopied, copy
from bridge.media.sniff import sniff_file
from bridge.paths import Home
from bridge.protocol.helpers import CHAT_ATTACH
from bridge.protocol.shared import ReplyAttachment
from bridge.tools.contract import Arguments, CallPlace, Risk, ToolResult
from bridge.tools.places import is_private, shown

CAPTION_BYTES = 1024
NOTE = "The file goes to the user together with your answer."


def _not_blank(text: str) -> str:
    if not text.strip():
        raise ValueError("is blank")
    return text


def _caption(text: str) -> str:
    if len(text.encode()) > CAPTION_BYTES:
        raise ValueError(f"is over {CAPTION_BYTES} bytes")
    return text.strip()


class AttachArguments(Arguments):
    path: Annotated[str, AfterValidator(_not_blank), Field(description="Absolute, or in the workspace.")]
    caption: Annotated[str, AfterValidator(_caption), Field(description="Shown with the file.")] = ""


class ChatAttach:
    """``user`` is the home directory whose credentials are refused; that of this process by default."""

    name, risk, arguments = CHAT_ATTACH, Risk.NETWORK, AttachArguments
    description = (
        f"Send a file to the user in this chat, at most {MAX_BYTES // 1_048_576} MiB. "
        "It arrives with your answer."
    )

    def __init__(self, home: Home, user: Path | None = None) -> None:
        self._home = home
        self._user = (user or Path("~").expanduser()).resolve()

    def summary(self, arguments: AttachArguments) -> str:
        return f"Send {arguments.path} to the chat"

    async def run(self, arguments: AttachArguments, place: CallPlace) -> ToolResult:
        loop = asyncio.get_running_loop()
        received = [file for one in place.history() for file in one.files]
        copying = loop.run_in_executor(None, self._attach, arguments, place.cwd, received)
        try:
            outcome = await asyncio.shield(copying)
        except asyncio.CancelledError:  # the thread goes on: what it makes is removed when it is done
            await asyncio.wait([copying])
            await loop.run_in_executor(None, _remove, copying.result())
            raise
        if isinstance(outcome, str):
            return ToolResult(False, f"The file was not attached: {outcome}.")
        report = {"attached": outcome.model_dump(), "note": NOTE}
        return ToolResult(True, json.dumps(report, ensure_ascii=False))

    def _attach(
        self, arguments: AttachArguments, cwd: Path, received: Sequence[Path]
    ) -> ReplyAttachment | str:
        """The copy, or why there is none; blocking. Of what was received this session's may be sent again."""
        try:
            source = (cwd / arguments.path).resolve()
            known = {each.resolve() for each in received}
        except (OSError, ValueError, RuntimeError):  # no way to it; a NUL in the path; links in a circle
            return CopyRefusal.UNREADABLE.value
        if is_private(source, self._home, self._user, known):
            return "that place is private"
        try:
            copied = copy(source, self._home.private_dir(self._home.outbox))
            return copied.text if isinstance(copied, NotCopied) else _reported(copied, arguments.caption)
        except (OSError, ConfigError):
            return "the outbox cannot take it: look at the disk"


def _reported(copied: Copied, caption: str) -> ReplyAttachment:
    try:
        mime = sniff_file(copied.path, "", copied.name)
    except OSError:
        copied.path.unlink(missing_ok=True)
        raise
    return ReplyAttachment(
        path=shown(copied.path), name=copied.name, mime=mime, size=copied.size, caption=caption
    )


def _remove(outcome: ReplyAttachment | str) -> None:
    if not isinstance(outcome, str):
        Path(outcome.path).unlink(missing_ok=True)
