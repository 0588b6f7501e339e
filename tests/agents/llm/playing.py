"""Turns of the llm agent against a scripted endpoint, and all that came of them."""

import random
from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from pydantic import BaseModel

from bridge.agents.contract import (
    AgentError,
    AgentPlace,
    AgentUsage,
    Choice,
    HistoryEntry,
    Role,
    ToolCall,
    Turn,
    TurnFile,
)
from bridge.agents.llm.agent import Llm
from bridge.agents.llm.settings import LlmSettings
from bridge.channel.testing.clock import FakeClock
from bridge.paths import Home
from bridge.tools.contract import (
    Arguments,
    ArgumentsError,
    CallPlace,
    Risk,
    Tool,
    ToolResult,
    read_arguments,
)
from tests.agents.llm.server import ModelServer, Reply

KEY = "sk-very-secret-0123456789"


class AddArguments(Arguments):
    a: int
    b: int = 1


class Add:
    """A tool: adds two numbers."""

    name, description, risk, arguments = "add", "Add numbers.", Risk.READ_ONLY, AddArguments

    def summary(self, arguments: Any) -> str:
        return "add"

    async def run(self, arguments: AddArguments, place: CallPlace) -> ToolResult:
        return ToolResult(True, str(arguments.a + arguments.b))


class Played:
    """A Sink and a Gate that go by the contract, as the session server's do; ``entries`` are the history."""

    def __init__(self, tools: Mapping[str, Tool], entries: Sequence[HistoryEntry]) -> None:
        self.tools = tools
        self.entries = list(entries)
        self.systems: list[str] = []
        self.rooms: list[int] = []
        self.deltas: list[str] = []
        self.steps: list[str] = []
        self.results: list[ToolResult] = []
        self.usage = AgentUsage(0)
        self.so_far: list[AgentUsage] = []
        self._expected: dict[str, ToolCall] = {}

    @property
    def answer(self) -> str:
        return self.steps[-1]

    async def begin(self, system: str = "", room_tokens: int = 0) -> tuple[HistoryEntry, ...]:
        self.systems.append(system)
        self.rooms.append(room_tokens)
        return tuple(self.entries)

    async def delta(self, text: str) -> None:
        self.deltas.append(text)

    async def completed(self, text: str, calls: Sequence[ToolCall] = ()) -> None:
        self.steps.append(text)
        assert len({call.call_id for call in calls}) == len(calls)
        self._expected = {call.call_id: call for call in calls}
        self.entries.append(HistoryEntry(role=Role.ASSISTANT, text=text, calls=tuple(calls)))

    async def keep(self, memory: str) -> None:
        raise AssertionError("this agent keeps nothing")

    def used(self, usage: AgentUsage) -> None:
        self.so_far.append(usage)

    async def own(self, call: ToolCall, risk: Risk, summary: str) -> Any:
        raise AssertionError("this agent makes no calls by itself")

    async def call(self, call: ToolCall) -> ToolResult:
        asked = self._expected.pop(call.call_id)
        result = await self._run(asked)
        self.results.append(result)
        entry = HistoryEntry(role=Role.TOOL, text=result.output, name=asked.name, call_id=asked.call_id)
        self.entries.append(entry)
        return result

    async def _run(self, call: ToolCall) -> ToolResult:
        tool = self.tools.get(call.name)
        if tool is None:
            return ToolResult(False, "There is no such tool here.")
        try:
            arguments: BaseModel = read_arguments(tool.arguments, call.arguments)
        except ArgumentsError as error:
            return ToolResult(False, f"The arguments were refused: {error}")
        return await tool.run(arguments, CallPlace(Path("/"), _show))


async def _show(line: str) -> None:
    raise AssertionError("nothing shows progress here")


@dataclass
class Player:
    """A profile whose endpoint is ``server``."""

    server: ModelServer
    agent: Llm
    clock: FakeClock
    tools: dict[str, Tool] = field(default_factory=dict)

    async def say(
        self,
        prompt: str = "Hello",
        history: Sequence[HistoryEntry] = (),
        files: tuple[TurnFile, ...] = (),
        model: str = "",
    ) -> Played:
        """A turn; raises AgentError where it failed, which then bears the ``played`` turn."""
        turn = self.turn(prompt, files, model)
        played = Played(self.tools, [*history, HistoryEntry(role=Role.USER, text=prompt, files=files)])
        try:
            played.usage = await self.agent.run(turn, played, played)
        except AgentError as error:
            error.played = played  # type: ignore[attr-defined]  # for the test alone
            raise
        return played

    def turn(self, prompt: str = "", files: tuple[TurnFile, ...] = (), model: str = "") -> Turn:
        return Turn("s", prompt, files, self.tools, Path("/w"), "Feishu", Choice(model))


@asynccontextmanager
async def playing(
    *script: Reply, key: str = KEY, tools: bool = True, home: Path = Path("/nowhere"), **settings: Any
) -> AsyncIterator[Player]:
    """A profile named ``fast`` with the model ``small``, and an endpoint that answers with ``script``."""
    clock = FakeClock()
    async with ModelServer(script).serving() as server:
        base = server.address if settings.get("provider") == "anthropic" else f"{server.address}/v1"
        chosen = {"provider": "compatible", "model": "small", "base_url": base, **settings}
        profile = LlmSettings.model_validate(chosen)
        agent = Llm(profile, AgentPlace("fast", Home(home), clock), key, random.Random(1))
        async with agent.running():
            yield Player(server, agent, clock, {"add": Add()} if tools else {})
