"""What ``turnbridge doctor`` looks at on this machine: the home, its disk and database, the installation."""

from __future__ import annotations

import os
import shlex
import stat
from pathlib import Path
from typing import TYPE_CHECKING

from bridge.cli.common import typed
from bridge.cli.findings import fault, good, unknown, warning
from bridge.errors import ConfigError

if TYPE_CHECKING:
    from collections.abc import Iterator

    from bridge.cli.findings import Finding
    from bridge.config import Config
    from bridge.media.disk import Usage
    from bridge.paths import Home

MOUNTS = Path("/proc/mounts")
NETWORK = frozenset(
    {"nfs", "nfs4", "cifs", "smb3", "smbfs", "9p", "afs", "ceph", "fuse.sshfs", "fuse.glusterfs"}
)
LEAST_BYTES = 256 << 20  # of free disk, whatever share that is
LEAST_INODES_PERCENT = 1.0
SPARE_DESCRIPTORS = 512  # beside those of connections


def machine(where: Home, config: Config) -> Iterator[Finding]:
    """All of it; a home that is not there leaves out what lies in it."""
    yield installation()
    yield descriptors(config.web.max_connections)
    found = [*home(where)]
    yield from found
    if os.access(where.root, os.R_OK | os.X_OK):
        yield from disk(where, config.media.min_free_percent)
        yield database(where)


def installation() -> Finding:
    """Our two packages have plain names: another ``channels`` would be taken for ours."""
    from importlib.util import find_spec

    from bridge import version

    ours = Path(version.__file__).parent.parent
    spec = find_spec("channels")
    theirs = Path(spec.origin or "").parent.parent if spec else None
    if theirs != ours:
        return fault(
            "installation",
            f"the package channels is not Turnbridge's but that in {theirs or 'no place'}",
            "install Turnbridge into an environment of its own: pipx install turnbridge",
        )
    return good("installation", f"turnbridge {version.VERSION} in {ours}")


def descriptors(max_connections: int) -> Finding:
    """How many files and connections the system lets a process have."""
    import resource

    _, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    wanted = max_connections + SPARE_DESCRIPTORS
    if hard == resource.RLIM_INFINITY or hard >= wanted:
        return good("descriptors", "as many as are needed")
    return warning(
        "descriptors",
        f"a process may have {hard} open files here; web.max_connections wants {wanted}",
        "raise the limit (ulimit -Hn, or LimitNOFILE= of a service), or set a smaller max_connections",
    )


def home(where: Home) -> Iterator[Finding]:
    """That it is there, ours, closed to others, and its paths are not too long."""
    try:
        found = where.root.stat()
        _ = where.socket, where.console_socket
    except FileNotFoundError:
        yield fault("home", f"{where.root} is not there", f"make it: {typed(where, 'init')}")
        return
    except ConfigError as error:
        yield fault("home", str(error), "move the home to a shorter path, and give that with --home")
        return
    if found.st_uid != os.geteuid():
        yield fault(
            "home",
            f"{where.root} belongs to {_user(found.st_uid)}, and this is {_user(os.geteuid())}",
            f"run this as {_user(found.st_uid)}, as the daemon does",
        )
        return
    yield _folder(where.root, found.st_mode)


def _folder(path: Path, mode: int) -> Finding:
    """What is inside is closed by this folder, whatever its own modes."""
    closing = f"chmod 700 {shlex.quote(str(path))}"
    if mode & (stat.S_IRWXG | stat.S_IRWXO):
        return fault("home", f"{path} is open to other users", closing)
    for each in (path, path / "state"):  # in this order: a closed folder tells nothing of those inside
        if each.exists() and not os.access(each, os.R_OK | os.W_OK | os.X_OK):
            return fault("home", f"{each} cannot be written", f"chmod 700 {shlex.quote(str(each))}")
    return good("home", f"{path}, closed to others")


def disk(where: Home, min_free_percent: float, usage: Usage | None = None) -> Iterator[Finding]:
    """Room, and a file system that a database can trust. ``usage``: the disk's, unless it is looked at."""
    import shutil

    now = usage or shutil.disk_usage(where.root)
    percent = 100 * now.free / max(now.used + now.free, 1)
    said = f"{percent:.0f} % free, {now.free >> 20} MiB"
    if now.free < LEAST_BYTES:
        yield fault("disk", f"nearly full: {said}", f"free some space where {where.root} is")
    elif percent < min_free_percent:
        yield warning(
            "disk",
            f"{said}: below media.min_free_percent ({min_free_percent:g}), so no files are taken in",
            f"free some space where {where.root} is, or set min_free_percent lower",
        )
    else:
        yield good("disk", said)
    if (inodes := _inodes_percent(where.root)) < LEAST_INODES_PERCENT:
        yield fault("disk", f"{inodes:.1f} % of its inodes are free", "remove small files there")
    if (kind := file_system(where.root)) in NETWORK:
        yield fault(
            "disk",
            f"{where.root} is on a network file system ({kind}), where a database is not safe",
            "move the home to a disk of this machine",
        )


def _inodes_percent(path: Path) -> float:
    found = os.statvfs(path)
    return (
        100 * found.f_favail / found.f_files if found.f_files else 100.0
    )  # some file systems have no such limit


def file_system(path: Path, mounts: Path = MOUNTS) -> str:
    """The kind of file system that ``path`` is on; "" where the system does not tell."""
    try:
        table = [line.split() for line in mounts.read_text(errors="replace").splitlines()]
    except OSError:
        return ""
    here = path.resolve()
    over = [(Path(point), kind) for _, point, kind, *_ in table if here.is_relative_to(point)]
    return max(over, key=lambda each: len(each[0].parts), default=(None, ""))[1]


def database(where: Home) -> Finding:
    """SQLite's version, and whether the file is sound, of a version that is known, and ours to write."""
    import sqlite3

    from bridge.store import database as db
    from bridge.store import schema

    if sqlite3.sqlite_version_info < db.OLDEST_SQLITE:
        return fault(
            "database", f"SQLite {sqlite3.sqlite_version} is too old", "install SQLite 3.37 or later"
        )
    if not where.db.exists():
        return unknown("database", f"SQLite {sqlite3.sqlite_version}; there is none before the first start")
    try:
        reader = schema.open_reader(where.db)
        try:
            schema.refuse_foreign(reader, where.db)
            schema.check(reader, where.db)
        finally:
            reader.close()
    except ConfigError as error:
        return fault("database", str(error), "stop the daemon first; docs/operating.md says what to back up")
    except sqlite3.Error as error:
        return fault("database", str(db.explain(error)), "look at the disk, and at the modes of its files")
    return good("database", f"SQLite {sqlite3.sqlite_version}, {where.db.stat().st_size >> 10} KiB")


def _user(number: int) -> str:
    import pwd

    try:
        return pwd.getpwuid(number).pw_name
    except KeyError:
        return f"user {number}"
