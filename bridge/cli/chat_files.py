"""Files of a chat: those that are sent, as they were typed, and those that arrive, kept under safe names."""

from __future__ import annotations

import os
import re
import shlex
import shutil
import tempfile
from dataclasses import dataclass
from pathlib import Path
from urllib.parse import unquote, urlsplit

from bridge.cli.chat_client import LocalFile, ReplyFile
from bridge.cli.chat_words import Word, WordError
from bridge.cli.common import nearer, visible
from bridge.errors import BridgeError

MOST_NAMES = 10_000
MOST_COMPLETIONS = 200
_SPECIAL = re.compile(r"([^\w@%+=:,./~-])")


def named(words: str) -> list[LocalFile]:
    """The files that ``words`` name, as a shell would split them: quotes and backslashes keep blanks.

    Raises:
        BridgeError: one is not there, or is no regular file, or a quote has no end.
    """
    try:
        return [local(word) for word in shlex.split(words)]
    except ValueError:
        raise WordError(Word.FILE_QUOTE) from None


def local(name: str) -> LocalFile:
    """The file called ``name``; raises as ``named``."""
    try:
        path = Path(os.path.realpath(Path(name).expanduser()))
        str(path).encode()
        size = path.stat().st_size
    except UnicodeEncodeError:
        raise WordError(Word.FILE_UTF8) from None
    except FileNotFoundError:
        raise WordError(Word.FILE_MISSING, name=visible(name)) from None
    except PermissionError:
        raise WordError(Word.FILE_DENIED, name=visible(name)) from None
    except OSError as error:
        raise WordError(Word.FILE_UNREAD, name=visible(name), reason=error.strerror) from None
    except (ValueError, RuntimeError):  # a NUL; the home of somebody who is not there
        raise WordError(Word.FILE_NAME, name=visible(name)) from None
    if not path.is_file():
        raise WordError(Word.FILE_IRREGULAR, name=visible(name))
    return LocalFile(path, size)


def fitting(files: list[LocalFile], most_bytes: int | None) -> list[LocalFile]:
    """``files``, each of at most ``most_bytes``; None: whatever they have.

    Raises:
        BridgeError: the account takes one of them not in.
    """
    from bridge.media.sizes import shown_size

    for file in files:
        if most_bytes is not None and file.size > most_bytes:
            name, size = visible(file.path.name), shown_size(file.size)
            raise WordError(Word.FILE_LARGE, name=name, size=size, most=shown_size(most_bytes))
    return files


def dragged(line: str) -> list[LocalFile]:
    """The files of a line that is only paths of existing ones, as terminals write them; none of any other."""
    try:
        words = [_path(word) for word in shlex.split(line)]
        return [local(word) for word in words] if all("/" in word for word in words) else []
    except (ValueError, BridgeError):
        return []


def _path(word: str) -> str:
    return unquote(urlsplit(word).path) if word.startswith("file://") else word


@dataclass(frozen=True, slots=True)
class Saved:
    path: Path
    size: int


def save(file: ReplyFile, folder: Path) -> Saved:
    """Copy what arrived into ``folder`` under a harmless form of its name; one that is there is kept.

    Where the folder cannot take it, a new one among the temporary files does.

    Raises:
        BridgeError: it cannot be read any more, or nowhere be written.
    """
    try:
        with os.fdopen(os.open(file.path, os.O_RDONLY | os.O_NOFOLLOW | os.O_CLOEXEC), "rb") as source:
            try:
                return _copied(source.fileno(), file.name, folder)
            except OSError:
                source.seek(0)
                return _copied(source.fileno(), file.name, Path(tempfile.mkdtemp(prefix="turnbridge-")))
    except OSError as error:
        raise BridgeError(f"{visible(file.name)} could not be saved: {error.strerror}") from error


def _copied(source: int, name: str, folder: Path) -> Saved:
    folder.mkdir(mode=0o700, parents=True, exist_ok=True)
    path = _new(folder, name)
    try:
        with path.open("wb") as target, os.fdopen(os.dup(source), "rb") as data:
            shutil.copyfileobj(data, target)
    except OSError:
        path.unlink(missing_ok=True)
        raise
    return Saved(path, path.stat().st_size)


def _new(folder: Path, name: str) -> Path:
    """A new empty file: ``a.png``, ``a (2).png`` …"""
    from bridge.media.names import safe_name

    safe = Path(safe_name(name))
    for count in range(1, MOST_NAMES):
        path = folder / (safe if count == 1 else f"{safe.stem} ({count}){safe.suffix}")
        try:
            path.touch(mode=0o600, exist_ok=False)
        except FileExistsError:
            continue
        return path
    raise OSError(None, f"{folder} is full of files of that name")


def described(path: Path, size: int) -> str:
    """How large it is, and for a picture how many pixels it has."""
    from bridge.media.images import image_size
    from bridge.media.sizes import shown_size

    pixels = image_size(path)
    return f"{shown_size(size)}, {pixels[0]} x {pixels[1]}" if pixels else shown_size(size)


def shown(path: Path) -> str:
    """``path`` as it is typed from here, harmless."""
    return visible(nearer(path))


def completions(line: str) -> list[str]:
    """``line`` with its last word completed to each path that it may become; its blanks are escaped."""
    head, word = _last_word(line)
    typed = Path(word).expanduser() if word.startswith("~") else Path(word)
    folder, start = (typed, "") if word.endswith("/") or not word else (typed.parent, typed.name)
    try:
        found = sorted(os.scandir(folder), key=lambda entry: entry.name)
    except OSError:
        return []
    base = word[: len(word) - len(start)]
    return [
        head + _SPECIAL.sub(r"\\\1", base + entry.name) + ("/" if entry.is_dir() else " ")
        for entry in found
        if entry.name.startswith(start) and (start or not entry.name.startswith("."))
    ][:MOST_COMPLETIONS]


def _last_word(line: str) -> tuple[str, str]:
    """What stands before the last word, and that word, maybe unfinished, without quotes and backslashes."""
    at = word_start = 0
    quote, word = "", ""
    while at < len(line):
        char = line[at]
        if char == "\\" and quote != "'" and at + 1 < len(line):
            at += 1
            word += line[at]
        elif quote:
            quote, word = ("", word) if char == quote else (quote, word + char)
        elif char in "'\"":
            quote = char
        elif char.isspace():
            word_start, word = at + 1, ""
        else:
            word += char
        at += 1
    return line[:word_start], word
