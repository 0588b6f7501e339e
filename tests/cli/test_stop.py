"""``stop``: ends the daemon that holds the lock, and nobody else."""

import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from bridge import process
from bridge.cli import stop
from bridge.cli.main import main
from bridge.paths import Home

DAEMON = """
import os, signal, sys
from pathlib import Path
from bridge.paths import Home
from bridge.process import only_daemon
if sys.argv[2:] == ["deaf"]:
    signal.signal(signal.SIGTERM, signal.SIG_IGN)
with only_daemon(Home(Path(sys.argv[1]))):
    if sys.argv[2:] == ["nameless"]:
        os.truncate(Home(Path(sys.argv[1])).daemon_lock, 0)
    print("held", flush=True)
    sys.stdin.read()
"""


class Held:
    """Another process that holds the home's lock."""

    def __init__(self, home: Path, *how: str) -> None:
        pipe = subprocess.PIPE
        command = [sys.executable, "-c", DAEMON, str(home), *how]
        self.child = subprocess.Popen(command, stdin=pipe, stdout=pipe, text=True)
        assert self.child.stdout is not None
        assert self.child.stdout.readline() == "held\n"

    def __enter__(self) -> "subprocess.Popen[str]":
        return self.child

    def __exit__(self, *exc: object) -> None:
        with self.child:
            self.child.kill()


def stopped(home: Path) -> int:
    return main(["stop", "--home", str(home)])


def test_a_daemon_is_stopped_and_its_end_waited_for(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    with Held(tmp_path) as child:
        assert stopped(tmp_path) == 0
        assert process.holder(Home(tmp_path)) is None
        assert child.wait(timeout=10) == -signal.SIGTERM
    assert capsys.readouterr().out == "stopped\n"


def test_case_89_where_none_runs_that_is_told_and_no_error(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    home = Home(tmp_path)
    assert stopped(tmp_path) == 0
    home.private_dir(home.state)
    home.daemon_lock.write_text(str(os.getpid()))  # a number that somebody else has by now: us
    assert stopped(tmp_path) == 0
    assert capsys.readouterr().out == "not running: nothing to stop\n" * 2
    with process.only_daemon(home):
        pass


def test_one_that_does_not_end_is_told_with_its_number(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(stop, "WAIT_SECONDS", 0.2)
    with Held(tmp_path, "deaf") as child:
        assert stopped(tmp_path) == 1
        assert f"pid {child.pid}) does not end" in capsys.readouterr().err


def test_one_that_has_not_written_its_number_is_waited_for(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(stop, "WAIT_SECONDS", 0.2)
    with Held(tmp_path, "nameless"):
        assert stopped(tmp_path) == 1
    assert "pid not known) does not end" in capsys.readouterr().err


def test_a_number_that_changes_hands_meanwhile_is_left_alone(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    holders = iter([os.getpid(), 1, 1])
    monkeypatch.setattr(process, "holder", lambda home: next(holders))
    assert stopped(tmp_path) == 0


def test_a_daemon_that_ends_just_now_is_stopped(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with subprocess.Popen([sys.executable, "-c", ""]) as child:
        child.wait()
    holders = iter([child.pid, None])
    monkeypatch.setattr(process, "holder", lambda home: next(holders))
    assert stopped(tmp_path) == 0


@pytest.mark.parametrize("has_handles", [True, False])
@pytest.mark.parametrize(("error", "code"), [(ProcessLookupError(), 0), (PermissionError(), 1)])
def test_a_daemon_that_ends_meanwhile_is_stopped_and_another_user_s_is_told(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, error: OSError, code: int, has_handles: bool
) -> None:
    def refuse(*_: object) -> None:
        raise error

    holders = iter([os.getpid(), os.getpid(), None])
    monkeypatch.setattr(process, "holder", lambda home: next(holders))
    monkeypatch.setattr(signal, "pidfd_send_signal", refuse)
    monkeypatch.setattr(os, "kill", refuse)
    if not has_handles:
        monkeypatch.delattr(os, "pidfd_open")
    assert stopped(tmp_path) == code
