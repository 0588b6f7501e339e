"""A prompt as its blocks: what was said before, the text, and the files as the agent takes them."""

import base64
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from acp.schema import (
    EmbeddedResourceContentBlock,
    ImageContentBlock,
    PromptCapabilities,
    ResourceContentBlock,
    TextContentBlock,
    TextResourceContents,
)

from bridge.agents.contract import HistoryEntry, Role, TurnFile
from bridge.media.showing import showable

EMBEDDED_BYTES = 65_536
PREFACE_BYTES = 24_576
ENTRY_BYTES = 4096
_WHO = {Role.USER: "User", Role.ASSISTANT: "You", Role.NOTE: "Note"}


def blocks(text: str, files: Sequence[TurnFile], takes: PromptCapabilities) -> list[Any]:
    """Blocking: files are read. One that has vanished is left to its link."""
    said = [f"{one.name}: {one.transcript}" for one in files if one.transcript]
    whole = "\n\n".join([text, *said]).strip()
    texts = [TextContentBlock(type="text", text=whole)] if whole else []
    return [*texts, *(_block(one, takes) for one in files if one.path is not None)]


def _block(file: TurnFile, takes: PromptCapabilities) -> Any:
    path = file.path or Path()
    uri = path.as_uri()
    try:
        if takes.image and file.pixels and (found := showable(path)):
            data = base64.b64encode(found.data).decode()
            return ImageContentBlock(type="image", data=data, mime_type=found.mime, uri=uri)
        if takes.embedded_context and file.mime.startswith("text/") and file.size <= EMBEDDED_BYTES:
            resource = TextResourceContents(uri=uri, mime_type=file.mime, text=path.read_text())
            return EmbeddedResourceContentBlock(type="resource", resource=resource)
    except (OSError, ValueError):  # it has vanished, or is no UTF-8
        pass
    return ResourceContentBlock(
        type="resource_link", uri=uri, name=file.name, mime_type=file.mime or None, size=file.size
    )


def preface(entries: Sequence[HistoryEntry]) -> str:
    """What was said before and the agent has not seen, newest first to fit; "" for nothing."""
    kept: list[str] = []
    room = PREFACE_BYTES
    for entry in reversed(entries):
        line = _said(entry)
        room -= len(line.encode()) + 1
        if room < 0:
            kept.append("…")
            break
        if line:
            kept.append(line)
    if not kept:
        return ""
    told = "\n".join(reversed(kept))
    return f"[This was said in this conversation before, outside of your memory:]\n{told}\n[Now:]\n\n"


def _said(entry: HistoryEntry) -> str:
    who = _WHO.get(entry.role)
    names = ", ".join(one.name for one in entry.files)
    text = f"{entry.text} ({names})" if names else entry.text
    if who is None or not text.strip():
        return ""
    data = text.encode()
    cut = data[:ENTRY_BYTES].decode(errors="ignore") + "…" if len(data) > ENTRY_BYTES else text
    return f"{who}: {cut}"
