"""What answers a turn. An agent sees a prompt, files, history and tools; never a channel or a socket."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum
from pathlib import Path
from typing import Any, Protocol

from pydantic import BaseModel, ConfigDict, Field, field_validator

from bridge.errors import BridgeError
from bridge.ids import new_uuid
from bridge.tools.contract import Tool, ToolResult


class AgentSettings(BaseModel):
    """Base of an agent's table ``[agents.<name>]``."""

    model_config = ConfigDict(extra="forbid", frozen=True)


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


class ToolCall(BaseModel):
    """A call that a step asks for. ``arguments`` are any JSON; the tool's own model judges them."""

    model_config = ConfigDict(frozen=True)

    name: str
    arguments: Any
    call_id: str = Field(default_factory=new_uuid)


class Role(StrEnum):
    USER = "user"
    ASSISTANT = "assistant"
    TOOL = "tool"
    NOTE = "note"


class HistoryEntry(BaseModel):
    """One message of a session's history.

    ``files`` belong to the user's; ``calls`` to the assistant's; ``name`` and ``call_id`` to a tool's result,
    which follows the message that asked for it. A note stands for ``covers`` older messages, left out.
    """

    model_config = ConfigDict(frozen=True)

    role: Role
    text: str
    name: str = ""
    call_id: str = ""
    files: tuple[TurnFile, ...] = ()
    calls: tuple[ToolCall, ...] = ()
    covers: int = 0

    @field_validator("files", mode="before")
    @classmethod
    def _files(cls, files: Sequence[Any]) -> list[Any]:
        """Histories of the first version hold a file's place or name alone."""
        return [TurnFile("file", None, one, "", 0) if isinstance(one, str) else one for one in files]


@dataclass(frozen=True, slots=True)
class Turn:
    """``tools`` is empty in a session without tools. ``channel`` is the chat's name for its users, or ""."""

    session_id: str
    prompt: str
    files: tuple[TurnFile, ...]
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
    async def begin(self, system: str = "") -> tuple[HistoryEntry, ...]:
        """Begin a step: the messages that fit the context beside ``system`` and the tools, oldest first.

        The turn's own are among them: its question always, and its steps so far. What does not fit gives way
        to a note at the beginning. An agent that keeps its own context need not ask.

        Raises:
            AgentError: ``context_limit``, or ``step_limit``: the turn has had all its steps.
        """
        ...

    async def delta(self, text: str) -> None:
        """More of the current step's text: a preview. Waits while the client does not read."""
        ...

    async def completed(self, text: str, calls: Sequence[ToolCall] = ()) -> None:
        """The whole text of a step, also when empty, and all calls that it asks for, each to be made next.

        Raises:
            AgentError: ``response_limit`` or ``tool_limit``; no call may be made then.
        """
        ...


class Gate(Protocol):
    async def call(self, call: ToolCall) -> ToolResult:
        """Make a call that the last step asked for: proposed, approved where the policy asks, run, reported.

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
