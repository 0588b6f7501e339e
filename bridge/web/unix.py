"""A Unix socket to listen on, for the same user alone."""

from __future__ import annotations

import socket
import stat
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path

from bridge.errors import ConfigError
from bridge.paths import unserved


@contextmanager
def bound(path: Path) -> Iterator[socket.socket]:
    """A socket bound to ``path`` (mode 0600, its directory 0700); the file is removed at the end.

    One that is left there is nobody's any more: a home has one daemon, which the run lock sees to.

    Raises:
        ConfigError: the path is not ours to use.
        ExhaustedError: the system lacks descriptors for it.
    """
    with ExitStack() as opened:
        try:
            server = opened.enter_context(socket.socket(socket.AF_UNIX, socket.SOCK_STREAM))
            path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
            path.parent.chmod(0o700)
            _make_way(path)
            server.bind(str(path))
        except OSError as error:
            raise unserved(error, f"cannot serve on {path}: {error.strerror or error}") from error
        try:
            path.chmod(0o600)
            server.setblocking(False)
            yield server
        finally:
            path.unlink(missing_ok=True)


def _make_way(path: Path) -> None:
    """Remove a socket that a daemon left behind."""
    try:
        found = path.lstat()
    except FileNotFoundError:
        return
    if not stat.S_ISSOCK(found.st_mode):
        raise ConfigError(f"{path} is no socket: move it away")
    path.unlink()
