"""Programs that really end, with all that they have started: also on our own ``kill -9``.

Each runs under a keeper (``keeper.py``), which ends the whole tree when it is told to, or when this process
is gone: TERM, two seconds, KILL.
"""

import asyncio
import os
import signal
import subprocess
import sys
import time
from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import ExitStack, asynccontextmanager, suppress
from io import FileIO
from pathlib import Path, PurePath
from typing import IO, Literal

from bridge.errors import BridgeError
from bridge.tools import keeper, marks

LINE_BYTES = 65_536
KILLED = -9
WAKE_SECONDS = 3.0  # after an order: a keeper that was stopped is woken then, and hears it
PATIENCE_SECONDS = 10.0  # whoever has not ended all by then is ended
_ALLOWED = "PATH HOME USER LOGNAME SHELL LANG LANGUAGE TZ TMPDIR SSL_CERT_FILE SSL_CERT_DIR".split()
_PROXIES = "http_proxy https_proxy no_proxy HTTP_PROXY HTTPS_PROXY NO_PROXY".split()
_WAY = "/usr/local/bin:/usr/bin:/bin"
_STDERR = {"pipe": subprocess.PIPE, "stdout": subprocess.STDOUT, "null": subprocess.DEVNULL}


class StartError(BridgeError):
    """A program could not be started: there is none, or the system lacks what it takes."""


def clean_environment() -> dict[str, str]:
    """What a program may know of this process's environment: a short list, in which no secret is."""
    known = {name: os.environ[name] for name in _ALLOWED if name in os.environ}
    locale = {name: value for name, value in os.environ.items() if name.startswith("LC_")}
    proxies = {name: os.environ[name] for name in _PROXIES if "@" not in os.environ.get(name, "@")}
    return {"PATH": _WAY, **known, **locale, **proxies, "TERM": "dumb"}


class Process:
    """A program that runs; ``pid`` is its own, and leads its group.

    ``stderr`` is at its end where it is no pipe of its own.
    """

    def __init__(self, status: "_Status", pid: int, streams: "_Streams") -> None:
        self._status = status
        self.pid = pid
        self._stdin, self.stdout, self.stderr = streams

    @property
    def stdin(self) -> asyncio.StreamWriter:
        """Where it was started with one."""
        if self._stdin is None:
            raise TypeError("the program was started without stdin")
        return self._stdin

    @property
    def returncode(self) -> int | None:
        """Its exit code, negative for a signal; None as long as it runs."""
        return self._status.exited.result() if self._status.exited.done() else None

    async def wait(self) -> int:
        """Its exit code, as soon as it has one. What it has started has two seconds from then."""
        return await asyncio.shield(self._status.exited)

    async def ended(self) -> None:
        """Wait until nothing of it is left."""
        await asyncio.shield(self._status.gone)

    async def end(self) -> None:
        """End all of it, within five seconds, and wait for that; being cancelled meanwhile makes it hurry."""
        await self._status.end()


@asynccontextmanager
async def process_group(
    argv: Sequence[str],
    cwd: Path,
    env: Mapping[str, str],
    *,
    stdin: bool = True,
    stderr: Literal["pipe", "stdout", "null"] = "pipe",
    line_bytes: int = LINE_BYTES,
) -> AsyncIterator[Process]:
    """Run a program with the environment ``env`` and a mark; leaving ends it with all that came of it.

    What it writes must be read, or it waits. Without ``stdin`` its own is empty. ``line_bytes`` is the
    longest line that ``readline`` takes.

    Raises:
        StartError: it cannot be started.
    """
    mark = marks.new_mark()
    popen, life, tells = _spawn(argv, cwd, {**env, marks.NAME: mark}, stdin, stderr)
    status = _Status(life, popen.pid, mark)
    await asyncio.get_running_loop().connect_read_pipe(lambda: status, tells)
    try:
        with ExitStack() as pipes:
            streams = await _streams(pipes, popen, line_bytes)
            yield Process(status, await status.pid(argv[0]), streams)
    finally:
        try:
            await status.end()
        finally:
            popen.wait()  # it has closed all it held: it is gone, or will be at once


class _Status(asyncio.Protocol):
    """What a keeper tells, and what it is told through ``life``."""

    def __init__(self, life: FileIO, keeper_id: int, mark: str) -> None:
        loop = asyncio.get_running_loop()
        self.exited: asyncio.Future[int] = loop.create_future()
        self.gone: asyncio.Future[None] = loop.create_future()
        self._started: asyncio.Future[tuple[str, int]] = loop.create_future()
        self._life, self._heard = life, b""
        self._keeper_id, self._mark = keeper_id, mark

    def data_received(self, data: bytes) -> None:
        *lines, self._heard = (self._heard + data).split(b"\n")
        for line in lines:
            what, number = line.decode().split()
            if what == "exit":
                self.exited.set_result(int(number))
            else:
                self._started.set_result((what, int(number)))

    def connection_lost(self, error: Exception | None) -> None:
        """The keeper is gone, and all that it kept; unless it was killed itself: then that is for us."""
        self._life.close()
        if not self._started.done():
            self._started.set_result(("errno", 0))
        if not self.exited.done():
            self.exited.set_result(KILLED)
            what, number = self._started.result()
            with suppress(ProcessLookupError):
                if what == "pid":
                    os.killpg(number, signal.SIGKILL)
            marks.kill_marked(self._mark)
        self.gone.set_result(None)

    async def pid(self, program: str) -> int:
        """The program's id, once it runs; raises StartError."""
        while not self._started.done():
            await asyncio.wait([self._started], timeout=WAKE_SECONDS)
            self._rouse(signal.SIGCONT)
        what, number = self._started.result()
        if what == "errno":
            raise _not_started(program, os.strerror(number)) if number else _lost(program)
        return number

    async def end(self) -> None:
        """See ``Process``."""
        order, cancelled, until = keeper.END, False, time.monotonic() + PATIENCE_SECONDS
        while not self.gone.done():
            with suppress(OSError):  # it leaves just now
                self._life.write(order)
            try:
                async with asyncio.timeout(WAKE_SECONDS):
                    await asyncio.shield(self.gone)
            except TimeoutError:
                self._rouse(signal.SIGCONT if time.monotonic() < until else signal.SIGKILL)
            except asyncio.CancelledError:
                order, cancelled = keeper.KILL, True
        if cancelled:
            raise asyncio.CancelledError

    def _rouse(self, number: signal.Signals) -> None:
        """For a keeper that a program has stopped. Its id is its own as long as it was not waited for."""
        if not self.gone.done():
            os.kill(self._keeper_id, number)


def _spawn(
    argv: Sequence[str], cwd: Path, env: Mapping[str, str], stdin: bool, stderr: str
) -> tuple[subprocess.Popen[bytes], FileIO, FileIO]:
    """A keeper with the program: itself, the way to give it orders, and that on which it tells.

    Raises:
        StartError: it cannot be started.
    """
    try:
        with ExitStack() as ours, ExitStack() as theirs:
            hears, life = _pipe(theirs, ours)
            status, tells = _pipe(ours, theirs)
            passed = hears.fileno(), tells.fileno()
            popen = subprocess.Popen(
                [sys.executable, "-I", "-S", keeper.__file__, *map(str, passed), *argv],
                bufsize=0,
                stdin=subprocess.PIPE if stdin else subprocess.DEVNULL,
                stdout=subprocess.PIPE,
                stderr=_STDERR[stderr],
                cwd=cwd,
                env=env,
                pass_fds=passed,
                start_new_session=True,
            )
            ours.pop_all()
            return popen, life, status
    except OSError as error:
        raise _not_started(argv[0], error.strerror or "the system refuses it") from error
    except ValueError as error:  # a NUL
        raise _not_started(argv[0], "its arguments are no text") from error


def _not_started(program: str, why: str) -> StartError:
    return StartError(f"{PurePath(program).name} cannot be started: {why}")


def _lost(program: str) -> StartError:
    """Whether it ran at all, nobody has told."""
    return StartError(f"{PurePath(program).name} was ended at once: the keeper beside it was killed")


def _pipe(reads: ExitStack, writes: ExitStack) -> tuple[FileIO, FileIO]:
    reading, writing = os.pipe()
    return reads.enter_context(FileIO(reading)), writes.enter_context(FileIO(writing, "w"))


class _Writer(asyncio.StreamWriter):
    def write(self, data: bytes | bytearray | memoryview) -> None:
        """Raises ConnectionResetError, also where uvloop's own write would raise a RuntimeError."""
        if self.is_closing():
            raise ConnectionResetError
        super().write(data)


_Streams = tuple[asyncio.StreamWriter | None, asyncio.StreamReader, asyncio.StreamReader]


async def _streams(pipes: ExitStack, popen: subprocess.Popen[bytes], line_bytes: int) -> _Streams:
    """The program's; they are closed with ``pipes``."""
    stdin = await _writer(pipes, popen.stdin) if popen.stdin else None
    stdout = await _reader(pipes, popen.stdout, line_bytes)
    return stdin, stdout, await _reader(pipes, popen.stderr, line_bytes)


async def _writer(pipes: ExitStack, pipe: IO[bytes]) -> asyncio.StreamWriter:
    loop = asyncio.get_running_loop()
    transport, protocol = await loop.connect_write_pipe(
        lambda: asyncio.StreamReaderProtocol(asyncio.StreamReader()), pipe
    )
    pipes.callback(transport.close)
    return _Writer(transport, protocol, None, loop)


async def _reader(pipes: ExitStack, pipe: IO[bytes] | None, line_bytes: int) -> asyncio.StreamReader:
    reader = asyncio.StreamReader(line_bytes)
    if pipe is None:
        reader.feed_eof()
        return reader
    transport, _ = await asyncio.get_running_loop().connect_read_pipe(
        lambda: asyncio.StreamReaderProtocol(reader), pipe
    )
    pipes.callback(transport.close)
    return reader
