"""The agent of the crash runs: all that it does is in a file, so that it is counted across deaths."""

import asyncio
import random
from collections.abc import Sequence
from pathlib import Path

from bridge.agents.contract import (
    Agent,
    AgentPlace,
    AgentSettings,
    AgentSpec,
    AgentUsage,
    Choices,
    Gate,
    HistoryEntry,
    Role,
    Sink,
    ToolCall,
    Turn,
)
from bridge.ids import new_uuid
from tests.crash.offspring import SPAWN, SPAWN_STUBBORN
from tests.crash.trace import NOWHERE, Did, Line, Where, write
from tests.crash.wishes import WORDLESS, Wish, answer, wishes_in

SLOW_SECONDS = 1.5
MODELS = {"small": "Small", "big": "Big"}
STUBBORN_SHARE = 0.2


class CrashSettings(AgentSettings):
    """``[agents.crash]``: the file of turns, and how long a turn that is not slow may take."""

    turns: str
    slow_ms: int = 60


class CrashAgent:
    """Answers all that a turn asks for, also what it is told on its way."""

    model = next(iter(MODELS))

    def __init__(self, settings: CrashSettings, name: str) -> None:
        self._settings, self._name = settings, name

    async def run(self, turn: Turn, sink: Sink, gate: Gate) -> AgentUsage:
        wishes, id_ = wishes_in(turn.prompt), new_uuid()
        where = Where(self._name, turn.choice.model or self.model, str(turn.cwd))
        await self._note(Did.BEGAN, id_, wishes, where)
        slow = any("slow" in wish.words for wish in wishes)
        await asyncio.sleep(random.random() * (SLOW_SECONDS if slow else self._settings.slow_ms / 1000))
        told: list[str] = []
        for wish in wishes:
            told += await _act(wish, turn, sink, gate)
        added = [one for text in added_to(await sink.begin(), turn.prompt) for one in wishes_in(text)]
        if added:
            await self._note(Did.STEERED, id_, added, where)
        await self._note(Did.ENDED, id_, [*wishes, *added])
        await sink.completed("\n".join([*told, *map(answer, [*wishes, *added])]) or WORDLESS)
        return AgentUsage(steps=1)

    async def choices(self, turn: Turn) -> Choices:
        return Choices(models=MODELS)

    async def compact(self, turn: Turn, history: Sequence[HistoryEntry]) -> str:
        return "They asked, and were answered."

    async def _note(self, did: Did, turn_id: str, wishes: Sequence[Wish], where: Where = NOWHERE) -> None:
        line = Line(did, turn_id, tuple(wish.token for wish in wishes), where=where)
        await asyncio.to_thread(write, Path(self._settings.turns), line)


async def _act(wish: Wish, turn: Turn, sink: Sink, gate: Gate) -> list[str]:
    """Make the calls that are asked for; what is told of them."""
    if "file" in wish.words and "chat_attach" in turn.tools:
        name = file_name(wish.token)
        await asyncio.to_thread((turn.cwd / name).write_text, f"the file of {wish.token}\n")
        call = ToolCall(name="chat_attach", arguments={"path": name})
        await sink.completed("Here it comes.", [call])
        await gate.call(call)
    if "shell" in wish.words and "shell" in turn.tools:
        spawn = SPAWN_STUBBORN if random.random() < STUBBORN_SHARE else SPAWN
        call = ToolCall(name="shell", arguments={"command": f"{spawn}; sleep 0.2"})
        await sink.completed("I start something.", [call])
        await gate.call(call)
    if "call" not in wish.words:
        return []
    call = ToolCall(name="write_file", arguments={"path": f"call-{wish.token}.txt", "text": "done"})
    await sink.completed("I would like to write something.", [call])
    return [ran(wish.token) if (await gate.call(call)).success else left(wish.token)]


def added_to(seen: Sequence[HistoryEntry], prompt: str) -> list[str]:
    """What a turn was told after its prompt."""
    said = [entry.text for entry in seen if entry.role is Role.USER]
    last = max((at for at, text in enumerate(said) if text == prompt), default=len(said))
    return said[last + 1 :]


def file_name(token: str) -> str:
    return f"{token}.txt"


def ran(token: str) -> str:
    return f"I wrote for {token}."


def left(token: str) -> str:
    return f"I was not let for {token}."


def create(settings: CrashSettings, place: AgentPlace) -> Agent:
    return CrashAgent(settings, place.name)


SPEC = AgentSpec(name="crash", settings=CrashSettings, create=create)
