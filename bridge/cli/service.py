"""``turnbridge service``: the daemon as a service of this user's systemd, hardened."""

from __future__ import annotations

import argparse
import json
from typing import TYPE_CHECKING

from bridge.cli.common import NotRunningError, add_home, ask_daemon, home, typed
from bridge.errors import BridgeError

if TYPE_CHECKING:
    from bridge.cli.common import Commands
    from bridge.paths import Home

START_SECONDS = 20.0
PAUSE_SECONDS = 0.05


def register(commands: Commands) -> None:
    parser = commands.add_parser("service", help="run the daemon as a service of this user's systemd")
    add_home(parser)
    actions = parser.add_subparsers(title="actions", metavar="ACTION", required=True)
    install = actions.add_parser(
        "install", help="install, enable and start it; again when folders were changed"
    )
    install.add_argument(
        "--print", action="store_true", dest="is_shown", help="print the unit, and do nothing"
    )
    uninstall = actions.add_parser("uninstall", help="stop and remove it; the home stays as it is")
    status = actions.add_parser("status", help="show whether it is installed, enabled and running")
    status.add_argument("--json", action="store_true", help="print JSON")
    for action, run in ((install, run_install), (uninstall, run_uninstall), (status, run_status)):
        add_home(action, is_action=True)
        action.set_defaults(run=run)


def run_install(args: argparse.Namespace) -> int:
    """Exit 0 once the daemon answers, 2 when the settings are wrong, else 1."""
    from bridge.cli import service_unit, systemd

    where = home(args)
    unit, text = service_unit.unit_of(where), service_unit.text_of(where)
    if args.is_shown:
        print(text, end="")
        return 0
    service_unit.own_text(unit, where)  # another's is not written over
    if not systemd.is_there():
        raise systemd.ServiceError(f"this user has no systemd here: {service_unit.by_hand(where)}")
    if systemd.says("is-active", unit.name) != "active" and answers(where):
        stop = typed(where, "stop")
        raise systemd.ServiceError(f"a daemon runs on {where.root} that is no service: stop it first: {stop}")
    unit.path.parent.mkdir(parents=True, exist_ok=True)
    unit.path.write_text(text, encoding="utf-8")
    for words in (("daemon-reload",), ("enable", unit.name), ("restart", unit.name)):
        systemd.systemctl(*words)
    log = f"journalctl --user -u {unit.name}"
    if not _started(where, unit.name):
        text = f"{unit.path} is installed, but the daemon does not answer: {systemd.why(unit.name)}"
        raise systemd.ServiceError(text)
    print(f"{unit.path}: installed and running; its log: {log}")
    if not systemd.lingers():
        print("it stops when you log out; to keep it: loginctl enable-linger")
    print(f"how it is, at any time: {typed(where, 'doctor')}")
    return 0


def run_uninstall(args: argparse.Namespace) -> int:
    """Exit 0 when it is gone, also when it was not there."""
    from bridge.cli import service_unit, systemd

    where = home(args)
    unit = service_unit.unit_of(where)
    if service_unit.own_text(unit, where) is None:
        print(f"{unit.path} is not there: nothing to do")
        return 0
    has_systemd = systemd.is_there()
    if has_systemd:
        systemd.systemctl("disable", "--now", unit.name)
    unit.path.unlink()
    if has_systemd:
        systemd.systemctl("daemon-reload")
        systemd.forget(unit.name)
    print(f"{unit.path}: stopped and removed; {where.root} stays as it is")
    if (own := unit.path.with_name(f"{unit.path.name}.d")).is_dir():
        print(f"what was set by systemctl --user edit stays, too: {own}")
    return 0


def run_status(args: argparse.Namespace) -> int:
    """Exit 0 when it runs, 3 when it is installed and does not, 1 when it is not installed."""
    from bridge.cli import service_unit, systemd
    from bridge.cli.doctor_service import examined
    from bridge.cli.findings import Level

    where = home(args)
    unit = service_unit.unit_of(where)
    finding = examined(where)
    is_installed = finding.level is not Level.UNKNOWN
    active = systemd.says("is-active", unit.name) if is_installed else "unknown"
    if args.json:
        found = {"unit": unit.name, "path": str(unit.path), "installed": is_installed, "active": active}
        found["enabled"] = systemd.says("is-enabled", unit.name) if is_installed else "unknown"
        print(json.dumps({**found, "finding": finding.as_json()}, ensure_ascii=False))
    else:
        print(f"{finding.text}\n{finding.cure}".rstrip())
    if not is_installed:
        return 1
    return 0 if active == "active" else 3


def answers(where: Home) -> bool:
    """Whether a daemon runs on ``where``, well or not."""
    try:
        ask_daemon(where, {"action": "status"})
    except NotRunningError:
        return False
    except BridgeError:
        return True
    return True


def _started(where: Home, name: str) -> bool:
    """Whether it answers in time; at once False when systemd gave it up, or cannot start it."""
    from time import monotonic, sleep

    from bridge.cli import systemd

    until = monotonic() + START_SECONDS
    while not (does := answers(where)) and monotonic() < until:
        if systemd.says("is-active", name) == "failed" or not systemd.is_sandboxed(name):
            break
        sleep(PAUSE_SECONDS)
    return does
