"""The session server's Unix socket: one server per home, for the same user alone."""

import fcntl
import os
import socket
import stat
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path

from bridge.errors import ConfigError
from bridge.paths import unserved

BACKLOG = 1024  # turns that begin at once: a client that finds no place there is refused
_PROBE_SECONDS = 1.0


@contextmanager
def listening(path: Path) -> Iterator[socket.socket]:
    """A socket that listens on ``path`` (mode 0600, its directory 0700); removed at the end; blocking.

    A lock on ``server.lock`` beside it says who serves; the file itself stays.

    Raises:
        ConfigError: another server runs here, or the path is not ours to use.
        ExhaustedError: the system lacks descriptors for it.
    """
    try:
        path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        path.parent.chmod(0o700)
        lock = _lock(path.with_name("server.lock"))
    except OSError as error:
        raise unserved(error, f"cannot serve on {path}: {error.strerror}") from error
    try:
        with _bound(path) as server:
            yield server
    finally:
        os.close(lock)  # and with it the lock


def _lock(path: Path) -> int:
    lock = os.open(path, os.O_RDWR | os.O_CREAT | os.O_NOFOLLOW | os.O_CLOEXEC, 0o600)
    try:
        fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError as error:
        os.close(lock)
        raise ConfigError(f"a session server runs already: {path} is locked") from error
    except BaseException:  # whatever it was, nobody else has the descriptor
        os.close(lock)
        raise
    return lock


@contextmanager
def _bound(path: Path) -> Iterator[socket.socket]:
    with ExitStack() as opened:
        try:
            server = opened.enter_context(socket.socket(socket.AF_UNIX, socket.SOCK_STREAM))
            _make_way(path)
            server.bind(str(path))
        except OSError as error:
            raise unserved(error, f"cannot serve on {path}: {error.strerror or error}") from error
        try:
            path.chmod(0o600)
            server.listen(BACKLOG)
            server.setblocking(False)
            yield server
        finally:
            path.unlink(missing_ok=True)


def _make_way(path: Path) -> None:
    """Remove a socket that nobody serves any more."""
    try:
        found = path.lstat()
    except FileNotFoundError:
        return
    if not stat.S_ISSOCK(found.st_mode):
        raise ConfigError(f"{path} is no socket: move it away")
    if _is_served(path):
        raise ConfigError(f"a session server runs already on {path}")
    path.unlink()


def _is_served(path: Path) -> bool:
    with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as probe:
        probe.settimeout(_PROBE_SECONDS)
        try:
            probe.connect(str(path))
        except (ConnectionRefusedError, FileNotFoundError):
            return False
        except OSError:
            return True  # somebody is there, if only too busy to answer
        return True
