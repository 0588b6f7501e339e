"""What answers a turn. An agent sees a prompt, files, history and tools; never a channel or a socket."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from enum import StrEnum
from pathlib import Path
from typing import Any, Protocol

from pydantic import BaseModel, ConfigDict

from bridge.errors import BridgeError
from bridge.tools.contract import Tool, ToolResult


class AgentSettings(BaseModel):
    """Base of an agent's table ``[agents.<name>]``."""

    model_config = ConfigDict(extra="forbid", frozen=True)


class Role(StrEnum):
    USER = "user"
    ASSISTANT = "assistant"
    TOOL = "tool"


class HistoryEntry(BaseModel):
    """One message of a session's history. ``name`` and ``call_id`` belong to a tool's result."""

    model_config = ConfigDict(frozen=True)

    role: Role
    text: str
    name: str = ""
    call_id: str = ""
    files: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class TurnFile:
    """A file the user sent. ``path`` is None where the session may not see paths. ``pixels`` for images."""

    kind: str
    path: Path | None
    name: str
    mime: str
    size: int
    transcript: str = ""
    pixels: tuple[int, int] | None = None


@dataclass(frozen=True, slots=True)
class Turn:
    """``tools`` is empty in a session without tools. ``channel`` is the chat's name for its users, or ""."""

    session_id: str
    prompt: str
    files: tuple[TurnFile, ...]
    history: tuple[HistoryEntry, ...]
    tools: Mapping[str, Tool]
    cwd: Path
    channel: str = ""


@dataclass(frozen=True, slots=True)
class AgentUsage:
    """Tokens, None where nobody reported them. ``steps`` counts model requests."""

    steps: int
    input_tokens: int | None = None
    output_tokens: int | None = None


class AgentError(BridgeError):
    """The turn failed: ``code`` as on the wire (``provider_error`` …), the text safe to show."""

    def __init__(self, code: str, text: str) -> None:
        super().__init__(text)
        self.code = code


class Sink(Protocol):
    async def delta(self, text: str) -> None:
        """More of the current step's text: a preview. Waits while the client does not read."""
        ...

    async def completed(self, text: str) -> None:
        """The whole text of a step, also when empty. Its tool calls come after it."""
        ...


class Gate(Protocol):
    async def call(self, name: str, arguments: Any) -> ToolResult:
        """Run one of the turn's tools: proposed, approved where the policy asks, run, reported.

        An unknown tool, refused arguments and a denial are results with ``success`` false.
        """
        ...


class Agent(Protocol):
    @property
    def model(self) -> str:
        """The name that ``session.started`` reports."""
        ...

    async def run(self, turn: Turn, sink: Sink, gate: Gate) -> AgentUsage:
        """Answer ``turn``. Stopped by cancellation; raises AgentError to fail the turn."""
        ...


@dataclass(frozen=True, slots=True)
class AgentSpec:
    """How an agent registers, in the entry-point group ``turnbridge.agents``."""

    name: str
    settings: type[AgentSettings]
    create: Callable[[Any], Agent]
