"""A turn of the echo agent, and all that came of it."""

import asyncio
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from bridge.agents.contract import AgentUsage, HistoryEntry, Option, OwnCall, Role, ToolCall, Turn, TurnFile
from bridge.agents.echo import Echo
from bridge.channel.testing.clock import FakeClock
from bridge.paths import Home
from bridge.tools.choose import tools_for
from bridge.tools.contract import CallPlace, Risk, Said, Tool, ToolResult, read_arguments


@dataclass
class Owned:
    """A call that the agent made by itself; ``chooses`` is the number of the option that is taken."""

    call: ToolCall
    risk: Risk
    summary: str
    chooses: int | None
    options: Sequence[Option] = ()
    told: list[str] = field(default_factory=list)
    result: ToolResult | None = None

    async def ask(self, options: Sequence[Option]) -> Option | None:
        self.options = options
        self.told.append("asked")
        return None if self.chooses is None else options[self.chooses]

    async def started(self) -> None:
        self.told.append("started")

    async def progress(self, text: str) -> None:
        self.told.append(text)

    async def completed(self, result: ToolResult) -> None:
        assert self.result is None
        self.result = result


@dataclass
class Talked:
    """What an agent said and called: a Sink, and a Gate that runs the tools, or denies."""

    tools: Mapping[str, Tool]
    cwd: Path
    denies: bool = False
    history: tuple[HistoryEntry, ...] = ()
    begun: int = 0
    previews: list[str] = field(default_factory=list)
    steps: list[str] = field(default_factory=list)
    expected: list[ToolCall] = field(default_factory=list)
    calls: list[tuple[str, Any]] = field(default_factory=list)
    results: list[ToolResult] = field(default_factory=list)
    progress: list[str] = field(default_factory=list)
    usage: AgentUsage | None = None
    so_far: AgentUsage | None = None
    chooses: int | None = 0
    owned: list[Owned] = field(default_factory=list)
    memory: str = ""

    @property
    def answer(self) -> str:
        return self.steps[-1]

    async def begin(self, system: str = "", room_tokens: int = 0) -> tuple[HistoryEntry, ...]:
        self.begun += 1
        return (*self.history, HistoryEntry(role=Role.USER, text="now"))

    async def delta(self, text: str) -> None:
        self.previews.append(text)

    async def completed(self, text: str, calls: Sequence[ToolCall] = ()) -> None:
        self.steps.append(text)
        self.expected = list(calls)

    async def call(self, call: ToolCall) -> ToolResult:
        self.expected.remove(call)
        self.calls.append((call.name, call.arguments))
        result = ToolResult(False, "The call was denied.") if self.denies else await self._run(call)
        self.results.append(result)
        return result

    async def own(self, call: ToolCall, risk: Risk, summary: str) -> OwnCall:
        self.owned.append(Owned(call, risk, summary, self.chooses))
        return self.owned[-1]

    def used(self, usage: AgentUsage) -> None:
        self.so_far = usage

    async def keep(self, memory: str) -> None:
        self.memory = memory

    async def _run(self, call: ToolCall) -> ToolResult:
        async def show(line: str) -> None:
            self.progress.append(line)

        tool = self.tools.get(call.name)
        if tool is None:
            return ToolResult(False, "There is no such tool here.")
        place = CallPlace(self.cwd, show, lambda: [Said(one.role.value, one.text) for one in self.history])
        return await tool.run(read_arguments(tool.arguments, call.arguments), place)


@dataclass
class Talker:
    """Runs turns in the workspace ``cwd``, with the tools of a chat by default."""

    cwd: Path
    home: Home
    clock: FakeClock = field(default_factory=FakeClock)
    history: tuple[HistoryEntry, ...] = ()
    files: tuple[TurnFile, ...] = ()
    no_tools: bool = False
    channel: str = "Feishu"
    denies: bool = False
    chooses: int | None = 0

    async def say(self, prompt: str, *, seconds: float = 0) -> Talked:
        """Run a turn; ``seconds`` pass while it runs."""
        tools = tools_for(self.home, self.clock, self.no_tools, self.channel)
        talked = Talked(tools, self.cwd, self.denies, self.history, chooses=self.chooses)
        turn = Turn("s", prompt, self.files, tools, self.cwd, self.channel)
        async with asyncio.TaskGroup() as tasks:
            running = tasks.create_task(Echo(self.clock).run(turn, talked, talked))
            while seconds and not running.done():
                if not self.clock.waits():
                    await asyncio.sleep(0)
                    continue
                await self.clock.advance(min(self.clock.waits()[0], seconds))
        talked.usage = running.result()
        return talked
