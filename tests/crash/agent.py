"""The agent of the crash runs: all that it does is in a file, so that it is counted across deaths."""

import asyncio
import random
import re
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from bridge.agents.contract import (
    Agent,
    AgentPlace,
    AgentSettings,
    AgentSpec,
    AgentUsage,
    Gate,
    HistoryEntry,
    Role,
    Sink,
    ToolCall,
    Turn,
)
from bridge.ids import new_uuid
from tests.crash.trace import Did, Line, write

TOKEN = re.compile(r"token-[0-9a-f]{12}")
EDITED = " edited"  # stands in what was changed, and then in its answer
LONG_LINES = 900  # over 16 KiB, so that the answer takes more than one part
SLOW_SECONDS = 1.5
WORDLESS = "You asked for nothing."
_WISH = re.compile(rf"({TOKEN.pattern})((?: (?:long|file|slow|call|edited))*)")


class CrashSettings(AgentSettings):
    """``[agents.crash]``: the file of turns, and how long a turn that is not slow may take."""

    turns: str
    slow_ms: int = 60


@dataclass(frozen=True, slots=True)
class Wish:
    """What one message asks for, by the words behind its token."""

    token: str
    words: frozenset[str]


def wishes_in(text: str) -> list[Wish]:
    return [Wish(token, frozenset(words.split())) for token, words in _WISH.findall(text)]


class CrashAgent:
    """Answers all that a turn asks for, also what it is told on its way."""

    model = "crash"

    def __init__(self, settings: CrashSettings) -> None:
        self._settings = settings

    async def run(self, turn: Turn, sink: Sink, gate: Gate) -> AgentUsage:
        wishes, id_ = wishes_in(turn.prompt), new_uuid()
        await self._note(Did.BEGAN, id_, wishes)
        slow = any("slow" in wish.words for wish in wishes)
        await asyncio.sleep(random.random() * (SLOW_SECONDS if slow else self._settings.slow_ms / 1000))
        told: list[str] = []
        for wish in wishes:
            told += await _act(wish, turn, sink, gate)
        added = [one for text in added_to(await sink.begin(), turn.prompt) for one in wishes_in(text)]
        if added:
            await self._note(Did.STEERED, id_, added)
        await self._note(Did.ENDED, id_, [*wishes, *added])
        await sink.completed("\n".join([*told, *map(answer, [*wishes, *added])]) or WORDLESS)
        return AgentUsage(steps=1)

    async def _note(self, did: Did, turn_id: str, wishes: Sequence[Wish]) -> None:
        line = Line(did, turn_id, tuple(wish.token for wish in wishes))
        await asyncio.to_thread(write, Path(self._settings.turns), line)


async def _act(wish: Wish, turn: Turn, sink: Sink, gate: Gate) -> list[str]:
    """Make the calls that are asked for; what is told of them."""
    if "file" in wish.words and "chat_attach" in turn.tools:
        name = file_name(wish.token)
        await asyncio.to_thread((turn.cwd / name).write_text, f"the file of {wish.token}\n")
        call = ToolCall(name="chat_attach", arguments={"path": name})
        await sink.completed("Here it comes.", [call])
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


def answer(wish: Wish) -> str:
    lines = [f"answer {wish.token}{EDITED if EDITED.strip() in wish.words else ''}"]
    if "long" in wish.words:
        lines += [f"{wish.token} line {number:04}." for number in range(LONG_LINES)]
    return "\n".join(lines)


def create(settings: CrashSettings, place: AgentPlace) -> Agent:
    return CrashAgent(settings)


SPEC = AgentSpec(name="crash", settings=CrashSettings, create=create)
