"""The keeper, run here instead of in a process of its own, with real programs."""

import errno
import os
import signal
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from threading import Thread

import pytest

from bridge.tools import keeper

pytestmark = pytest.mark.filterwarnings("ignore:This process .* is multi-threaded:DeprecationWarning")

ESCAPED = "setsid sleep 60 & (setsid sh -c 'sleep 60 & sleep 60' &)"
READY = "; echo; "
# Its first thread has ended, so that the kernel calls it a zombie; another waits, and so does its child.
HEADLESS = """
import ctypes, subprocess, threading, time
threading.Thread(target=time.sleep, args=(60,)).start()
subprocess.Popen(["sleep", "60"], start_new_session=True)
print(flush=True)
ctypes.CDLL(None).pthread_exit(None)
"""

Order = Callable[[int], object]
"""What the daemon does, with its end of the life line."""


@pytest.fixture
def restored() -> Iterator[None]:
    """As this process was, whatever a keeper does to it."""
    handlers = {number: signal.getsignal(number) for number in keeper._OUTSIDE}
    streams = [os.dup(stream) for stream in range(3)]
    yield
    for stream, kept in enumerate(streams):
        os.dup2(kept, stream)
        os.close(kept)
    signal.set_wakeup_fd(-1)
    for number, handler in handlers.items():
        signal.signal(number, handler)
    keeper._prctl()(keeper._SUBREAPER, 0)
    keeper._prctl()(keeper._DEATH_SIGNAL, 0)


def keep(script: str, order: Order | None = None, program: str = "/bin/sh") -> list[str]:
    """All that a keeper tells of a script, which says READY when it is time for the order."""
    hears, life = os.pipe()
    status, tells = os.pipe()
    ready, says = os.pipe()

    def daemon() -> None:
        os.read(ready, 1)
        if order:
            order(life)

    watching = Thread(target=daemon)
    watching.start()
    os.dup2(says, 1)
    os.close(says)
    keeper.main(hears, tells, [program, "-c", script])
    watching.join()
    for each in (tells, hears, ready):
        os.close(each)
    if order is not os.close:
        os.close(life)
    with open(status, encoding="ascii") as lines:
        told = lines.read().splitlines()
    assert not keeper.descendants(os.getpid(), -1)
    return told


def test_it_tells_the_id_and_the_exit_code(restored: None) -> None:
    pid, code = keep("exit 3")
    assert pid.startswith("pid ")
    assert code == "exit 3"


def test_a_program_that_is_not_there_is_told_by_its_error(restored: None) -> None:
    assert keep("", program="/none")[0] == "errno 2"


def test_what_a_program_leaves_behind_ends_with_it_whether_or_not_it_left_the_group(restored: None) -> None:
    assert keep(f"{ESCAPED}; sleep 60 & exit 0")[1] == "exit 0"


def test_an_order_ends_all_politely(restored: None) -> None:
    script = f"trap 'exit 5' TERM; {ESCAPED}{READY} while :; do sleep 0.01; done"
    assert keep(script, lambda life: os.write(life, keeper.END))[1] == "exit 5"


def test_what_is_stopped_hears_term_too(restored: None) -> None:
    script = f"trap 'exit 5' TERM{READY} kill -STOP $$; exit 6"
    assert keep(script, lambda life: os.write(life, keeper.END))[1] in ("exit 5", "exit -15")


def test_what_does_not_listen_is_killed_after_the_grace(
    restored: None, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(keeper, "GRACE_SECONDS", 0.1)
    script = f"trap '' TERM; {ESCAPED}{READY} while :; do sleep 60; done"
    assert keep(script, lambda life: os.write(life, keeper.END))[1] == "exit -9"


def test_an_order_to_hurry_waits_for_no_grace(restored: None, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(keeper, "GRACE_SECONDS", 3600.0)
    script = f"trap '' TERM{READY} while :; do sleep 60; done"

    def twice(life: int) -> None:
        os.write(life, keeper.END)
        os.write(life, keeper.KILL)

    assert keep(script, twice)[1] == "exit -9"


def test_when_the_daemon_is_gone_all_ends(restored: None, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(keeper, "LOST_SECONDS", 0.1)
    script = f"trap '' TERM; {ESCAPED}{READY} while :; do sleep 60; done"
    assert keep(script, os.close)[1] == "exit -9"


@pytest.mark.parametrize("order", [os.close, lambda life: os.write(life, keeper.KILL)], ids=["gone", "kill"])
def test_a_program_without_its_first_thread_ends_with_its_children(restored: None, order: Order) -> None:
    assert keep(HEADLESS, order, sys.executable)[1] in ("exit -15", "exit -9")


def test_what_a_look_at_the_processes_misses_is_found_by_the_next(
    restored: None, monkeypatch: pytest.MonkeyPatch
) -> None:
    looks: list[keeper.Table] = [{os.getpid(): (os.getppid(), os.getpgrp())}]
    shown = keeper.by_proc
    # A parent died between the child's line of the table and its own.
    monkeypatch.setattr(keeper, "by_proc", lambda: looks.pop() if looks else shown())
    assert keep(f"{ESCAPED}{READY} exit 0")[1] == "exit 0"


def test_nobody_needs_to_listen_and_signals_to_the_keeper_do_not_end_it(restored: None) -> None:
    hears, life = os.pipe()
    status, tells = os.pipe()
    os.close(status)
    script = "kill -TERM $PPID; kill -HUP $PPID; exit 0"
    keeper.main(hears, tells, ["/bin/sh", "-c", script])
    for each in (hears, life, tells):
        os.close(each)


def test_what_cannot_be_killed_is_left_at_last(restored: None, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(keeper, "KILL_SECONDS", 0.1)
    monkeypatch.setattr(keeper, "GRACE_SECONDS", 0.1)
    monkeypatch.setattr(
        keeper, "descendants", lambda root, group: {2**22 + 1: 2**22 + 1, 2**22 + 2: os.getpgrp()}
    )
    life, status = os.pipe(), os.pipe()
    keeper.main(life[0], status[1], ["/bin/true"])
    for each in (*life, *status):
        os.close(each)


def test_processes_are_found_the_same_way_with_and_without_proc(monkeypatch: pytest.MonkeyPatch) -> None:
    me = os.getpid()
    assert keeper.by_proc()[me] == keeper.by_ps()[me] == (os.getppid(), os.getpgrp())
    monkeypatch.setattr(keeper, "_PROC", str(Path(os.devnull)))
    assert keeper.by_proc() == {}


def test_without_proc_what_is_in_the_programs_group_ends(
    restored: None, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(keeper, "_PROC", os.devnull)
    monkeypatch.setattr(keeper, "_prctl", lambda: lambda what, value: None)
    assert keep("(sleep 60 & sleep 60 &) ; exit 7")[1] == "exit 7"


def test_the_dead_whom_nobody_took_in_do_not_count() -> None:
    with subprocess.Popen(["/bin/true"]) as dead:
        os.waitid(os.P_PID, dead.pid, os.WEXITED | os.WNOWAIT)
        assert dead.pid not in keeper.by_proc()
        assert dead.pid not in keeper.by_ps()


def test_a_child_that_cannot_become_the_program_tells_why_and_ends(monkeypatch: pytest.MonkeyPatch) -> None:
    reading, writing = os.pipe()
    became: list[object] = []

    def refused(*_: object) -> None:
        raise PermissionError(errno.EACCES, "no")

    def ends(code: int) -> None:
        raise SystemExit(code)

    monkeypatch.setattr(os, "pipe", lambda: (reading, writing))
    monkeypatch.setattr(os, "fork", lambda: 0)
    monkeypatch.setattr(os, "setsid", lambda: became.append("leader"))
    monkeypatch.setattr(keeper, "_prctl", lambda: lambda what, value: became.append((what, value)))
    monkeypatch.setattr(os, "execvp", refused)
    monkeypatch.setattr(os, "_exit", ends)
    kept = {number: signal.getsignal(number) for number in (signal.SIGPIPE, signal.SIGXFSZ)}
    with pytest.raises(SystemExit):
        keeper.start(["/bin/true"])
    for number, handler in kept.items():
        assert signal.signal(number, handler) is signal.SIG_DFL
    assert became == ["leader", (1, signal.SIGKILL)]
    assert os.read(reading, 9) == str(errno.EACCES).encode()
    os.close(reading)
    os.close(writing)


def test_elsewhere_than_on_linux_nothing_is_asked_of_the_kernel(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "platform", "darwin")
    assert keeper._prctl()(36, 1) is None
