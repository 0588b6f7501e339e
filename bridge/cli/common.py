"""What commands share: the option ``--home``, how errors end, and asking the daemon over its socket.

Only the standard library and light modules of ours: ``status`` must start in a few times a bare interpreter.
"""

from __future__ import annotations

import argparse
import json
import os
import re
import shlex
import signal
import socket
import sys
import threading
from contextlib import contextmanager
from io import TextIOWrapper
from typing import TYPE_CHECKING, Any, NoReturn

from bridge.errors import BridgeError, ConfigError

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from bridge.paths import Home

    Commands = argparse._SubParsersAction[argparse.ArgumentParser]

ASK_SECONDS = 20.0
INTERRUPTED = 130  # as shells say it
SIGNALLED = 128  # and the signal's number, as shells say it
NOT_RUNNING = 3
_CONTROLS = re.compile(r"[\x00-\x08\x0b-\x1f\x7f-\x9f\u202a-\u202e\u2066-\u2069\ud800-\udfff]")


class NotRunningError(BridgeError):
    """No daemon serves this home: exit code 3."""


def add_home(parser: argparse.ArgumentParser, *, is_action: bool = False) -> None:
    """``is_action``: its command takes the option, too, and what was given there stays."""
    parser.add_argument(
        "--home",
        metavar="DIR",
        default=argparse.SUPPRESS if is_action else None,
        help="settings and state (default: TURNBRIDGE_HOME, else ~/.turnbridge)",
    )


def home(args: argparse.Namespace) -> Home:
    from bridge.paths import Home

    return Home.resolve(args.home)


def nearer(path: Path | str) -> str:
    """``path`` as it is typed from here: relative where it is below."""
    try:
        relative = os.path.relpath(path)
    except FileNotFoundError:  # this folder is gone
        return str(path)
    return str(path) if relative.startswith("..") else relative


def program() -> str:
    """This program as it can be typed here: by its path, unless the shell finds it by its name."""
    from shutil import which

    path = sys.argv[0]
    if os.path.basename(path) != "turnbridge" or which("turnbridge") == os.path.abspath(path):
        return "turnbridge"
    return shlex.quote(nearer(os.path.abspath(path)))


def typed_anywhere(where: Home, command: str) -> str:
    """``command`` for the home ``where`` as any other terminal takes it, in any folder."""
    from bridge.paths import Home

    path = os.path.abspath(sys.argv[0])
    is_found = program() == "turnbridge" and not os.environ.get("VIRTUAL_ENV")
    start = "turnbridge" if is_found or not os.path.exists(path) else shlex.quote(path)
    is_usual = Home.resolve(None).root == where.root and not os.environ.get("TURNBRIDGE_HOME")
    return f"{start} {command}" + ("" if is_usual else f" --home {shlex.quote(str(where.root))}")


def typed(where: Home, command: str) -> str:
    """``command`` of this program for the home ``where``, as it can be typed here."""
    from bridge.paths import Home

    own = "" if Home.resolve(None).root == where.root else f" --home {shlex.quote(nearer(where.root))}"
    return f"{program()} {command}{own}"


def existing(name: str) -> Path:
    """The file called ``name``, by its whole path; raises ConfigError for none."""
    from pathlib import Path

    if not os.path.isfile(name):
        raise ConfigError(f"{name}: there is no such file")
    return Path(name).absolute()


def visible(text: str) -> str:
    """``text`` without the characters by which it could play with a terminal."""
    return _CONTROLS.sub("\N{REPLACEMENT CHARACTER}", text)


def explain(error: Exception) -> int:
    """Say what went wrong in one line, and return the exit code."""
    match error:
        case NotRunningError():
            text, code = str(error), NOT_RUNNING
        case ConfigError():
            text, code = str(error), 2
        case BridgeError():
            text, code = str(error), 1
        case OSError():
            text, code = f"{error.filename or 'the system'}: {error.strerror or type(error).__name__}", 1
        case _:
            text, code = f"a bug: {type(error).__name__}: report it with what you ran", 1
    print(f"turnbridge: {visible(text)}", file=sys.stderr)
    return code


def open_streams() -> None:
    """Let standard input, output and error be there, as nowhere where they are closed.

    Else the next file that is opened, a database even, would take the place of one, and Python has None.
    """
    for number, (name, mode) in enumerate((("stdin", "r"), ("stdout", "w"), ("stderr", "w"))):
        if getattr(sys, name) is not None:
            continue
        nowhere = os.open(os.devnull, os.O_RDWR)
        if nowhere != number:
            os.dup2(nowhere, number)
            os.close(nowhere)
        setattr(sys, name, os.fdopen(number, mode, encoding="utf-8", errors="replace", closefd=False))


def lenient() -> None:
    """What cannot be read or shown in this terminal's encoding becomes a mark, and ends nothing."""
    for stream in (sys.stdin, sys.stdout, sys.stderr):
        if isinstance(stream, TextIOWrapper):
            stream.reconfigure(errors="replace")


@contextmanager
def signals_exit() -> Iterator[None]:
    """While the block runs, a signal that would end the process raises SystemExit: what is open is closed.

    One that is ignored, as SIGHUP under nohup, stays so. Only the main thread can take signals.
    """

    def leave(number: int, _: object) -> NoReturn:
        raise SystemExit(SIGNALLED + number)

    ending = (signal.SIGHUP, signal.SIGQUIT, signal.SIGTERM)
    is_main = threading.current_thread() is threading.main_thread()
    taken = [each for each in ending if is_main and signal.getsignal(each) is signal.SIG_DFL]
    for each in taken:
        signal.signal(each, leave)
    try:
        yield
    finally:
        for each in taken:
            signal.signal(each, signal.SIG_DFL)


def silenced() -> int:
    """Standard output is closed: nothing more goes there, not even when the interpreter ends."""
    os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
    return 1


def ask_daemon(where: Home, command: dict[str, Any]) -> dict[str, Any]:
    """Send one ``daemon.control`` and return the status it is answered with.

    Raises:
        NotRunningError: nobody listens on the home's socket.
        ConfigError: ``command`` names an account that is not there.
        BridgeError: the daemon refused, or gave no answer in ``ASK_SECONDS``.
    """
    from bridge.version import VERSION

    hello = {"type": "initialize", "request_id": "1", "protocol_version": 3}
    hello["client"] = {"name": "turnbridge", "version": VERSION}
    ask = {"type": "daemon.control", "request_id": "2", "command": command}
    with _connect(where) as daemon:
        try:
            daemon.sendall(b"".join(json.dumps(each).encode() + b"\n" for each in (hello, ask)))
            with daemon.makefile("rb") as lines:
                for line in lines:
                    if (status := _status(json.loads(line))) is not None:
                        return status
        except (OSError, ValueError) as error:
            raise BridgeError("the daemon gave no usable answer: look at its log") from error
    raise BridgeError("the daemon hung up: look at its log")


def _connect(where: Home) -> socket.socket:
    path = str(where.socket)
    daemon = socket.socket(socket.AF_UNIX)
    daemon.settimeout(ASK_SECONDS)
    try:
        daemon.connect(path)
    except (FileNotFoundError, ConnectionRefusedError) as error:
        daemon.close()
        raise NotRunningError(
            f"no daemon runs on {where.root}: start it with: {typed(where, 'run')}"
        ) from error
    except OSError:
        daemon.close()
        raise
    return daemon


def _status(event: dict[str, Any]) -> dict[str, Any] | None:
    """The status in ``event``, or None for an event that is not the answer.

    Raises:
        ConfigError: the command names an account that is not there.
        BridgeError: the daemon refused.
    """
    if event.get("type") == "daemon.status":
        status: dict[str, Any] = event["status"]
        return status
    if event.get("type") == "error":
        error = ConfigError if event.get("code") == "unknown_account" else BridgeError
        raise error(str(event.get("message")))
    return None
