"""Asking this user's systemd, and saying what it said."""

from __future__ import annotations

import os
import shutil
import subprocess
from pathlib import Path
from typing import TYPE_CHECKING

from bridge.errors import BridgeError

if TYPE_CHECKING:
    from collections.abc import Iterable

CALL_SECONDS = 60.0
NO_SANDBOX = ("217", "226")  # EXIT_USER, by PrivateUsers=, and EXIT_NAMESPACE, see systemd.exec(5)
BOOTED, RUNTIME = Path("/run/systemd/system"), Path("/run/user")  # see sd_booted(3), pam_systemd(8)


class ServiceError(BridgeError):
    """systemd did not do it, or is not there; its text says what to do."""


def is_there() -> bool:
    """Whether this user has a systemd here."""
    if not shutil.which("systemctl"):
        return False
    return _call(["systemctl", "--user", "is-system-running"]).stdout.strip() not in (
        "",
        "offline",
        "unknown",
    )


def is_booted() -> bool:
    """Whether this machine is run by systemd, whatever this user has of it."""
    return BOOTED.is_dir()


def systemctl(*words: str) -> None:
    """Raises ServiceError with its own words when it did not do it."""
    done = _call(["systemctl", "--user", *words])
    if done.returncode:
        said = " ".join(done.stderr.split()) or f"code {done.returncode}"
        raise ServiceError(f"systemctl --user {' '.join(words)}: {said}")


def forget(name: str) -> None:
    """Let a unit that is gone not stay among those that failed; it need not have been there."""
    _call(["systemctl", "--user", "reset-failed", name])


def says(question: str, name: str) -> str:
    """The one word that it answers, "unknown" for none: ``active`` to ``is-active``, for example."""
    if not shutil.which("systemctl"):
        return "unknown"
    return _call(["systemctl", "--user", question, name]).stdout.strip() or "unknown"


def is_sandboxed(name: str) -> bool:
    """False when the unit failed since the system lets users' services have no such sandbox."""
    done = _call(["systemctl", "--user", "show", name, "--property=ExecMainStatus", "--value"])
    return done.stdout.strip() not in NO_SANDBOX


def why(name: str) -> str:
    """Where it is said why the unit does not run."""
    if is_sandboxed(name):
        return f"see why: journalctl --user -u {name} -n 50"
    return "this system allows it no sandbox: docs/install.md says how to do without, or how to allow it"


def lingers() -> bool:
    """Whether this user's services run while nobody is logged in; True where that cannot be told."""
    if not shutil.which("loginctl"):
        return True
    done = _call(["loginctl", "show-user", str(os.geteuid()), "--property=Linger", "--value"])
    return done.returncode != 0 or done.stdout.strip() != "no"


def _call(words: Iterable[str]) -> subprocess.CompletedProcess[str]:
    asked = [*words]
    try:
        return subprocess.run(
            asked, capture_output=True, text=True, timeout=CALL_SECONDS, check=False, env=_environment()
        )
    except subprocess.TimeoutExpired as error:
        raise ServiceError(
            f"{' '.join(asked)}: no answer in {CALL_SECONDS:.0f} seconds: try again"
        ) from error


def _environment() -> dict[str, str]:
    """With the way to this user's systemd, which sudo and su do not tell."""
    own = RUNTIME / str(os.geteuid())
    way = {"XDG_RUNTIME_DIR": str(own)} if own.is_dir() else {}
    return {**way, **os.environ}
