"""What makes a process a daemon: one per home, signals that stop it, and enough file descriptors."""

from __future__ import annotations

import asyncio
import fcntl
import gc
import os
import resource
import signal
import threading
from collections.abc import Iterator
from contextlib import contextmanager

from bridge.errors import BridgeError, ConfigError
from bridge.logs import get_logger
from bridge.paths import Home

LAST_COMMIT_SECONDS = 2.0  # for the store, after everything else had its time
DESCRIPTORS = 65_536
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
    path = home.daemon_lock
    try:
        lock = os.open(path, os.O_RDWR | os.O_CREAT | os.O_NOFOLLOW | os.O_CLOEXEC, 0o600)
    except OSError as error:
        raise ConfigError(f"cannot open {path}: {error.strerror}") from error
    try:
        _take(lock, home)
        os.ftruncate(lock, 0)
        os.pwrite(lock, str(os.getpid()).encode(), 0)
        yield
    finally:
        os.close(lock)


def _take(lock: int, home: Home) -> None:
    try:
        fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        pid = os.pread(lock, 20, 0).decode(errors="replace").strip()
        whose = f" (pid {pid})" if pid.isdigit() else ""
        raise RunningError(f"a daemon{whose} runs already on {home.root}: stop it first") from None


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


def spare_collections() -> None:
    """Leave out of garbage collections what was loaded by now, which stays; look for the rest less often.

    Under load the collector would otherwise take a tenth of the time, looking again and again at modules,
    schemas and messages that wait.
    """
    gc.collect()
    gc.freeze()
    gc.set_threshold(*COLLECT_AFTER)
    gc.enable()
