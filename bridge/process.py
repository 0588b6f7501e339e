"""What makes a process a daemon: one per home, signals that stop it, and enough file descriptors."""

from __future__ import annotations

import asyncio
import ctypes
import fcntl
import gc
import os
import resource
import signal
import stat
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from bridge.errors import BridgeError, ConfigError
from bridge.logs import get_logger
from bridge.paths import Home

LAST_COMMIT_SECONDS = 2.0  # for the store, after everything else had its time
TRIES, MOMENT_SECONDS = 5, 0.05  # for the lock
MAX_PID = 2**31 - 1
DESCRIPTORS = 65_536
LEAST_DESCRIPTORS = 64  # without any account it has 25 open
PR_SET_DUMPABLE = 4
COLLECT_AFTER = (20_000, 20, 50)  # objects made, younger collections, and again

log = get_logger(__name__)


class RunningError(BridgeError):
    """Another daemon has this home."""


@contextmanager
def only_daemon(home: Home) -> Iterator[None]:
    """Hold the home's run lock. The kernel releases it with the process, so a stale file never blocks.

    Raises:
        RunningError: another process holds it.
        ConfigError: the file cannot be used.
    """
    home.private_dir(home.state)
    lock = _open(home.daemon_lock, os.O_CREAT)
    try:
        if not any(_taken(lock) for _ in range(TRIES)):
            pid = _named(lock)
            whose = f" (pid {pid})" if pid else ""
            raise RunningError(f"a daemon{whose} runs already on {home.root}: stop it first")
        os.ftruncate(lock, 0)
        os.pwrite(lock, str(os.getpid()).encode(), 0)
        yield
    finally:
        os.close(lock)


def holder(home: Home) -> int | None:
    """The process id of the home's daemon, 0 where it has not written it yet; None: none runs.

    The lock alone tells: an id that a dead daemon left, or that another process has by now, is removed.

    Raises:
        ConfigError: the file cannot be used.
    """
    try:
        lock = _open(home.daemon_lock, 0)
    except FileNotFoundError:
        return None
    try:
        if not _taken(lock):
            return _named(lock)
        os.ftruncate(lock, 0)
        return None
    finally:
        os.close(lock)


def _open(path: Path, flags: int) -> int:
    """The lock file, closed to others, whatever its mode was.

    Raises:
        FileNotFoundError: it is not there, and is not to be made.
        ConfigError: it cannot be used.
    """
    try:
        lock = os.open(path, os.O_RDWR | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC | flags, 0o600)
    except FileNotFoundError:
        raise
    except OSError as error:
        why = "it is a symbolic link" if path.is_symlink() else error.strerror
        raise ConfigError(f"cannot open {path}: {why}: remove it") from error
    try:
        if not stat.S_ISREG(os.fstat(lock).st_mode):
            raise ConfigError(f"cannot open {path}: it is no regular file: remove it")
        os.fchmod(lock, 0o600)
    except BaseException:  # whatever it was, nobody else has the descriptor
        os.close(lock)
        raise
    return lock


def _taken(lock: int) -> bool:
    """Whether it is ours now. Whoever only asks for the holder has it for a moment, too: so wait for one."""
    try:
        fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        time.sleep(MOMENT_SECONDS)
        return False
    return True


def _named(lock: int) -> int:
    """The process id in the file, 0 where there is none."""
    text = os.pread(lock, 20, 0).decode(errors="replace").strip()
    return int(text) if text.isascii() and text.isdigit() and int(text) <= MAX_PID else 0


@contextmanager
def stopping(stop: asyncio.Future[int], stop_seconds: float) -> Iterator[None]:
    """Let SIGTERM and SIGINT set ``stop`` to 0 while the block runs, in the main thread's loop.

    A process that does not end in time after ``stop`` was set, whatever hangs and whoever set it, ends with
    code 1: all state is durable.
    """
    loop = asyncio.get_running_loop()
    timer = threading.Timer(stop_seconds + LAST_COMMIT_SECONDS, os._exit, (1,))
    timer.daemon = True

    def asked(name: str) -> None:
        if not stop.done():
            log.info("daemon.stopping", signal=name)
            stop.set_result(0)

    def limit(_: asyncio.Future[int]) -> None:
        timer.start()

    stop.add_done_callback(limit)
    signals = (signal.SIGTERM, signal.SIGINT)
    for each in signals:
        loop.add_signal_handler(each, asked, each.name)
    try:
        yield
    finally:
        for each in signals:
            loop.remove_signal_handler(each)
        stop.remove_done_callback(limit)
        timer.cancel()


def raise_descriptor_limit() -> int:
    """Take as many file descriptors as the system lets this process have, and return how many."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    wanted = DESCRIPTORS if hard == resource.RLIM_INFINITY else min(hard, DESCRIPTORS)
    if soft != resource.RLIM_INFINITY and soft < wanted:
        try:
            resource.setrlimit(resource.RLIMIT_NOFILE, (wanted, hard))
        except (OSError, ValueError):  # macOS has a second limit of its own
            return soft
        return wanted
    return DESCRIPTORS if soft == resource.RLIM_INFINITY else soft


def need_descriptors() -> None:
    """As ``raise_descriptor_limit``; raises ConfigError where that is too little for anything."""
    if (most := raise_descriptor_limit()) < LEAST_DESCRIPTORS:
        raise ConfigError(
            f"this process may have {most} files open, and the daemon needs {LEAST_DESCRIPTORS} at least: "
            "raise the limit (ulimit -n 1024, or LimitNOFILE= of a service)"
        )


def keep_others_out() -> None:
    """Let no program of the same user, such as an agent's command, read this process's environment or memory.

    On Linux. It leaves no core dump then, and a debugger or profiler needs root. What it starts is as ever:
    the kernel forgets this when another program is begun.
    """
    if sys.platform == "linux":
        ctypes.CDLL(None).prctl(PR_SET_DUMPABLE, *[ctypes.c_ulong(0)] * 4)


def spare_collections() -> None:
    """Leave out of garbage collections what was loaded by now, which stays; look for the rest less often.

    Under load the collector would otherwise take a tenth of the time, looking again and again at modules,
    schemas and messages that wait.
    """
    gc.collect()
    gc.freeze()
    gc.set_threshold(*COLLECT_AFTER)
    gc.enable()
