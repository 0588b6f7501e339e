"""The daemon's process, as the run starts, kills and stops it."""

import asyncio
import os
import secrets
import signal
import sys
import time
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path

from tests.crash import offspring

ROOT = Path(__file__).parents[2]
PLUGIN = Path(__file__).parent / "plugin"
READY_SECONDS = 30.0
STOP_SECONDS = 10.0  # for SIGTERM, under load


class Daemon:
    """One daemon at a time on one home; its log goes on in one file over all of them."""

    def __init__(self, home: Path, log: Path, variant: Sequence[str] = ()) -> None:
        self._home, self._log, self._variant = home, log, variant
        self._process: asyncio.subprocess.Process | None = None
        self._mark = secrets.token_hex(8)  # of every process that comes of it

    @property
    def process(self) -> asyncio.subprocess.Process:
        assert self._process is not None
        return self._process

    async def start(self, die: object = None) -> None:
        """Start it, without waiting until it serves."""
        args = [sys.executable, "-m", "tests.crash.child", str(self._home)]
        args += ["--die", str(die)] if die else []
        args += ["--variant", "+".join(self._variant)] if self._variant else []
        paths = [str(PLUGIN), os.environ.get("PYTHONPATH", "")]
        environment = {**os.environ, "PYTHONPATH": os.pathsep.join(filter(None, paths))}
        environment[offspring.MARK] = self._mark
        with self._log.open("ab") as log:
            self._process = await asyncio.create_subprocess_exec(
                *args,
                cwd=ROOT,
                env=environment,
                stdin=asyncio.subprocess.PIPE,  # the child ends when this closes, so that none is left over
                stdout=asyncio.subprocess.PIPE,
                stderr=log,
            )

    async def ready(self) -> bool:
        """Wait until it serves; False where it ended before."""
        assert self.process.stdout is not None
        async with asyncio.timeout(READY_SECONDS):
            return await self.process.stdout.readline() == b"ready\n"

    async def ended(self, seconds: float) -> int | None:
        """Its exit code, negative for a signal; None where it still runs after ``seconds``."""
        try:
            async with asyncio.timeout(seconds):
                return await self.process.wait()
        except TimeoutError:
            return None

    async def kill(self) -> int:
        """SIGKILL, now; the exit code tells whether it had ended by itself."""
        if self.process.returncode is None:
            with suppress(ProcessLookupError):
                self.process.kill()
        return await self.process.wait()

    async def left(self) -> list[int]:
        """Which processes that came of it are there, itself included."""
        return await asyncio.to_thread(offspring.marked, self._mark)

    async def stop(self) -> tuple[int | None, float]:
        """SIGTERM: the exit code, None where it had to be killed, and how long it took."""
        begin = time.monotonic()
        self.process.send_signal(signal.SIGTERM)
        code = await self.ended(STOP_SECONDS)
        if code is None:
            await self.kill()
        return code, time.monotonic() - begin

    async def second(self) -> tuple[int, float]:
        """Start another daemon on the same home: its exit code, and how long it took to refuse."""
        begin = time.monotonic()
        other = Daemon(self._home, self._log)
        await other.start()
        code = await other.ended(STOP_SECONDS)
        if code is None:
            await other.kill()
        return (-1 if code is None else code), time.monotonic() - begin
