"""What a call of a server's tool gave, as the model gets it: text; the rest is kept in the workspace."""

import asyncio
import base64
import hashlib
import json
import mimetypes
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import mcp_types as types

from bridge.tools.contract import ToolResult
from bridge.tools.mcp.text import line, safe
from bridge.tools.texts import OUTPUT_BYTES, cut_text
from bridge.tools.workspace import RefusedError, Workspace

FILE_BYTES = 8_388_608
MOST_FILES = 8
FOLDER = "mcp-files"
_OTHER = ".bin"


@dataclass(frozen=True, slots=True)
class Kept:
    """A piece that is no text."""

    data: str  # base64
    mime: str


def to_result(answer: types.CallToolResult, server: str, cwd: Path) -> ToolResult:
    """The result for the model. What is no text is written below ``cwd``: blocking."""
    pieces: list[str] = []
    kept = 0
    for piece in _pieces(answer):
        if isinstance(piece, str):
            pieces.append(piece)
            continue
        kept += 1
        pieces.append(_keep(piece, server, cwd) if kept <= MOST_FILES else "[one more file, left out]")
    if not any(pieces) and answer.structured_content is not None:
        pieces = [json.dumps(answer.structured_content, ensure_ascii=False)]
    text = "\n".join(pieces)
    return ToolResult(not answer.is_error, cut_text(text), len(text.encode(errors="replace")) > OUTPUT_BYTES)


def _pieces(answer: types.CallToolResult) -> Iterator[str | Kept]:
    for block in answer.content:
        match block:
            case types.TextContent():
                yield block.text
            case types.ImageContent() | types.AudioContent():
                yield Kept(block.data, block.mime_type)
            case types.ResourceLink():
                yield f"[{line(block.name)}: {line(block.uri, 2048)}]"
            case types.EmbeddedResource(resource=types.TextResourceContents() as resource):
                yield f"[{line(resource.uri, 2048)}]\n{resource.text}"
            case types.EmbeddedResource(resource=types.BlobResourceContents() as resource):
                yield Kept(resource.blob, resource.mime_type or "")


def _keep(piece: Kept, server: str, cwd: Path) -> str:
    """Write it to a file of the workspace, and say where."""
    mime = line(piece.mime, 80) or "unknown type"
    try:
        data = base64.b64decode(piece.data, validate=True)
        if len(data) > FILE_BYTES:
            return f"[a file ({mime}) of {len(data)} bytes: too large, left out]"
        ending = mimetypes.guess_extension(piece.mime.partition(";")[0].strip().lower()) or _OTHER
        name = f"{safe(server)}-{hashlib.sha256(data).hexdigest()[:12]}{ending}"
        with Workspace(cwd) as workspace:
            workspace.write(f"{FOLDER}/{name}", data)
    except ValueError:  # no base64, or not even ASCII
        return f"[a file ({mime}) that cannot be read]"
    except RefusedError as refusal:
        return f"[a file ({mime}), not kept: {refusal}]"
    except OSError as error:
        return f"[a file ({mime}), not kept: {error.strerror or type(error).__name__}]"
    return f"[a file ({mime}, {len(data)} bytes): {FOLDER}/{name}]"


async def in_thread(answer: types.CallToolResult, server: str, cwd: Path) -> ToolResult:
    return await asyncio.to_thread(to_result, answer, server, cwd)
