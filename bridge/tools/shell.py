"""The tool ``shell``: run a command in the workspace, for a limited time, and end all that it started."""

import asyncio
from typing import Annotated

from pydantic import AfterValidator, Field

from bridge.clock import Clock
from bridge.tools.contract import Arguments, CallPlace, Risk, ToolResult
from bridge.tools.output import Output
from bridge.tools.processes import Process, StartError, clean_environment, process_group

COMMAND_BYTES = 65_536
SECONDS, MOST_SECONDS = 120, 600
WRITTEN_BYTES = 1_073_741_824  # who writes more is stopped: nobody reads it
CHUNK_BYTES = 65_536
LAST_SECONDS = 1.0  # for what is still to be read when nothing runs any more
SHELL = "/bin/sh"


def _command(text: str) -> str:
    if not text.strip() or "\0" in text:
        raise ValueError("is blank, or holds a NUL")
    if len(text.encode(errors="replace")) > COMMAND_BYTES:
        raise ValueError(f"is over {COMMAND_BYTES} bytes: write a file, and run that")
    return text


class ShellArguments(Arguments):
    command: Annotated[str, AfterValidator(_command), Field(description="For /bin/sh.")]
    seconds: Annotated[int, Field(ge=1, le=MOST_SECONDS, description="How long it may take.")] | None = None


class Shell:
    """``seconds`` is how long a command may take that names no time."""

    name, risk, arguments = "shell", Risk.PROCESS, ShellArguments

    def __init__(self, clock: Clock, seconds: int = SECONDS) -> None:
        self._clock, self._seconds = clock, seconds
        self.description = (
            "Run a command with /bin/sh in the workspace. It reads nothing, and may take "
            f"{seconds} seconds, or what you say, up to {MOST_SECONDS}. What it started in the background "
            "ends with it. You get what it wrote, of much the beginning and the end, and its exit code."
        )

    def summary(self, arguments: ShellArguments) -> str:
        return f"Run {arguments.command}"

    async def run(self, arguments: ShellArguments, place: CallPlace) -> ToolResult:
        seconds = arguments.seconds or self._seconds
        output = Output(self._clock, place.progress)
        command = [SHELL, "-c", arguments.command.encode(errors="replace").decode()]
        try:
            async with process_group(
                command, place.cwd, clean_environment(), stdin=False, stderr="stdout"
            ) as process:
                stopped = await _run(process, output, seconds)
        except StartError as error:
            return ToolResult(False, f"{error}.")
        how = stopped or _shown(await process.wait())
        text = output.text().removesuffix("\n")
        said = f"{text}\n[{how}]" if text else f"[It wrote nothing; {how}]"
        return ToolResult(process.returncode == 0 and not stopped, said, output.is_cut)


async def _run(process: Process, output: Output, seconds: int) -> str:
    """Read what it writes until nothing of it is left; why it was stopped, if it was."""
    stopped = ""
    async with asyncio.TaskGroup() as tasks:
        reading = tasks.create_task(_read(process, output))
        try:
            async with asyncio.timeout(seconds):
                await process.ended()
        except TimeoutError:
            stopped = f"stopped: it took over {seconds} seconds"
            await process.end()
        await asyncio.wait([reading], timeout=LAST_SECONDS)
        reading.cancel()  # it waits for what could not be ended
    return f"stopped: it wrote over {WRITTEN_BYTES} bytes" if output.written > WRITTEN_BYTES else stopped


async def _read(process: Process, output: Output) -> None:
    while data := await process.stdout.read(CHUNK_BYTES):
        await output.take(data)
        if output.written > WRITTEN_BYTES:
            await process.end()


def _shown(code: int) -> str:
    return f"exit code {code}" if code >= 0 else f"ended by signal {-code}"
