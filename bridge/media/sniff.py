"""What a file is: by what its sender declared, its bytes, its name, and for images by the bytes alone.

The functions block, if only for a moment: call them through ``asyncio.to_thread``. They may run in several
threads at once, as python-magic locks its one handle.
"""

import mimetypes
import os
import re
from pathlib import Path
from typing import Final

import pylibmagic
import magic

from bridge.channel.contract import FileKind

HEAD_BYTES: Final = 65_536
UNKNOWN: Final = "application/octet-stream"

_MIME = re.compile(r"[a-z0-9][a-z0-9!#$&^_.+-]{0,63}/[a-z0-9][a-z0-9!#$&^_.+-]{0,126}")
_VAGUE = frozenset(
    {
        UNKNOWN,
        "application/binary",
        "application/download",
        "application/force-download",
        "application/x-download",
    }
    | {"application/x-empty", "inode/x-empty", "binary/octet-stream", "application/unknown"}
)
_CONTAINERS = frozenset({"application/zip", "application/x-ole-storage", "application/cdfv2", "text/plain"})
_OURS = {".md": "text/markdown", ".heic": "image/heic", ".amr": "audio/amr", ".opus": "audio/ogg"}
_BY_NAME = mimetypes.MimeTypes()
_magic = magic.Magic(mime=True, magic_file=str(pylibmagic.data.joinpath("magic.mgc")))


def sniff(head: bytes, declared: str, name: str) -> str:
    """The type of a file that starts with ``head``, in lower case without parameters.

    What was declared counts where it says something, then the bytes, then the name. No file is an image whose
    bytes are none, and none that is passes for something else.
    """
    found = by_bytes(head)
    if found.startswith("image/"):
        return found
    specific = _specific(declared)
    if specific and not specific.startswith("image/"):
        return specific
    if found == UNKNOWN or found in _CONTAINERS:
        named = by_name(name)
        if named and not named.startswith("image/"):
            return named
    return found


def sniff_file(path: Path, declared: str, name: str) -> str:
    """As ``sniff``, of the file's start.

    Raises:
        OSError: it cannot be read.
    """
    with path.open("rb") as file:
        return sniff(file.read(HEAD_BYTES), declared, name)


def by_bytes(head: bytes) -> str:
    """What libmagic takes the bytes for, which does not know SILK; unknown where there are none."""
    if head.startswith((b"#!SILK_V3", b"\x02#!SILK_V3")):
        return "audio/silk"
    try:
        found = str(_magic.from_buffer(head[:HEAD_BYTES]))
    except magic.MagicException:
        return UNKNOWN
    return _specific(found) or UNKNOWN


def by_name(name: str) -> str:
    """What the name's extension stands for, or ``""``."""
    suffix = Path(name.replace("\0", "")).suffix.lower()
    return _OURS.get(suffix) or _BY_NAME.types_map[True].get(suffix, "")


def kind_of(mime: str) -> FileKind:
    """How chats show a file of this type; drawings in SVG are files."""
    match mime.partition("/")[0]:
        case "image" if mime != "image/svg+xml":
            return FileKind.IMAGE
        case "audio":
            return FileKind.AUDIO
        case "video":
            return FileKind.VIDEO
        case _:
            return FileKind.FILE


def _specific(mime: str) -> str:
    """``mime`` when it says something, else ``""``."""
    bare = mime.partition(";")[0].strip().lower()
    vague = bare in _VAGUE or bare.endswith("/x-empty") or not _MIME.fullmatch(bare)
    return "" if vague else bare


def _tidy_environment() -> None:
    """Take out what importing pylibmagic leaves there, as child processes would load its library."""
    for key in (*pylibmagic.keys, "MAGIC"):
        _, _, before = os.environ.pop(key, "").partition(os.pathsep)
        if before:
            os.environ[key] = before


_tidy_environment()
