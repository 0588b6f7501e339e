"""Where everything lies under the home, and how private files are made and read.

No path is ever made from a name that a remote party chose: accounts are checked, conversations digested.
"""

import errno
import os
import re
import secrets
import stat
from collections.abc import Iterable
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

from bridge.errors import BridgeError, ConfigError, ExhaustedError

SOCKET_PATH_BYTES = 100  # the kernels take 104 (macOS) or 108 (Linux), the end included
PRIVATE_FILE_BYTES = 1 << 20
LEFT_SECONDS = 60.0  # no writer takes so long

_NAME = re.compile(r"[A-Za-z0-9_-]{1,64}")
_OTHERS = stat.S_IRWXG | stat.S_IRWXO
_LACKING = frozenset({errno.EMFILE, errno.ENFILE, errno.ENOMEM})


@dataclass(frozen=True, slots=True)
class Home:
    """One home folder: a configuration, the credentials and all state of one daemon."""

    root: Path

    @classmethod
    def resolve(cls, chosen: str | Path | None = None) -> "Home":
        """The home that was ``chosen`` (``--home``), else ``TURNBRIDGE_HOME``, else ``~/.turnbridge``."""
        text = chosen or os.environ.get("TURNBRIDGE_HOME") or "~/.turnbridge"
        try:
            return cls(Path(text).expanduser().absolute())
        except RuntimeError as error:
            raise ConfigError("this user has no home directory: give --home or TURNBRIDGE_HOME") from error

    @property
    def config(self) -> Path:
        return self.root / "config.toml"

    @property
    def state(self) -> Path:
        return self.root / "state"

    @property
    def socket(self) -> Path:
        """The session server's.

        Raises:
            ConfigError: it is longer than a socket's path may be.
        """
        return self.socket_path("server.sock")

    @property
    def console_socket(self) -> Path:
        """The console channel's; raises as ``socket`` does."""
        return self.socket_path("console.sock")

    @property
    def db(self) -> Path:
        return self.state / "turnbridge.db"

    @property
    def daemon_lock(self) -> Path:
        return self.state / "daemon.lock"

    @property
    def metrics_token(self) -> Path:
        """What whoever asks for the metrics has to show."""
        return self.state / "metrics.token"

    @property
    def outbox(self) -> Path:
        """Where the agents' files wait to be sent."""
        return self.state / "media" / "outbox"

    def socket_path(self, name: str) -> Path:
        path = self.state / name
        if len(os.fsencode(path)) > SOCKET_PATH_BYTES:
            raise ConfigError(
                f"the socket's path is over {SOCKET_PATH_BYTES} bytes: {path}: choose a shorter --home"
            )
        return path

    def credentials(self, channel: str, account: str) -> Path:
        """The private file of one account's secrets.

        Raises:
            ConfigError: a name that is no plain name.
        """
        return self.root / "credentials" / plain_name(channel) / f"{plain_name(account)}.json"

    def inbox(self, channel: str, account: str, conversation_digest: str) -> Path:
        """Where one conversation's received files are kept; raises as ``credentials`` does."""
        account_media = self.state / "media" / plain_name(channel) / plain_name(account)
        return account_media / plain_name(conversation_digest)

    def private_dir(self, path: Path) -> Path:
        """Make the directory ``path`` and those between the home and it, each for the owner alone.

        Raises:
            ConfigError: it lies outside the home, a symbolic link is on the way, or it cannot be made.
        """
        try:
            inner = path.relative_to(self.root)
        except ValueError as error:
            raise ConfigError(f"{path} is not inside the home {self.root}") from error
        if ".." in inner.parts:
            raise ConfigError(f"{path} is not inside the home {self.root}")
        try:
            self.root.mkdir(mode=0o700, parents=True, exist_ok=True)
            _close_to_others(self.root.resolve())  # the home itself may be a link of its owner's making
            here = self.root
            for part in inner.parts:
                here /= part
                here.mkdir(mode=0o700, exist_ok=True)
                _close_to_others(here)
        except OSError as error:
            raise ConfigError(f"cannot make the directory {path}: {_why(error)}") from error
        return path


def plain_name(name: str) -> str:
    """``name``, when it can be a file's name anywhere.

    Raises:
        ConfigError: it is empty, too long, or has other characters than ASCII letters, digits, ``_``, ``-``.
    """
    if not _NAME.fullmatch(name):
        raise ConfigError("a name has up to 64 letters, digits, _ and -, and nothing else: rename it")
    return name


def write_private(path: Path, data: bytes) -> None:
    """Replace ``path`` by ``data``: whole or not at all, also over a power loss, and for the owner alone.

    What a writer that was killed left beside it long ago goes.

    Raises:
        ConfigError: it could not be written; what stood there before still does.
    """
    temporary = path.with_name(f".{path.name}.{secrets.token_hex(4)}")
    try:
        try:
            _write_new(temporary, data)
            _remove_old(leftovers(path), temporary.stat().st_mtime - LEFT_SECONDS)
            temporary.replace(path)
        except BaseException:  # interrupted, too: no half of it stays
            temporary.unlink(missing_ok=True)
            raise
        sync_directory(path.parent)
    except OSError as error:
        raise ConfigError(f"cannot write {path}: {_why(error)}") from error


def leftovers(path: Path) -> list[Path]:
    """What writers of ``path`` have beside it, or left there when they were killed; raises OSError."""
    names = re.compile(rf"\.{re.escape(path.name)}\.[0-9a-f]{{8}}")
    return [each for each in path.parent.iterdir() if names.fullmatch(each.name)]


def _remove_old(files: Iterable[Path], before: float) -> None:
    for each in files:
        with suppress(FileNotFoundError):  # another writer has just ended
            if each.lstat().st_mtime < before:
                each.unlink()


def read_private(path: Path) -> bytes:
    """The bytes of a private file, judged on the open file, so that it cannot be exchanged in between.

    Raises:
        ConfigError: it is missing, a symbolic link, no regular file, another user's, open to others, or
            over 1 MiB.
        ExhaustedError: it may be all of that, and good.
    """
    try:
        file = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC)
    except FileNotFoundError as error:
        raise ConfigError(f"{path} is missing: create it with mode 0600") from error
    except OSError as error:
        if os.path.islink(path):
            raise ConfigError(f"{path} is a symbolic link: put the file itself there") from error
        raise unread(error, f"{path}: {_why(error)}") from error
    try:
        found = os.fstat(file)
        if not stat.S_ISREG(found.st_mode):
            raise ConfigError(f"{path} is no regular file: put a file there")
        if found.st_uid != (us := os.geteuid()):  # root could read it; somebody else wrote it
            raise ConfigError(f"{path} belongs to another user: run chown {us} on it")
        if found.st_mode & _OTHERS:
            raise ConfigError(f"{path} is open to others: run chmod 600 on it")
        with os.fdopen(file, "rb", closefd=False) as stream:
            data = stream.read(PRIVATE_FILE_BYTES + 1)
    finally:
        os.close(file)
    if len(data) > PRIVATE_FILE_BYTES:
        raise ConfigError(f"{path} is over {PRIVATE_FILE_BYTES} bytes: it cannot be what belongs there")
    return data


def unread(error: OSError, text: str) -> BridgeError:
    """The error of ours for a file or directory that was not read: ``text`` says what was wrong with it."""
    return (ExhaustedError if error.errno in _LACKING else ConfigError)(text)


def unserved(error: OSError, text: str, cure: str = "") -> BridgeError:
    """The error of ours for a socket that cannot be listened on; ``cure`` where nothing is lacking."""
    if error.errno in _LACKING:
        return ExhaustedError(f"{text}: allow more of them (ulimit -n, or LimitNOFILE= of a service)")
    return ConfigError(f"{text}: {cure}" if cure else text)


def _write_new(path: Path, data: bytes) -> None:
    flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC
    with os.fdopen(os.open(path, flags, 0o600), "wb") as stream:
        os.fchmod(stream.fileno(), 0o600)  # whatever the umask took away
        stream.write(data)
        stream.flush()
        os.fsync(stream.fileno())


def sync_directory(path: Path) -> None:
    """Make the names in ``path`` durable; raises OSError."""
    directory = os.open(path, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        os.fsync(directory)
    finally:
        os.close(directory)


def _close_to_others(directory: Path) -> None:
    handle = os.open(directory, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC)
    try:
        if stat.S_IMODE(os.fstat(handle).st_mode) != 0o700:
            os.fchmod(handle, 0o700)
    finally:
        os.close(handle)


def _why(error: OSError) -> str:
    return error.strerror or type(error).__name__
