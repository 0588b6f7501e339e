"""The files of one workspace, reached from its open folder on, step by step.

No step follows a link by itself: each link is read and walked like a path that was given, so whatever is
exchanged for a link meanwhile, nothing outside of the workspace is reached. A file is replaced by renaming a
whole one over it. All of it blocks, and needs the standard library alone: searching runs in a process.
"""

import os
import secrets
import stat
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path

MOST_LINKS = 40
OWN_WORKSPACE = "workspace"  # what agents may use of the daemon's home
OUTSIDE = "That path is outside of the workspace."
DAEMONS = "Those files belong to the daemon."
NOT_REGULAR = "That is no regular file."
CHANGED = "The file changed meanwhile: read it again."
_STEP = getattr(os, "O_PATH", os.O_RDONLY) | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC
OPEN_FOLDER = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC
_READ = os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC  # not held up by a pipe without a writer
_NEW = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC

Identity = tuple[int, int]
"""A folder's, whatever its name: device and inode."""


class RefusedError(Exception):
    """What the model is told instead of a result."""


@dataclass(frozen=True, slots=True)
class Spot:
    """A name in an open folder; "." is the folder itself. It was no link when it was reached."""

    folder: int
    name: str


class Workspace:
    """Usable in ``with``. ``own`` is the daemon's home, of which only the workspace there is reached."""

    def __init__(self, cwd: Path, own: Identity | None = None) -> None:
        self._cwd, self._own = cwd, own
        self._root = -1

    def __enter__(self) -> "Workspace":
        self._root = os.open(self._cwd, OPEN_FOLDER)
        return self

    def __exit__(self, *_: object) -> None:
        os.close(self._root)

    @contextmanager
    def spot(self, path: str, *, make: bool = False) -> Iterator[Spot]:
        """Where ``path`` leads, all links followed. With ``make``, folders that are missing are made.

        Raises:
            RefusedError: it leads out of the workspace, or to the daemon's own.
            OSError, ValueError: a step is missing, no folder, or no name.
        """
        folders, todo, links = [self._root], self._steps(path), 0
        try:
            while True:
                name = todo.pop() if todo else "."
                if name == "..":
                    self._leave(folders)
                    continue
                self._check(folders[-1], name)
                if (target := _link(folders[-1], name)) is not None:
                    links += 1
                    self._follow(target, folders, todo, links)
                elif todo:
                    folders.append(_enter(folders[-1], name, make))
                else:
                    break
            yield Spot(folders[-1], name)
        finally:
            for folder in folders[1:]:
                os.close(folder)

    @contextmanager
    def folder(self, path: str) -> Iterator[int]:
        """The folder ``path``, open to be listed; raises as ``spot``."""
        with self.spot(path) as spot:
            opened = os.open(spot.name, OPEN_FOLDER, dir_fd=spot.folder)
        try:
            if identity_of(opened) == self._own:
                raise RefusedError(DAEMONS)
            yield opened
        finally:
            os.close(opened)

    @contextmanager
    def file(self, path: str) -> Iterator[int]:
        """The regular file ``path``, open to be read; raises as ``spot``."""
        with self.spot(path) as spot:
            opened = open_regular(spot)
        try:
            yield opened
        finally:
            os.close(opened)

    def write(self, path: str, data: bytes, seen: os.stat_result | None = None) -> None:
        """Make ``data`` all that the file ``path`` holds: whole or not at all. A new one's folders are made.

        ``seen`` is the file whose content ``data`` was made from.

        Raises:
            As ``spot``; RefusedError also when it is no regular file, or not the one that was ``seen``.
        """
        with self.spot(path, make=True) as spot:
            _replace(spot, data, seen)

    def _steps(self, path: str) -> list[str]:
        """The steps from the workspace on, the last one first."""
        inside = path
        if path.startswith("/"):
            roots = [(path, str(self._cwd)), (os.path.realpath(path), os.path.realpath(self._cwd))]
            found = [text[len(root) :] for text, root in roots if f"{text}/".startswith(f"{root}/")]
            if not found:
                raise RefusedError(OUTSIDE)
            inside = found[0]
        return [step for step in reversed(inside.split("/")) if step not in ("", ".")]

    def _leave(self, folders: list[int]) -> None:
        if len(folders) == 1:
            raise RefusedError(OUTSIDE)
        os.close(folders.pop())

    def _check(self, folder: int, name: str) -> None:
        if self._own is not None and name != OWN_WORKSPACE and identity_of(folder) == self._own:
            raise RefusedError(DAEMONS)

    def _follow(self, target: str, folders: list[int], todo: list[str], links: int) -> None:
        if links > MOST_LINKS:
            raise RefusedError("That path is a circle of links.")
        todo += self._steps(target)
        while target.startswith("/") and len(folders) > 1:
            os.close(folders.pop())


def identity(path: Path) -> Identity | None:
    """That of a folder; None: there is none."""
    try:
        found = path.stat()
    except OSError:
        return None
    return found.st_dev, found.st_ino


def open_regular(spot: Spot) -> int:
    """A regular file, open to be read; raises OSError, or RefusedError for anything else.

    It is looked at before, so that a device is not even opened, and again when it is open.
    """
    _check_regular(os.stat(spot.name, dir_fd=spot.folder, follow_symlinks=False))
    opened = os.open(spot.name, _READ, dir_fd=spot.folder)
    try:
        _check_regular(os.fstat(opened))
    except BaseException:  # whatever it was, nobody else has the descriptor
        os.close(opened)
        raise
    return opened


def _replace(spot: Spot, data: bytes, seen: os.stat_result | None) -> None:
    """Its mode stays, and its owner where that can be; it becomes a file of one name."""
    old = _found(spot)
    temporary = f".{secrets.token_hex(8)}.tmp"
    opened = os.open(temporary, _NEW, 0o666, dir_fd=spot.folder)
    try:
        with os.fdopen(opened, "wb") as file:
            if old:
                _take_after(opened, old)
            file.write(data)
            file.flush()
            os.fsync(opened)
        if seen and _version(_found(spot)) != _version(seen):
            raise RefusedError(CHANGED)
        os.rename(temporary, spot.name, src_dir_fd=spot.folder, dst_dir_fd=spot.folder)
    except BaseException:  # whatever it was, nothing of ours stays in the folder
        with suppress(OSError):
            os.unlink(temporary, dir_fd=spot.folder)
        raise


def _found(spot: Spot) -> os.stat_result | None:
    """The regular file that is there; None: nothing is."""
    try:
        found = os.stat(spot.name, dir_fd=spot.folder, follow_symlinks=False)
    except FileNotFoundError:
        return None
    _check_regular(found)
    return found


def _take_after(opened: int, old: os.stat_result) -> None:
    with suppress(PermissionError):  # only some may give files away
        os.fchown(opened, old.st_uid, old.st_gid)
    os.fchmod(opened, old.st_mode & 0o777)


def _version(found: os.stat_result | None) -> tuple[int, ...]:
    return (found.st_dev, found.st_ino, found.st_size, found.st_mtime_ns) if found else ()


def _check_regular(found: os.stat_result) -> None:
    if not stat.S_ISREG(found.st_mode):
        raise RefusedError(NOT_REGULAR)


def identity_of(folder: int) -> Identity:
    """That of an open folder."""
    found = os.fstat(folder)
    return found.st_dev, found.st_ino


def _link(folder: int, name: str) -> str | None:
    """Where the link ``name`` leads; None: it is none, or is not there."""
    try:
        return os.readlink(name, dir_fd=folder)
    except OSError:
        return None


def _enter(folder: int, name: str, make: bool) -> int:
    try:
        return os.open(name, _STEP, dir_fd=folder)
    except FileNotFoundError:
        if not make:
            raise
    with suppress(FileExistsError):
        os.mkdir(name, dir_fd=folder)
    return os.open(name, _STEP, dir_fd=folder)
