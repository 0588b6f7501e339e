"""P10 and P11: what it costs to start: commands against ``python -c pass``, the daemon against a bare one."""

import os
import signal
import socket
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from tests.bench.figures import Figure, median_of

START_SECONDS = 30.0
EACH = 5  # runs of a command in one round
COMMAND = Path(sys.executable).with_name("turnbridge")
CONFIG = '[web]\nport = {port}\n[channels.feishu.main]\napp_id = "cli_bench"\nbase = "http://127.0.0.1:9"\n'
CREDENTIALS = '{"app_secret": "secret-of-the-bench", "verification_token": "token-of-the-bench"}'


def free_port() -> int:
    with socket.socket() as one:
        one.bind(("127.0.0.1", 0))
        return int(one.getsockname()[1])


def _seconds(args: list[str], ok: tuple[int, ...] = (0,)) -> float:
    begin = time.perf_counter()
    ended = subprocess.run(args, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE)
    taken = time.perf_counter() - begin
    if ended.returncode not in ok:
        raise RuntimeError(f"{args} ended with {ended.returncode}: {ended.stderr.decode()[-400:]}")
    return taken


def until_listening(port: int, process: subprocess.Popen[Any]) -> None:
    deadline = time.monotonic() + START_SECONDS
    while time.monotonic() < deadline:
        if process.poll() is not None:
            raise RuntimeError(f"{process.args!r} ended with {process.returncode}")
        with socket.socket() as one:
            if one.connect_ex(("127.0.0.1", port)) == 0:
                return
        time.sleep(0.002)
    raise RuntimeError(f"{process.args!r} did not listen within {START_SECONDS} s")


@contextmanager
def started(args: list[str], port: int) -> Iterator[tuple[float, int]]:
    """A server: the seconds until it listens, and its pid. Afterwards it is told to end, and must."""
    begin = time.perf_counter()
    process = subprocess.Popen(args, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    try:
        until_listening(port, process)
        yield time.perf_counter() - begin, process.pid
    finally:
        process.send_signal(signal.SIGTERM)
        try:
            process.wait(START_SECONDS)
        finally:
            process.kill()


@contextmanager
def _home() -> Iterator[tuple[Path, int]]:
    """A home with one Feishu account, and the port of its listener."""
    with tempfile.TemporaryDirectory(prefix="tb-bench-") as folder:
        root, port = Path(folder), free_port()
        secrets = root / "credentials" / "feishu"
        secrets.mkdir(parents=True, mode=0o700)
        for path, text in (
            (root / "config.toml", CONFIG.format(port=port)),
            (secrets / "main.json", CREDENTIALS),
        ):
            path.write_text(text)
            path.chmod(0o600)
        yield root, port


def measure_commands(rounds: int, say: Callable[[str], None]) -> list[Figure]:
    """``status`` asks a running daemon; its exit code says how the accounts are, so both are taken."""
    with _home() as (home, port), started([str(COMMAND), "run", "--home", str(home)], port):
        cases = {
            "pass": ([sys.executable, "-c", "pass"], (0,)),
            "status": ([str(COMMAND), "status", "--home", str(home)], (0, 1)),
            "--version": ([str(COMMAND), "--version"], (0,)),
        }
        taken: dict[str, list[float]] = {name: [] for name in cases}
        for number in range(rounds):
            each: dict[str, list[float]] = {name: [] for name in cases}
            for _ in range(EACH):
                for name, (args, ok) in cases.items():
                    each[name].append(_seconds(args, ok))
            for name, values in each.items():
                taken[name].append(median_of(values))
            say(f"P10 round {number + 1}: " + _milliseconds(taken))
    return [_command("status", 4.0, 2.7, taken), _command("--version", 2.5, 1.5, taken)]


def _milliseconds(taken: dict[str, list[float]]) -> str:
    return ", ".join(f"{name} {values[-1] * 1000:.0f} ms" for name, values in taken.items())


def _command(name: str, must: float, aim: float, taken: dict[str, list[float]]) -> Figure:
    return Figure(
        name="P10",
        what=f"`turnbridge {name}` against `python -c pass`",
        ratios=tuple(ours / bare for ours, bare in zip(taken[name], taken["pass"], strict=True)),
        must=must,
        aim=aim,
        most=True,
        absolute=f"{median_of(taken[name]) * 1000:.0f} ms, bare {median_of(taken['pass']) * 1000:.0f} ms",
    )


def measure_start(rounds: int, say: Callable[[str], None]) -> list[Figure]:
    """The second and later starts of a home: its folders and its database are there."""
    ours: list[float] = []
    bare: list[float] = []
    with _home() as (home, port):
        with started([str(COMMAND), "run", "--home", str(home)], port):
            pass
        for number in range(rounds):
            other = free_port()
            database = home / "bare.db"
            args = [sys.executable, "-m", "tests.bench.bare", str(other), str(database)]
            with started(args, other) as (seconds, _):
                bare.append(seconds)
            with started([str(COMMAND), "run", "--home", str(home)], port) as (seconds, _):
                ours.append(seconds)
            say(f"P11 round {number + 1}: daemon {ours[-1] * 1000:.0f} ms, bare {bare[-1] * 1000:.0f} ms")
    figure = Figure(
        name="P11",
        what="daemon start to listening, against bare aiohttp with pydantic and SQLite",
        ratios=tuple(own / other for own, other in zip(ours, bare, strict=True)),
        must=2.5,
        aim=1.5,
        most=True,
        absolute=f"{median_of(ours) * 1000:.0f} ms, bare {median_of(bare) * 1000:.0f} ms",
    )
    return [figure]


def cores() -> int:
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
