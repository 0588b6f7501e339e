"""File names over HTTP: uploads as multipart forms, and ``Content-Disposition`` both ways."""

import io
import os
import re
from collections.abc import Mapping
from dataclasses import dataclass
from dataclasses import field as option
from pathlib import Path
from typing import BinaryIO
from urllib.parse import quote, unquote_to_bytes

from aiohttp import FormData

_UNSAFE = re.compile(r'[\x00-\x1f\x7f-\x9f"\\\u2028\u2029\ud800-\udfff]')
_EXTENDED = re.compile(r"filename\*\s*=\s*\"?([\w!#$&+^`{}~-]*)'[^']*'([^;\s\"]*)", re.IGNORECASE)
_PLAIN = re.compile(r'(?:^|[;\s])filename\s*=\s*(?:"((?:[^"\\]|\\.)*)"|([^;"]*))', re.IGNORECASE)
_CHARSETS = frozenset({"utf-8", "utf8", "iso-8859-1", "latin-1", "gbk", "gb2312", "gb18030", "big5"})


@dataclass(frozen=True, slots=True)
class UploadFile:
    """A file of a form: the form's ``field``, the ``name`` to show, and its bytes or where they are."""

    field: str
    name: str
    content: Path | bytes = option(repr=False)
    mime: str = "application/octet-stream"


def form_name(name: str) -> str:
    """``name`` as it may stand in a form: only controls, quotes and backslashes become ``_``."""
    return _UNSAFE.sub("_", name)


def open_content(content: Path | bytes) -> BinaryIO:
    """The bytes as a file, to be closed; blocks. A symlink is not followed.

    Raises:
        OSError: the file cannot be opened.
    """
    if isinstance(content, bytes):
        return io.BytesIO(content)
    return os.fdopen(os.open(content, os.O_RDONLY | os.O_NOFOLLOW | os.O_CLOEXEC), "rb")


def form(fields: Mapping[str, str], file: UploadFile, content: BinaryIO) -> FormData:
    """A form with ``fields`` first, whose file carries its name in UTF-8 rather than percent-encoded."""
    data = FormData(quote_fields=False, default_to_multipart=True)
    for key, value in fields.items():
        data.add_field(form_name(key), value.encode(errors="replace").decode())
    name = form_name(file.name) or "file"
    data.add_field(form_name(file.field), content, filename=name, content_type=file.mime)
    return data


def disposition_name(header: str) -> str:
    """The file name in a ``Content-Disposition`` header, or ``""``; neither safe nor short.

    ``filename*`` wins over ``filename``; UTF-8 bytes that were read as Latin-1 are read again.

    Source: RFC 6266 and RFC 8187 (read 2026-11-30).
    """
    if extended := _EXTENDED.search(header):
        charset, value = extended.group(1).lower(), extended.group(2)
        if charset in _CHARSETS:
            return unquote_to_bytes(value).decode(charset, "replace")
    found = _PLAIN.search(_EXTENDED.sub("", header))
    quoted, bare = (found.group(1) or "", found.group(2) or "") if found else ("", "")
    name = re.sub(r'\\(["\\])', r"\1", quoted) or bare.strip()
    return _as_utf8(unquote_to_bytes(name).decode("utf-8", "replace") if _is_escaped(name) else name)


def disposition(name: str) -> str:
    """The ``Content-Disposition`` of a download called ``name``, for old and new readers.

    Source: RFC 6266, section 4.
    """
    plain = form_name(name).encode("ascii", "replace").decode().replace("?", "_").replace("%", "_")
    return f"attachment; filename=\"{plain}\"; filename*=UTF-8''{quote(form_name(name), safe='')}"


def _is_escaped(name: str) -> bool:
    return re.search(r"%[0-9A-Fa-f]{2}", name) is not None and name.isascii()


def _as_utf8(name: str) -> str:
    """Undo the reading of UTF-8 as Latin-1; bytes that came through as surrogates are UTF-8 too."""
    for codec, errors in (("latin-1", "strict"), ("utf-8", "surrogateescape")):
        try:
            return name.encode(codec, errors).decode("utf-8")
        except UnicodeError:
            continue
    return name.encode("utf-8", "replace").decode()
