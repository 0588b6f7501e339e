"""New private files: created as new, for the owner alone, durable when finished, gone when not. Blocks."""

import os
from contextlib import suppress
from pathlib import Path
from typing import Final

_NEW: Final = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC
_DIRECTORY: Final = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC


class NewFile:
    """A file being written. ``finish`` ends it well; ``discard`` at any time, also afterwards, removes it.

    The directory is held open, so that the file stays in it even when its path is exchanged.
    """

    def __init__(self, path: Path) -> None:
        self.path = path
        self._directory = -1
        self._file = -1
        self._created = False

    def create(self) -> None:
        """Create the file, and its directory and those above it where they are missing.

        Raises:
            OSError: it exists, the directory is a symbolic link, or the disk does not take it.
        """
        make_private(self.path.parent)
        try:
            self._open()
        except FileNotFoundError:  # the folder was empty, and somebody tidied it up just now
            self._close()
            make_private(self.path.parent)
            self._open()
        self._created = True
        os.fchmod(self._file, 0o600)  # whatever the umask took away

    def _open(self) -> None:
        self._directory = os.open(self.path.parent, _DIRECTORY)
        self._file = os.open(self.path.name, _NEW, 0o600, dir_fd=self._directory)

    def write(self, data: bytes | memoryview) -> None:
        """Append all of ``data``; raises OSError."""
        left = memoryview(data)
        while left:
            left = left[os.write(self._file, left) :]

    def finish(self, name: str = "") -> None:
        """Make the file and its name durable, under ``name`` from now on if it is given; raises OSError."""
        os.fsync(self._file)
        if name:
            os.rename(self.path.name, name, src_dir_fd=self._directory, dst_dir_fd=self._directory)
            self.path = self.path.with_name(name)
        os.fsync(self._directory)
        self._close()

    def discard(self) -> None:
        """Remove what was written; does nothing to a file that was not created here."""
        if self._created:
            with suppress(FileNotFoundError):
                if self._directory < 0:
                    self.path.unlink()
                else:
                    os.unlink(self.path.name, dir_fd=self._directory)
        self._close()

    def _close(self) -> None:
        for handle in (self._file, self._directory):
            if handle >= 0:
                os.close(handle)
        self._file = self._directory = -1


def make_private(directory: Path) -> None:
    """Make ``directory`` and what is missing above it, for the owner alone, durably; raises OSError."""
    missing = []
    here = directory
    while not here.exists():
        missing.append(here)
        here = here.parent
    for each in reversed(missing):
        each.mkdir(mode=0o700, exist_ok=True)
        sync_directory(each.parent)


def sync_directory(path: Path) -> None:
    """Make the names in ``path`` durable; raises OSError."""
    handle = os.open(path, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)
