"""One daemon per home by a lock of the kernel's, signals that stop it, and file descriptors."""

import asyncio
import fcntl
import gc
import os
import resource
import signal
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from bridge import process
from bridge.channel.testing.clock import settle, until
from bridge.errors import ConfigError
from bridge.paths import Home
from bridge.process import (
    RunningError,
    holder,
    need_descriptors,
    only_daemon,
    raise_descriptor_limit,
    spare_collections,
    stopping,
)
from bridge.sessions.listener import listening

HOLD = """
import sys, time
from collections.abc import Iterator
from pathlib import Path
from bridge.paths import Home
from bridge.process import only_daemon
with only_daemon(Home(Path(sys.argv[1]))):
    print("held", flush=True)
    sys.stdin.read()
"""


def holding(home: Path) -> subprocess.Popen[str]:
    """Another process that holds the lock until its input ends."""
    pipe = subprocess.PIPE
    child = subprocess.Popen([sys.executable, "-c", HOLD, str(home)], stdin=pipe, stdout=pipe, text=True)
    assert child.stdout is not None
    assert child.stdout.readline() == "held\n"
    return child


def end(child: subprocess.Popen[str]) -> None:
    with child:
        child.kill()


def test_a_second_daemon_is_refused_and_told_of_the_first(tmp_path: Path) -> None:
    child = holding(tmp_path)
    try:
        with (
            pytest.raises(RunningError, match=rf"pid {child.pid}.*stop it first"),
            only_daemon(Home(tmp_path)),
        ):
            pass
    finally:
        end(child)


def test_case_82_a_lock_whose_holder_was_killed_never_blocks(tmp_path: Path) -> None:
    end(holding(tmp_path))
    assert (tmp_path / "state" / "daemon.lock").exists()
    with only_daemon(Home(tmp_path)):
        pass


BUSY = """
import sys
from pathlib import Path
from bridge.paths import Home
from bridge.process import only_daemon
from bridge.sessions.listener import listening
home = Home(Path(sys.argv[1]))
with only_daemon(home), listening(home.socket):
    print("held", flush=True)
    sys.stdin.read()
"""


def test_case_81_a_daemon_that_answers_no_probe_keeps_all_that_is_its_own() -> None:
    with tempfile.TemporaryDirectory(prefix="tb-") as folder:  # short, as sockets want it
        home, pipe = Home(Path(folder)), subprocess.PIPE
        command = [sys.executable, "-c", BUSY, folder]
        child = subprocess.Popen(command, stdin=pipe, stdout=pipe, text=True)
        try:
            assert child.stdout is not None
            assert child.stdout.readline() == "held\n"
            os.kill(child.pid, signal.SIGSTOP)  # as busy as can be
            (home.state / "turnbridge.db").write_text("precious")
            before = state_of(home)
            for _ in range(3):
                with pytest.raises(RunningError, match=f"pid {child.pid}"), only_daemon(home):
                    pass
                with pytest.raises(ConfigError, match="locked"), listening(home.socket):
                    pass
            assert state_of(home) == before
            assert child.poll() is None
        finally:
            os.kill(child.pid, signal.SIGCONT)
            end(child)
        with only_daemon(home), listening(home.socket):  # its end is what frees them
            pass


def state_of(home: Home) -> dict[str, tuple[int, int, bytes]]:
    """Every file of the state by name: which it is, when it was written, and what it holds."""
    found = {path.name: (path, path.lstat()) for path in home.state.iterdir()}
    return {
        name: (stat.st_ino, stat.st_mtime_ns, path.read_bytes() if path.is_file() else b"")
        for name, (path, stat) in found.items()
    }


def test_a_lock_file_with_nonsense_never_blocks_and_stays(tmp_path: Path) -> None:
    home = Home(tmp_path)
    home.private_dir(home.state)
    home.daemon_lock.write_text("999999999999 and more")
    with only_daemon(home):
        assert home.daemon_lock.read_text() == str(os.getpid())
        with pytest.raises(RunningError), only_daemon(home):  # flock is by open file
            pass
    assert home.daemon_lock.exists()


def test_a_holder_that_is_not_known_is_refused_without_a_name(tmp_path: Path) -> None:
    home = Home(tmp_path)
    with only_daemon(home):
        home.daemon_lock.write_text("")
        with pytest.raises(RunningError, match="a daemon runs already"), only_daemon(home):
            pass


def test_a_lock_that_is_a_link_is_refused(tmp_path: Path) -> None:
    home = Home(tmp_path)
    home.private_dir(home.state)
    home.daemon_lock.symlink_to(tmp_path / "elsewhere")
    with pytest.raises(ConfigError, match="symbolic link: remove it"), only_daemon(home):
        pass
    with pytest.raises(ConfigError, match="symbolic link: remove it"):
        holder(home)
    assert not (tmp_path / "elsewhere").exists()


@pytest.mark.parametrize("make", [os.mkfifo, os.mkdir])
def test_a_lock_that_is_no_file_is_refused(tmp_path: Path, make: Callable[[Path], None]) -> None:
    home = Home(tmp_path)
    home.private_dir(home.state)
    make(home.daemon_lock)
    with pytest.raises(ConfigError, match=r"cannot open .*: remove it"), only_daemon(home):
        pass


def test_a_lock_file_that_was_open_to_others_is_closed(tmp_path: Path) -> None:
    home = Home(tmp_path)
    home.private_dir(home.state)
    home.daemon_lock.touch(mode=0o666)
    home.daemon_lock.chmod(0o666)
    with only_daemon(home):
        assert home.daemon_lock.stat().st_mode & 0o777 == 0o600


# --- who holds it ----------------------------------------------------------------------------------------


def test_the_holder_of_the_lock_is_known_while_it_lives(tmp_path: Path) -> None:
    home = Home(tmp_path)
    assert holder(home) is None
    child = holding(tmp_path)
    try:
        assert holder(home) == child.pid
    finally:
        end(child)
    assert holder(home) is None


@pytest.mark.parametrize("left", ["", "4194304", "nonsense", "-1", "999999999999"])
def test_case_89_what_a_dead_daemon_left_is_removed(tmp_path: Path, left: str) -> None:
    home = Home(tmp_path)
    home.private_dir(home.state)
    home.daemon_lock.write_text(left)
    assert holder(home) is None
    assert home.daemon_lock.read_text() == ""


def test_a_process_id_that_another_process_has_by_now_is_nobody_s(tmp_path: Path) -> None:
    home = Home(tmp_path)
    home.private_dir(home.state)
    home.daemon_lock.write_text(str(os.getpid()))
    assert holder(home) is None


@pytest.mark.parametrize("written", ["", "nonsense", "999999999999", "\u0661"])
def test_a_holder_that_has_not_written_its_number_is_0(tmp_path: Path, written: str) -> None:
    home = Home(tmp_path)
    with only_daemon(home):
        home.daemon_lock.write_text(written)
        assert holder(home) == 0


def test_who_asks_for_the_holder_keeps_no_daemon_from_starting(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    home = Home(tmp_path)
    home.private_dir(home.state)
    asking = os.open(home.daemon_lock, os.O_RDWR | os.O_CREAT)
    fcntl.flock(asking, fcntl.LOCK_EX)
    monkeypatch.setattr("bridge.process.time.sleep", lambda _: os.close(asking))
    with only_daemon(home):
        assert home.daemon_lock.read_text() == str(os.getpid())


@pytest.mark.parametrize("sign", [signal.SIGTERM, signal.SIGINT])
async def test_a_signal_sets_stop_and_a_second_changes_nothing(sign: signal.Signals) -> None:
    stop: asyncio.Future[int] = asyncio.get_running_loop().create_future()
    with stopping(stop, 60.0):
        os.kill(os.getpid(), sign)
        await until(stop.done)
        os.kill(os.getpid(), sign)
        await settle()
    assert stop.result() == 0


async def test_a_stop_that_came_from_elsewhere_keeps_its_code() -> None:
    stop: asyncio.Future[int] = asyncio.get_running_loop().create_future()
    stop.set_result(1)
    with stopping(stop, 60.0):
        os.kill(os.getpid(), signal.SIGTERM)
        await settle()
    assert stop.result() == 1


HANG = """
import asyncio, os, signal, time
from bridge import process
process.LAST_COMMIT_SECONDS = 0.0
async def main():
    stop = asyncio.get_running_loop().create_future()
    with process.stopping(stop, 0.2):
        %s
        await stop
        time.sleep(20)
asyncio.run(main())
"""


@pytest.mark.parametrize(
    "told",
    ["os.kill(os.getpid(), signal.SIGTERM)", "asyncio.get_running_loop().call_soon(stop.set_result, 1)"],
)
def test_a_process_that_hangs_ends_all_the_same(told: str) -> None:
    with subprocess.Popen([sys.executable, "-c", HANG % told]) as hanging:
        try:
            assert hanging.wait(timeout=10) == 1
        finally:
            hanging.kill()


@pytest.fixture
def limits(monkeypatch: pytest.MonkeyPatch) -> list[tuple[int, int]]:
    """What the limit is set to; the first entry is what it is."""
    found = [(256, 1024)]
    monkeypatch.setattr(resource, "getrlimit", lambda kind: found[0])
    monkeypatch.setattr(resource, "setrlimit", lambda kind, pair: found.append(pair))
    return found


@pytest.mark.parametrize(
    ("is_now", "wanted"),
    [
        ((256, 1024), 1024),
        ((256, 1_000_000), process.DESCRIPTORS),
        ((256, resource.RLIM_INFINITY), process.DESCRIPTORS),
    ],
)
def test_descriptors_are_raised_to_what_the_system_allows(
    limits: list[tuple[int, int]], is_now: tuple[int, int], wanted: int
) -> None:
    limits[0] = is_now
    assert raise_descriptor_limit() == wanted
    assert limits[1:] == [(wanted, is_now[1])]


@pytest.mark.parametrize(("soft", "known"), [(70_000, 70_000), (resource.RLIM_INFINITY, process.DESCRIPTORS)])
def test_a_limit_that_is_high_enough_is_left_alone(
    limits: list[tuple[int, int]], soft: int, known: int
) -> None:
    limits[0] = (soft, 80_000 if soft == 70_000 else resource.RLIM_INFINITY)
    assert raise_descriptor_limit() == known
    assert limits[1:] == []


def test_too_few_are_an_error_that_says_how_to_have_more(limits: list[tuple[int, int]]) -> None:
    limits[0] = (32, process.LEAST_DESCRIPTORS)
    need_descriptors()
    limits[0] = (32, process.LEAST_DESCRIPTORS - 1)
    with pytest.raises(ConfigError, match=r"may have 63 files open.* needs 64 .*ulimit -n 1024"):
        need_descriptors()


READ = """
import ctypes, os, subprocess, sys
from bridge.process import keep_others_out
if os.geteuid() == 0:  # who may read everything
    os.setgroups([])
    os.setgid(65534)
    os.setuid(65534)
    ctypes.CDLL(None).prctl(4, 1)  # as if it had begun as that user
if sys.argv[1] == "closed":
    keep_others_out()
for file in ("environ", "stat"):
    print(subprocess.run(["cat", f"/proc/{os.getpid()}/{file}"], capture_output=True).stdout.count(b"SESAME"))
print(subprocess.run(["cat", "/proc/self/environ"], capture_output=True).stdout.count(b"SESAME"))
"""


@pytest.mark.skipif(sys.platform != "linux", reason="only Linux shows processes as files")
@pytest.mark.parametrize(("how", "seen"), [("open", "1"), ("closed", "0")])
def test_what_a_command_of_the_same_user_sees_of_the_environment(how: str, seen: str) -> None:
    given = {**os.environ, "KEY": "SESAME"}
    done = subprocess.run([sys.executable, "-c", READ, how], env=given, capture_output=True, text=True)
    if "PermissionError" in done.stderr:
        pytest.skip("this root may not become another user, and reads everything itself")
    assert done.stdout.split() == [seen, "0", "1"], done.stderr  # what it starts is a program as any other


def test_a_limit_that_cannot_be_raised_is_lived_with(
    limits: list[tuple[int, int]], monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse(kind: int, pair: tuple[int, int]) -> None:
        raise ValueError

    monkeypatch.setattr(resource, "setrlimit", refuse)
    assert raise_descriptor_limit() == 256


@pytest.fixture
def collector() -> Iterator[None]:
    """Leave the garbage collector as it was."""
    before = gc.get_threshold()
    yield
    gc.unfreeze()
    gc.set_threshold(*before)


@pytest.mark.usefixtures("collector")
def test_what_is_loaded_is_left_out_of_collections() -> None:
    spare_collections()
    assert gc.get_freeze_count() > 1000
    assert gc.get_threshold() == process.COLLECT_AFTER
    assert gc.isenabled()


@pytest.mark.parametrize(("platform", "asked"), [("linux", [4, 0, 0, 0, 0]), ("darwin", [])])
def test_others_are_kept_out_where_the_kernel_can(
    monkeypatch: pytest.MonkeyPatch, platform: str, asked: list[int]
) -> None:
    told: list[int] = []

    class Library:
        def __init__(self, name: None) -> None:
            self.prctl = lambda what, *more: told.extend([what, *(one.value for one in more)])

    monkeypatch.setattr("bridge.process.sys.platform", platform)
    monkeypatch.setattr("bridge.process.ctypes.CDLL", Library)
    process.keep_others_out()
    assert told == asked
