"""Edits TOML as text, so that every byte and comment beside the edited values stays. Pure.

A file is cut at its headers, and only the piece that holds a value is touched. Whatever comes out is read
again and compared with what was meant, so that an odd way of writing is refused rather than broken.
"""

from __future__ import annotations

import re
import tomllib
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from copy import deepcopy
from dataclasses import dataclass, replace
from typing import Any

import tomlkit
from tomlkit.container import Container
from tomlkit.exceptions import TOMLKitError
from tomlkit.items import InlineTable

Keys = tuple[str, ...]

_HEADER = re.compile(r"^[ \t]*\[", re.MULTILINE)
_IDLE_LINE = re.compile(r"[ \t]*(#.*)?\r?\n?")


class UneditableError(Exception):
    """The text is written in a way that cannot be edited without a person."""


def with_values(text: str, table: Keys, values: Mapping[str, Any]) -> str:
    """``text`` with ``values`` in ``table``, which is made at the end where it is not there.

    A key may lead further down (``media.keep_days``). None removes a key. ``text`` must be TOML.

    Raises:
        UneditableError: as the class says; nothing came of it.
    """
    meant = tomllib.loads(text)
    with _reading_again():
        for key, value in values.items():
            path = (*table, *key.split("."))
            _put(meant, path, value)
            text = _without(text, path) if value is None else _with_value(text, table, path, value)
        return _checked(text, meant)


def without_table(text: str, table: Keys) -> str:
    """``text`` without ``table`` and without the tables above it that hold nothing else; raises likewise."""
    meant = tomllib.loads(text)
    with _reading_again():
        while table and _found(meant, table) is not None:
            text = _without(text, table)
            _put(meant, table, None)
            table = table[:-1]
            if _found(meant, table):
                break
        return _checked(text, meant)


@contextmanager
def _reading_again() -> Iterator[None]:
    """What the library cannot do, or did wrong, is refused."""
    try:
        yield
    except (TOMLKitError, ValueError, RecursionError) as error:
        raise UneditableError from error


# --- pieces of a file -----------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class _Piece:
    """A header with its keys' lines. ``tail``: blank lines and comments, which may be about what follows.

    ``keys`` is None for an entry of an array of tables.
    """

    keys: Keys | None
    head: str
    body: str
    tail: str

    @property
    def text(self) -> str:
        return self.head + self.body + self.tail


def _pieces(text: str) -> list[_Piece]:
    """``text`` cut at its headers; the first piece has none."""
    starts = [0]
    for match in _HEADER.finditer(text):
        if match.start() and _is_whole(text[starts[-1] : match.start()]):  # else it is inside a value
            starts.append(match.start())
    return [_piece(text[start:end]) for start, end in zip(starts, [*starts[1:], len(text)], strict=True)]


def _piece(text: str) -> _Piece:
    lines = re.findall(r"[^\n]*\n|[^\n]+", text)
    has_header = _HEADER.match(text) is not None
    head = lines.pop(0) if has_header else ""
    end = len(lines)
    while end and _IDLE_LINE.fullmatch(lines[end - 1]):
        end -= 1
    while not _is_whole("".join(lines[:end])):  # what looked like a comment ends a text of several lines
        end += 1
    keys = _header_keys(tomllib.loads(head)) if has_header else ()
    return _Piece(keys, head, "".join(lines[:end]), "".join(lines[end:]))


def _is_whole(text: str) -> bool:
    try:
        tomllib.loads(text)
    except tomllib.TOMLDecodeError:
        return False
    return True


def _header_keys(found: Any) -> Keys | None:
    keys: list[str] = []
    while found:
        if isinstance(found, list):
            return None
        ((key, found),) = found.items()
        keys.append(key)
    return tuple(keys)


def _joined(pieces: Sequence[_Piece]) -> str:
    return "".join(piece.text for piece in pieces)


# --- setting --------------------------------------------------------------------------------------


def _with_value(text: str, table: Keys, path: Keys, value: Any) -> str:
    pieces, newline = _pieces(text), "\r\n" if "\r\n" in text else "\n"
    at = _place(pieces, path[:-1])
    if at is None:
        at = _place(pieces, table)
    if at is None:
        pieces.append(_Piece(table, _gap(text, newline) + _header(table) + newline, "", ""))
        at = len(pieces) - 1
    piece = pieces[at]
    left = path[len(piece.keys or ()) :]
    pieces[at] = replace(piece, body=_body_with(piece.body, left, value, newline))
    if pieces[at].head and not pieces[at].head.endswith("\n"):
        pieces[at] = replace(pieces[at], head=piece.head + newline)
    return _joined(pieces)


def _place(pieces: Sequence[_Piece], table: Keys) -> int | None:
    """The piece in which ``table`` is written, the nearest to it where there are several."""
    found: list[tuple[int, int]] = []
    for at, piece in enumerate(pieces):
        keys = piece.keys
        if keys is None or keys != table[: len(keys)]:
            continue
        if keys == table or isinstance(_found(tomllib.loads(piece.body), table[len(keys) :]), dict):
            found.append((len(keys), at))
    return max(found)[1] if found else None


def _gap(text: str, newline: str) -> str:
    if not text.strip():
        return ""
    if not text.endswith("\n"):
        return newline * 2
    return "" if text.endswith(("\n\n", "\n\r\n")) else newline


def _header(table: Keys) -> str:
    return f"[{tomlkit.key(list(table)).as_string()}]"


def _body_with(body: str, path: Keys, value: Any, newline: str) -> str:
    """``body`` with the value in its place; a new key comes last."""
    document = tomlkit.parse(body)
    holder, depth = _nearest(document, path)
    left = path[depth:]
    if len(left) == 1 and left[0] in holder:
        holder[left[0]] = _item(value)
        return tomlkit.dumps(document)
    if isinstance(holder, InlineTable):
        for key in reversed(left[1:]):
            inner = tomlkit.inline_table()
            inner[key] = _item(value)
            value = inner
        holder[left[0]] = _item(value)
        return tomlkit.dumps(document)
    if body and not body.endswith("\n"):
        body += newline
    return f"{body}{tomlkit.key(list(path)).as_string()} = {_item(value).as_string()}{newline}"


def _nearest(document: Container, path: Keys) -> tuple[Any, int]:
    """The deepest table on the way to ``path`` that is there, and how deep it is."""
    holder: Any = document
    for depth, key in enumerate(path[:-1]):
        if not isinstance(holder.get(key), dict):
            return holder, depth
        holder = holder[key]
    return holder, len(path) - 1


def _item(value: Any) -> Any:
    return tomlkit.item(list(value) if isinstance(value, tuple) else value)


# --- removing -------------------------------------------------------------------------------------


def _without(text: str, path: Keys) -> str:
    """``text`` without what is written at ``path``, whichever way, and in however many places."""
    kept: list[_Piece] = []
    for piece in _pieces(text):
        if piece.keys is not None and piece.keys[: len(path)] == path:
            kept.append(_Piece(None, "", "", piece.tail if piece.tail.strip() else ""))
        elif piece.keys is not None and piece.keys == path[: len(piece.keys)]:
            kept.append(replace(piece, body=_body_without(piece.body, path[len(piece.keys) :])))
        else:
            kept.append(piece)
    return _joined(kept)


def _body_without(body: str, path: Keys) -> str:
    if _found(tomllib.loads(body), path) is None:
        return body
    document = tomlkit.parse(body)
    holder, _ = _nearest(document, path)
    del holder[path[-1]]
    return tomlkit.dumps(document)


# --- what was meant -------------------------------------------------------------------------------


def _found(data: Any, path: Keys) -> Any:
    for key in path:
        if not isinstance(data, dict) or key not in data:
            return None
        data = data[key]
    return data


def _put(data: dict[str, Any], path: Keys, value: Any) -> None:
    """Set ``path`` in ``data``, or remove it, where it is there, for None."""
    if value is None and _found(data, path) is None:
        return
    for key in path[:-1]:
        inner = data.setdefault(key, {})
        if not isinstance(inner, dict):
            raise UneditableError
        data = inner
    if value is None:
        del data[path[-1]]
    else:
        data[path[-1]] = list(value) if isinstance(value, tuple) else deepcopy(value)


def _checked(text: str, meant: Mapping[str, Any]) -> str:
    if tomllib.loads(text) != meant:
        raise UneditableError
    return text
