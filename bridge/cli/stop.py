"""``turnbridge stop``: end the daemon, and say so; none that runs is no error."""

from __future__ import annotations

import argparse
import os
import signal
from typing import TYPE_CHECKING

from bridge.cli.common import add_home, home
from bridge.errors import BridgeError

if TYPE_CHECKING:
    from bridge.cli.common import Commands
    from bridge.paths import Home

WAIT_SECONDS = 30.0  # for the daemon's end, over its longest usual one
LOOK_SECONDS = 0.05


def register(commands: Commands) -> None:
    parser = commands.add_parser(
        "stop",
        help="stop the daemon, and wait for its end",
        description="Stop the daemon, and wait for its end. What was acknowledged is on disk. A service "
        "manager that runs it may start it again: then stop it there.",
    )
    add_home(parser)
    parser.set_defaults(run=run)


def run(args: argparse.Namespace) -> int:
    """Exit 0 when none runs any more, also when none ran; 1 when it does not end."""
    from bridge.process import holder

    where = home(args)
    pid = holder(where)
    if pid is None:
        print("not running: nothing to stop")
        return 0
    if pid:
        _tell(where, pid)
    if not _ended(where, pid):
        raise BridgeError(f"the daemon (pid {pid or 'not known'}) does not end: look at its log, or kill it")
    print("stopped")
    return 0


def _tell(where: Home, pid: int) -> None:
    """Send the signal to the process that holds the lock, and to no other that got its number meanwhile.

    Raises:
        BridgeError: it is another user's.
    """
    from bridge.process import holder

    try:
        process = os.pidfd_open(pid) if hasattr(os, "pidfd_open") else None
    except OSError:
        return  # it has just ended
    try:
        if holder(where) == pid:
            if process is None:
                os.kill(pid, signal.SIGTERM)
            else:
                signal.pidfd_send_signal(process, signal.SIGTERM)
    except ProcessLookupError:
        return
    except PermissionError:
        raise BridgeError(f"the daemon (pid {pid}) is another user's: stop it as that user") from None
    finally:
        if process is not None:
            os.close(process)


def _ended(where: Home, pid: int) -> bool:
    """Whether its lock is free, or another's, in time."""
    import time

    from bridge.process import holder

    until = time.monotonic() + WAIT_SECONDS
    while time.monotonic() < until:
        found = holder(where)
        if found is None or (pid and found not in (pid, 0)):
            return True
        time.sleep(LOOK_SECONDS)
    return False
