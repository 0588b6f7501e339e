"""The agent of the crash runs: a line per turn, in a file, so that turns are counted across deaths."""

import asyncio
import os
import random
import re
from pathlib import Path

from bridge.agents.contract import (
    Agent,
    AgentPlace,
    AgentSettings,
    AgentSpec,
    AgentUsage,
    Gate,
    Sink,
    ToolCall,
    Turn,
)

TOKEN = re.compile(r"token-[0-9a-f]{12}")
EDITED = " edited"  # stands in what was changed, and then in its answer
LONG_LINES = 900  # over 16 KiB, so that the answer takes more than one part


class CrashSettings(AgentSettings):
    """``[agents.crash]``: the file of turns, and how long a turn may take at most."""

    turns: str
    slow_ms: int = 60


class CrashAgent:
    """Answers with the message's token. ``long`` in a message asks for a long answer, ``file`` for a file."""

    model = "crash"

    def __init__(self, settings: CrashSettings) -> None:
        self._settings = settings

    async def run(self, turn: Turn, sink: Sink, gate: Gate) -> AgentUsage:
        found = TOKEN.search(turn.prompt)
        token = found.group() if found else "token-missing"
        await asyncio.to_thread(append, Path(self._settings.turns), token)
        await asyncio.sleep(random.random() * self._settings.slow_ms / 1000)
        if " file" in turn.prompt and "chat_attach" in turn.tools:
            name = file_name(token)
            await asyncio.to_thread((turn.cwd / name).write_text, f"the file of {token}\n")
            call = ToolCall(name="chat_attach", arguments={"path": name})
            await sink.completed("Here it comes.", [call])
            await gate.call(call)
        edited = EDITED if EDITED in turn.prompt else ""
        await sink.completed(answer(token, long=" long" in turn.prompt) + edited)
        return AgentUsage(steps=1)


def append(path: Path, token: str) -> None:
    """One line, whole and on disk before the turn goes on."""
    file = os.open(path, os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o600)
    try:
        os.write(file, f"{token}\n".encode())
        os.fsync(file)
    finally:
        os.close(file)


def file_name(token: str) -> str:
    return f"{token}.txt"


def answer(token: str, *, long: bool) -> str:
    if not long:
        return f"answer {token}"
    return "\n".join(f"{token} line {number:04}." for number in range(LONG_LINES))


def create(settings: CrashSettings, place: AgentPlace) -> Agent:
    return CrashAgent(settings)


SPEC = AgentSpec(name="crash", settings=CrashSettings, create=create)
