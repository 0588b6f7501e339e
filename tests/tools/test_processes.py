"""Programs and what they leave behind, for real: each test's own are gone when it ends."""

import asyncio
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import AbstractAsyncContextManager
from pathlib import Path
from typing import Any

import pytest
import uvloop

from bridge.channel.testing.clock import settle
from bridge.ids import new_uuid
from bridge.tools import keeper, processes
from bridge.tools.processes import Process, StartError, clean_environment, process_group

ROOT = Path(__file__).parents[2]
GONE_SECONDS = 2.0
HEADLESS = """
import ctypes, os, threading, time
threading.Thread(target=time.sleep, args=(60,)).start()
print(os.getpid(), flush=True)
ctypes.CDLL(None).pthread_exit(None)
"""


def marked(mark: str) -> list[int]:
    """The processes with so telling an environment."""
    found = []
    for name in filter(str.isdigit, os.listdir("/proc")):
        try:
            if mark.encode() in Path("/proc", name, "environ").read_bytes():
                found.append(int(name))
        except OSError:
            continue
    return found


def seen(mark: str, enough: Callable[[int], bool]) -> bool:
    """Whether the number of processes with the mark becomes so within two seconds."""
    deadline = time.monotonic() + GONE_SECONDS
    while not (good := enough(len(marked(mark)))) and time.monotonic() < deadline:
        time.sleep(0.02)
    return good


@pytest.fixture
def mark() -> Iterator[str]:
    """In the environment of what a test starts; nothing may have it when the test is over."""
    text = f"mark-{new_uuid()}"
    yield text
    assert marked(text) == []


def running(tmp_path: Path, mark: str, script: str, **options: Any) -> AbstractAsyncContextManager[Process]:
    return process_group(["/bin/sh", "-c", script], tmp_path, clean_environment() | {"MARK": mark}, **options)


async def test_a_program_reads_and_writes_and_tells_its_exit_code(tmp_path: Path, mark: str) -> None:
    async with running(tmp_path, mark, "pwd; cat; echo no >&2; exit 3") as process:
        process.stdin.write(b"text\n")
        await process.stdin.drain()
        process.stdin.close()
        assert await process.stdout.read() == f"{tmp_path}\ntext\n".encode()
        assert await process.stderr.read() == b"no\n"
        assert await process.wait() == process.returncode == 3
        await process.ended()


async def test_streams_are_joined_or_left_out_as_told(tmp_path: Path, mark: str) -> None:
    async with running(tmp_path, mark, "cat; echo no >&2", stdin=False, stderr="stdout") as process:
        assert await process.stdout.read() == b"no\n"
        assert await process.stderr.read() == b""
        with pytest.raises(TypeError):
            process.stdin  # noqa: B018 - the look is what fails
    async with running(tmp_path, mark, "echo no >&2", stderr="null") as process:
        assert await process.stdout.read() == b""


async def test_a_program_has_no_descriptors_but_its_streams(tmp_path: Path, mark: str) -> None:
    async with running(tmp_path, mark, "ls /proc/$$/fd; true") as process:
        assert (await process.stdout.read()).split() == [b"0", b"1", b"2"]


@pytest.mark.parametrize("loop_factory", [asyncio.new_event_loop, uvloop.new_event_loop])
def test_who_writes_to_a_program_that_reads_no_more_is_told_so_by_any_loop(
    loop_factory: Callable[[], asyncio.AbstractEventLoop], tmp_path: Path, mark: str
) -> None:
    async def work() -> None:
        async with running(tmp_path, mark, "exec 0<&-; echo go; sleep 60") as process:
            assert await process.stdout.readline() == b"go\n"
            for _ in range(3):
                with pytest.raises(ConnectionError):
                    process.stdin.write(b"x" * 200_000)
                    await process.stdin.drain()
                await asyncio.sleep(0.01)  # the loop is told of the broken pipe, which nothing shows

    with asyncio.Runner(loop_factory=loop_factory) as runner:
        runner.run(work())


async def test_a_line_may_be_as_long_as_told(tmp_path: Path, mark: str) -> None:
    script = "head -c 100000 /dev/zero | tr '\\0' x; echo"
    async with running(tmp_path, mark, script, line_bytes=200_000) as process:
        assert len(await process.stdout.readline()) == 100_001
    async with running(tmp_path, mark, script) as process:
        with pytest.raises(ValueError, match="limit"):
            await process.stdout.readline()


@pytest.mark.parametrize(
    ("argv", "folder", "why"),
    [
        (["/none/such"], ".", "such cannot be started: No such file"),
        (["./plain"], ".", "Permission denied"),
        (["/bin/true"], "none", "No such file"),
        (["/bin/true", "a\0b"], ".", "no text"),
    ],
)
async def test_what_cannot_be_started_is_said(argv: list[str], folder: str, why: str, tmp_path: Path) -> None:
    (tmp_path / "plain").touch()
    with pytest.raises(StartError, match=why):
        async with process_group(argv, tmp_path / folder, clean_environment()):
            pass


async def test_a_system_without_descriptors_is_an_error_too(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def none_left() -> tuple[int, int]:
        raise OSError

    monkeypatch.setattr(os, "pipe", none_left)
    with pytest.raises(StartError, match="the system refuses it"):
        async with process_group(["/bin/true"], tmp_path, {}):
            pass


async def test_leaving_ends_all_also_what_became_a_daemon(tmp_path: Path, mark: str) -> None:
    script = "sleep 60 & setsid sleep 60 & (setsid sh -c 'sleep 60 & sleep 60' &); echo; sleep 60"
    async with running(tmp_path, mark, script) as process:
        await process.stdout.readline()
        assert seen(mark, lambda count: count >= 6)  # one of them is the keeper
        assert process.returncode is None
    assert process.returncode == -signal.SIGTERM


async def test_what_a_program_leaves_behind_ends_with_it(tmp_path: Path, mark: str) -> None:
    async with running(tmp_path, mark, "sleep 60 & setsid sleep 60 & exit 4") as process:
        assert await process.stdout.read() == b""  # which the others held, too
        assert await process.wait() == 4
        await process.ended()
        assert marked(mark) == []


async def test_being_cancelled_in_the_end_makes_it_hurry_and_is_not_lost(tmp_path: Path, mark: str) -> None:
    began = asyncio.Event()

    async def use() -> None:
        async with running(tmp_path, mark, "trap '' TERM; echo; while :; do sleep 60; done") as process:
            await process.stdout.readline()
            began.set()
            await process.end()

    async with asyncio.TaskGroup() as tasks:
        task = tasks.create_task(use())
        await began.wait()
        await settle()
        at = time.monotonic()
        task.cancel()
    assert task.cancelled()
    assert time.monotonic() - at < keeper.GRACE_SECONDS


async def test_a_keeper_that_is_killed_takes_the_program_along(tmp_path: Path, mark: str) -> None:
    async with running(tmp_path, mark, "echo $PPID; sleep 60") as process:
        os.kill(int(await process.stdout.readline()), signal.SIGKILL)
        assert await process.wait() == processes.KILLED
        await process.stdout.read()


async def test_what_became_a_daemon_goes_too_when_the_keeper_is_killed(tmp_path: Path, mark: str) -> None:
    """As by a program's own ``pkill -9 python``."""
    async with running(tmp_path, mark, "setsid sleep 100 & echo go; sleep 0.1; kill -9 $PPID") as process:
        assert await process.stdout.readline() == b"go\n"
        await process.ended()
        assert process.returncode == processes.KILLED
    assert seen(mark, lambda count: count == 0)


async def test_what_lost_its_first_thread_goes_too_when_the_keeper_is_killed(
    tmp_path: Path, mark: str
) -> None:
    """Its leader, which the kernel calls a zombie, shows no environment."""
    (tmp_path / "headless.py").write_text(HEADLESS)
    script = f"setsid {sys.executable} headless.py & read x; kill -9 $PPID; sleep 60"
    async with running(tmp_path, mark, script) as process:
        headless = int(await process.stdout.readline())
        while "Z" not in Path("/proc", str(headless), "stat").read_text():
            await asyncio.sleep(0.01)
        process.stdin.write(b"\n")
        await process.ended()
    deadline = time.monotonic() + GONE_SECONDS
    while headless in keeper.by_proc() and time.monotonic() < deadline:
        await asyncio.sleep(0.02)
    assert headless not in keeper.by_proc()


@pytest.mark.parametrize("how", ["once", "again and again"])
async def test_a_keeper_that_is_stopped_is_woken_to_end_it_all_or_killed(
    how: str, tmp_path: Path, mark: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Nobody waits for ever, also where a program stops whatever looks after it."""
    monkeypatch.setattr(processes, "WAKE_SECONDS", 0.1)
    monkeypatch.setattr(processes, "PATIENCE_SECONDS", 1.0)
    again = "while :; do kill -STOP $P; done" if how != "once" else "kill -STOP $P; sleep 100"
    script = f"P=$PPID; trap '' TERM; echo go; {again}"
    async with asyncio.timeout(20), running(tmp_path, mark, script) as process:
        assert await process.stdout.readline() == b"go\n"
        await asyncio.sleep(0.05)  # the stop, which is a program's, falls into its life rather than its end
    assert seen(mark, lambda count: count == 0)


async def test_a_keeper_that_is_killed_before_it_starts_anything_is_told(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    silent = tmp_path / "keeper.py"
    silent.write_text("")
    monkeypatch.setattr(keeper, "__file__", str(silent))
    with pytest.raises(StartError, match="true was ended at once: the keeper beside it was killed"):
        async with process_group(["/bin/true"], tmp_path, {}):
            pass


def test_the_environment_holds_no_secret(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("OPENAI_API_KEY", "WEBHOOK_SECRETS", "TURNBRIDGE_HOME", "LD_PRELOAD", "PYTHONPATH"):
        monkeypatch.setenv(name, "secret")
    monkeypatch.setenv("LC_ALL", "C.UTF-8")
    monkeypatch.setenv("https_proxy", "http://name:secret@proxy:1")
    monkeypatch.setenv("http_proxy", "http://proxy:1")
    monkeypatch.delenv("PATH")
    found = clean_environment()
    assert "secret" not in str(found)
    assert (found["TERM"], found["LC_ALL"], found["http_proxy"]) == ("dumb", "C.UTF-8", "http://proxy:1")
    assert "/bin" in found["PATH"]


_DAEMON = """
import asyncio, sys
from pathlib import Path
from bridge.tools.processes import clean_environment, process_group

async def run(mark, script):
    env = clean_environment() | {"MARK": mark}
    async with process_group(["/bin/sh", "-c", script], Path("/"), env) as it:
        print((await it.stdout.readline()).decode(), end="", flush=True)
        await it.wait()

asyncio.run(run(*sys.argv[1:]))
"""


@pytest.mark.parametrize("stubborn", ["", "trap '' TERM;"])
def test_a_daemon_that_is_killed_leaves_nothing_behind(stubborn: str, mark: str) -> None:
    script = f"{stubborn} setsid sleep 60 & (setsid sh -c '{stubborn} sleep 60 & sleep 60' &);"
    script = f"{stubborn} sleep 60 & {script} echo ready; sleep 60; sleep 60"
    command = [sys.executable, "-c", _DAEMON, mark, script]
    with subprocess.Popen(command, cwd=ROOT, stdout=subprocess.PIPE) as daemon:
        assert daemon.stdout
        assert daemon.stdout.readline() == b"ready\n"
        assert seen(mark, lambda count: count >= 6)
        daemon.kill()
        assert seen(mark, lambda count: count == 0)


def test_a_keeper_that_a_program_has_stopped_ends_it_too_when_the_daemon_is_killed(mark: str) -> None:
    script = "P=$PPID; setsid sleep 60 & sleep 0.2; kill -STOP $P; echo ready; sleep 60; sleep 60"
    command = [sys.executable, "-c", _DAEMON, mark, script]
    with subprocess.Popen(command, cwd=ROOT, stdout=subprocess.PIPE) as daemon:
        assert daemon.stdout
        assert daemon.stdout.readline() == b"ready\n"
        assert seen(mark, lambda count: count >= 4)
        daemon.kill()
        assert seen(mark, lambda count: count == 0)
