"""A tool that waits, and shows each second that it still does."""

from typing import Annotated

from pydantic import Field

from bridge.clock import Clock
from bridge.tools.contract import Arguments, CallPlace, Risk, ToolResult

LONGEST_SECONDS = 300


class WaitArguments(Arguments):
    seconds: Annotated[int, Field(ge=1, le=LONGEST_SECONDS, description="How long to wait.")]


class Wait:
    name, risk, arguments = "wait", Risk.READ_ONLY, WaitArguments
    description = f"Wait 1 to {LONGEST_SECONDS} seconds, for something that takes its time."

    def __init__(self, clock: Clock) -> None:
        self._clock = clock

    def summary(self, arguments: WaitArguments) -> str:
        return f"Wait {arguments.seconds} seconds"

    async def run(self, arguments: WaitArguments, place: CallPlace) -> ToolResult:
        for second in range(1, arguments.seconds + 1):
            await self._clock.sleep(1)
            await place.progress(f"waited {second} of {arguments.seconds} seconds")
        return ToolResult(True, f"Waited {arguments.seconds} seconds.")
