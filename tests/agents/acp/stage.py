"""Turns of the ``acp`` agent with the scripted program, and all that came of them."""

import asyncio
import json
import os
import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from bridge.agents.acp.agent import Acp
from bridge.agents.acp.settings import AcpSettings
from bridge.agents.contract import AgentPlace, Choice, HistoryEntry, Role, Turn, TurnFile
from bridge.channel.testing.clock import FakeClock
from bridge.paths import Home
from bridge.tools.choose import tools_for
from bridge.tools.contract import Tool
from tests.agents.talking import Talked

PROGRAM = str(Path(__file__).with_name("scripted.py"))
QUICK = {"start_seconds": 10.0, "silent_seconds": 10.0, "cancel_seconds": 0.1}


class Heard(Talked):
    """As a session would: it tells the history with the question behind it."""

    question = ""
    added: tuple[str, ...] = ()

    async def begin(self, system: str = "", room_tokens: int = 0) -> tuple[HistoryEntry, ...]:
        asked = [HistoryEntry(role=Role.USER, text=text) for text in (self.question, *self.added)]
        return (*self.history, *asked)


@dataclass
class Stage:
    """``history`` and ``memory`` are the session's, and grow with each completed turn."""

    agent: Acp
    home: Home
    cwd: Path
    clock: FakeClock
    log: Path
    history: tuple[HistoryEntry, ...] = ()
    memory: str = ""
    chooses: int | None = 0
    choice: Choice = field(default_factory=Choice)
    tools: dict[str, Tool] = field(default_factory=dict)

    def turn(self, prompt: str, session: str = "s", files: tuple[TurnFile, ...] = ()) -> Turn:
        return Turn(session, prompt, files, self.tools, self.cwd, "Feishu", self.choice, self.memory)

    async def say(
        self, prompt: str, session: str = "s", files: tuple[TurnFile, ...] = (), added: tuple[str, ...] = ()
    ) -> Heard:
        """Run a turn to its end; a failed one adds nothing to the history."""
        heard = self.heard(prompt)
        heard.added = added
        try:
            heard.usage = await self.agent.run(self.turn(prompt, session, files), heard, heard)
        finally:
            self.memory = heard.memory or self.memory
        said = heard.steps[-1] if heard.steps else ""
        self.history += (
            HistoryEntry(role=Role.USER, text=prompt),
            HistoryEntry(role=Role.ASSISTANT, text=said),
        )
        return heard

    def heard(self, prompt: str) -> Heard:
        heard = Heard(self.tools, self.cwd, history=self.history, chooses=self.chooses)
        heard.question = prompt
        return heard

    def told(self, method: str) -> list[dict[str, Any]]:
        """The parameters of what the program was asked or told, oldest first."""
        return [one["params"] for one in self.events() if one.get("method") == method]

    def answers(self, method: str) -> list[Any]:
        """What the program's own requests were answered with."""
        return [one["answer"] for one in self.events() if one.get("to") == method]

    def events(self) -> list[dict[str, Any]]:
        return [json.loads(line) for line in self.log.read_text().splitlines()] if self.log.exists() else []

    async def until(self, method: str, count: int = 1) -> None:
        while len(self.told(method)) < count:
            await asyncio.sleep(0.005)


@asynccontextmanager
async def stage(folder: Path, fault: str = "", **settings: Any) -> AsyncIterator[Stage]:
    """A running agent; ``capabilities`` among the settings are the program's."""
    cwd, state, log = folder / "work", folder / "sessions", folder / "log"
    cwd.mkdir(exist_ok=True)
    state.mkdir(exist_ok=True)
    env = [f"FAULT={fault}", f"LOG={log}", f"STATE={state}", *settings.pop("env", [])]
    if "capabilities" in settings:
        env.append(f"CAPABILITIES={json.dumps(settings.pop('capabilities'))}")
    program = {} if "preset" in settings else {"command": [sys.executable, PROGRAM]}
    told = {**program, "env": env, **QUICK, **settings}
    home, clock = Home(folder / "home"), FakeClock()
    agent = Acp(AcpSettings.model_validate(told), AgentPlace("coder", home, clock))
    async with agent.running():
        here = Stage(agent, home, cwd, clock, log)
        here.tools = dict(tools_for(home, clock, False, "Feishu"))
        yield here


def alive(pid: int) -> bool:
    """Whether a process is there, and no mere zombie."""
    try:
        os.kill(pid, 0)
        with open(f"/proc/{pid}/stat") as file:
            return file.read().rpartition(")")[2].split()[0] != "Z"
    except (ProcessLookupError, FileNotFoundError):
        return False
