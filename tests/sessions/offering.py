"""A test agent that offers models and modes, sums up, keeps something, and is left."""

from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager

from bridge.agents.contract import (
    AgentError,
    AgentUsage,
    Choices,
    Gate,
    HistoryEntry,
    Role,
    Sink,
    Turn,
)

OFFERED = Choices({"small": "Small one", "big": "Big one"}, {"plan": "Plan first"})


class Offering:
    """Says what it sees: its model and mode, and how many of the history's messages."""

    model = "small"

    def __init__(self) -> None:
        self.offered: Choices | AgentError = OFFERED
        self.start_error: Exception | None = None
        self.summary: str | AgentError = "all of it"
        self.asked: list[Turn] = []
        self.turns: list[Turn] = []
        self.left: list[str] = []
        self.starts = self.ends = 0

    @asynccontextmanager
    async def running(self) -> AsyncIterator[None]:
        if self.start_error is not None:
            raise self.start_error
        self.starts += 1
        try:
            yield
        finally:
            self.ends += 1

    async def choices(self, turn: Turn) -> Choices:
        self.asked.append(turn)
        if isinstance(self.offered, AgentError):
            raise self.offered
        return self.offered

    async def compact(self, turn: Turn, history: Sequence[HistoryEntry]) -> str:
        if isinstance(self.summary, AgentError):
            raise self.summary
        return self.summary

    async def leave(self, session_id: str) -> None:
        self.left.append(session_id)

    async def run(self, turn: Turn, sink: Sink, gate: Gate) -> AgentUsage:
        self.turns.append(turn)
        said = [entry.text for entry in await sink.begin() if entry.role is not Role.NOTE]
        await sink.keep(f"{turn.memory}+")
        model, mode = turn.choice.model or self.model, turn.choice.mode or "-"
        await sink.completed(f"{model} {mode} {turn.cwd.name} saw: {' | '.join(said)}")
        return AgentUsage(steps=1, cost_micros=1200)
