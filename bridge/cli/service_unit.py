"""The systemd unit of one home: what the daemon may do as a service, and how it is started again."""

from __future__ import annotations

import math
import os
import re
import shlex
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from bridge.cli import systemd
from bridge.cli.common import typed
from bridge.cli.systemd import ServiceError

if TYPE_CHECKING:
    from collections.abc import Iterator

    from bridge.config import Config
    from bridge.paths import Home

NAME = "turnbridge"
SPARE_SECONDS = 7  # beyond daemon.stop_seconds: the daemon ends itself two seconds after those
# Emptied at a start or sooner.
TEMPORARY = (Path("/tmp"), Path("/var/tmp"), Path("/dev/shm"), Path("/run"))  # noqa: S108 - none is used
ELSEWHERE = "install Turnbridge elsewhere: pipx install ."

UNIT = """\
# Made by "turnbridge service install", which writes it anew. For more: systemctl --user edit {name}
[Unit]
{description}
StartLimitIntervalSec=0

[Service]
ExecStart={start}
# Where programs are found: as in the shell that installed this.
{search}
# The variables that config.toml names, NAME=value, one a line, in a private file.
EnvironmentFile=-{environment}
Restart=on-failure
RestartSec=5
# Wrong settings: starting again changes nothing.
RestartPreventExitStatus=2
TimeoutStopSec={stop}
# It ends its programs itself: one that ended before it would look like an answer. What is left is killed.
KillMode=mixed
# A program of an agent that the system ends for its memory is no reason to end all.
OOMPolicy=continue
LimitNOFILE=65536
UMask=0077
NoNewPrivileges=yes
PrivateUsers=yes
ProtectSystem=strict
# The user's own folder, where coding agents keep what they know; temporary files, which commands hand over.
ReadWritePaths=%h -/tmp -/var/tmp
ReadWritePaths={writable}
ProtectControlGroups=yes
ProtectKernelModules=yes
ProtectKernelTunables=yes
RestrictSUIDSGID=yes
LockPersonality=yes

[Install]
WantedBy=default.target
"""


@dataclass(frozen=True, slots=True)
class Unit:
    """The service of one home: what it is called, and where its file is."""

    name: str
    path: Path

    def read(self) -> str | None:
        """What is installed; None: nothing."""
        try:
            return self.path.read_text(encoding="utf-8", errors="replace")
        except FileNotFoundError:
            return None


def unit_of(where: Home) -> Unit:
    """``turnbridge`` for the usual home; for any other with its folder's name."""
    from bridge.paths import Home

    own = re.sub(r"[^A-Za-z0-9_-]+", "-", where.root.name).strip("-") or "home"
    is_usual = where.root == Home(Path("~/.turnbridge").expanduser()).root
    name = NAME if is_usual else f"{NAME}-{own}"
    settings = Path(os.environ.get("XDG_CONFIG_HOME") or "~/.config").expanduser()
    return Unit(name, settings / "systemd" / "user" / f"{name}.service")


def text_of(where: Home) -> str:
    """The unit as it is to be: of the system only the folders that agents work in can be written.

    Raises:
        ConfigError: the settings cannot be read.
        ServiceError: a path cannot stand in a unit, or is in a folder that is emptied, as the program may be.
    """
    from bridge.config import load

    config = load(where.config)
    root = where.root.resolve()  # systemd drops a link that lies in another path that can be written
    for path in (where.root, root, *workspaces(config), *map(Path.resolve, workspaces(config))):
        _refuse_emptied(path, "move it elsewhere")
    for path in _program(where):
        _refuse_emptied(path, ELSEWHERE)
    outside = [folder for folder in folders(config) if not folder.is_relative_to(root)]
    writable = [str(root), *(f"-{folder}" for folder in outside)]
    text = UNIT.format(
        name=unit_of(where).name,
        description=_description(where),
        start=" ".join(quoted(word.replace("$", "$$")) for word in command(where)),
        search=f"Environment={quoted(f'PATH={search_path()}')}",
        environment=escaped(str(where.root / "environment")),
        stop=math.ceil(config.daemon.stop_seconds) + SPARE_SECONDS,
        writable=" ".join(quoted(path) for path in writable),
    )
    if not text.replace("\n", "").isprintable() or "\n" in f"{where.root}{outside}":
        raise ServiceError(f"a path of {where.config} cannot stand in a unit: choose a plainer one")
    return text


def own_text(unit: Unit, where: Home) -> str | None:
    """What is installed for this home; None: nothing.

    Raises:
        ServiceError: the unit of that name is another home's, whose folder is called the same.
    """
    installed = unit.read()
    if installed is not None and _description(where) not in installed.splitlines():
        raise ServiceError(f"{unit.path} is not this home's: give this home's folder another name")
    return installed


def workspaces(config: Config) -> list[Path]:
    """The folders that the settings name for agents to work in, whatever else is wrong with an account."""
    accounts = [account for tables in config.channels.values() for account in tables.values()]
    named = {config.daemon.workspace, *(str(account.get("workspace") or "") for account in accounts)}
    return sorted(Path(each) for each in named if os.path.isabs(each))


def folders(config: Config) -> list[Path]:
    """All that agents and their programs may write to by the settings, without links."""
    named = {*config.daemon.folders, *(server.cwd for server in config.mcp.values() if server.cwd)}
    paths = {*workspaces(config), *(Path(each).expanduser() for each in named)}
    return sorted({path.resolve() for path in paths})


def search_path() -> str:
    """This shell's ``PATH``, without what a service would not find there tomorrow."""
    parts = os.environ.get("PATH", os.defpath).split(os.pathsep)
    stay = [part for part in parts if os.path.isabs(part) and part.isprintable() and not _emptied(Path(part))]
    return os.pathsep.join(dict.fromkeys(stay))


def is_same(installed: str, wanted: str) -> bool:
    """Whether they differ in nothing but the ``PATH``, which each shell may have its own of."""
    return _without_path(installed) == _without_path(wanted)


def command(where: Home) -> list[str]:
    """What starts the daemon, by its path: as it was called now, or as it stands beside this Python."""
    called, beside = Path(sys.argv[0]).absolute(), Path(sys.executable).parent / "turnbridge"
    program = called if called.name == "turnbridge" and called.exists() else beside
    return [str(program), "run", "--home", str(where.root)]


def by_hand(where: Home) -> str:
    """What to do where this user has no systemd, or it does not run since nobody is logged in."""
    foreground, other = typed(where, "run"), shlex.join(command(where))
    sleeping = f"have it run: sudo loginctl enable-linger {os.geteuid()}, or " if systemd.is_booted() else ""
    return f"{sleeping}run it in the foreground: {foreground}, or let another service manager run: {other}"


def _without_path(text: str) -> list[str]:
    return [line for line in text.splitlines() if not re.match('Environment="?PATH=', line)]


def _program(where: Home) -> Iterator[Path]:
    """All that has to stay for the service to start: the command, its environment and its packages."""
    from bridge import version

    called = Path(command(where)[0])
    yield from (called, called.resolve(), Path(sys.prefix), Path(version.__file__).resolve())


def _refuse_emptied(path: Path, cure: str) -> None:
    if folder := _emptied(path):
        raise ServiceError(f"{path} is in {folder}, which is emptied: {cure}")


def _emptied(path: Path) -> Path | None:
    """The folder around ``path`` that does not keep it."""
    cache = Path(os.environ.get("XDG_CACHE_HOME") or "~/.cache").expanduser()  # where tools install for once
    return next((folder for folder in (*TEMPORARY, cache) if path.is_relative_to(folder)), None)


def quoted(word: str) -> str:
    r"""``word`` as one word of a unit.

    >>> quoted("/a")
    '/a'
    >>> quoted('/a b/100%"')
    '"/a b/100%%\\""'
    """
    inner = escaped(word).replace("\\", "\\\\").replace('"', '\\"')
    return word if re.fullmatch(r"[A-Za-z0-9_/.:@+,-]*", word) else f'"{inner}"'


def escaped(text: str) -> str:
    """``text`` without systemd's own use of ``%``."""
    return text.replace("%", "%%")


def _description(where: Home) -> str:
    return f"Description=Turnbridge of {escaped(str(where.root))}"
