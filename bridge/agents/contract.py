"""What answers a turn. An agent sees a prompt, files, history and tools; never a channel or a socket."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from contextlib import AbstractAsyncContextManager
from dataclasses import dataclass, field
from enum import StrEnum
from pathlib import Path
from typing import Any, Protocol, runtime_checkable

from pydantic import BaseModel, ConfigDict, Field, field_validator

from bridge.clock import Clock
from bridge.errors import BridgeError
from bridge.ids import new_uuid
from bridge.paths import Home
from bridge.tools.contract import Risk, Tool, ToolResult


class AgentSettings(BaseModel):
    """Base of an agent's table ``[agents.<name>]``; its key ``type`` is read before, and not part of it."""

    model_config = ConfigDict(extra="forbid", frozen=True)


@dataclass(frozen=True, slots=True)
class TurnFile:
    """A file the user sent. ``path`` is None where the session may not see paths. ``pixels`` for images.

    ``picture`` is where an image's bytes are, in every session, for a model that takes images: no model is
    ever told this path.
    """

    kind: str
    path: Path | None
    name: str
    mime: str
    size: int
    transcript: str = ""
    pixels: tuple[int, int] | None = None
    picture: Path | None = None


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
class Choice:
    """What somebody chose for a session; "" is the agent's own default. Names are the agent's own."""

    model: str = ""
    mode: str = ""


@dataclass(frozen=True, slots=True)
class Turn:
    """``tools`` is empty in a session without tools. ``channel`` is the chat's name for its users, or "".

    ``memory`` is what the agent kept of this session with ``Sink.keep``, "" for nothing: it is gone once the
    session is cleared, and another agent never sees it.
    """

    session_id: str
    prompt: str
    files: tuple[TurnFile, ...]
    tools: Mapping[str, Tool]
    cwd: Path
    channel: str = ""
    choice: Choice = Choice()
    memory: str = ""


@dataclass(frozen=True, slots=True)
class AgentUsage:
    """Tokens, None where nobody reported them. ``steps`` counts model requests.

    ``cost_micros`` is what the turn cost in millionths of a US dollar, None where no price is known.
    """

    steps: int
    input_tokens: int | None = None
    output_tokens: int | None = None
    cost_micros: int | None = None


class AgentError(BridgeError):
    """The turn failed: ``code`` as on the wire (``provider_error`` …), the text safe to show."""

    def __init__(self, code: str, text: str) -> None:
        super().__init__(text)
        self.code = code


class Sink(Protocol):
    async def begin(self, system: str = "", room_tokens: int = 0) -> tuple[HistoryEntry, ...]:
        """Begin a step: the messages that fit the context beside ``system`` and the tools, oldest first.

        ``room_tokens`` is what the agent's model takes of all that, where it is less than the session's
        context; 0: it is not. The turn's own are among them: what its user says and its newest step always,
        with the results of calls cut where they are more than fits, and its other steps so far. What does
        not fit gives way to a note at the beginning. An agent that keeps its own context need not ask.

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

    async def keep(self, memory: str) -> None:
        """Remember ``memory``, at most 4 KiB, for the session's next turns, also over restarts.

        It counts from now on, however this turn ends.
        """
        ...

    def used(self, usage: AgentUsage) -> None:
        """What the turn has used so far, all of it: so much counts, should it fail or be cancelled."""
        ...


@dataclass(frozen=True, slots=True)
class Option:
    """One of the answers to a request for permission: ``label`` is what a person reads."""

    option_id: str
    label: str
    allows: bool


class OwnCall(Protocol):
    """A call that the agent makes by itself, as it goes on. Each is completed, whatever comes of it."""

    async def ask(self, options: Sequence[Option]) -> Option | None:
        """The option that was chosen, by a person or by the session's policy; None: denied without one.

        A policy chooses the first that allows, or the first that does not.
        """
        ...

    async def started(self) -> None:
        """It runs now. Never told of a call that was denied."""
        ...

    async def progress(self, text: str) -> None:
        """Lines of its output so far, for whoever watches."""
        ...

    async def completed(self, result: ToolResult) -> None:
        """How it ended; it enters the history with its call. An own ``chat_attach`` attaches nothing."""
        ...


class Gate(Protocol):
    async def call(self, call: ToolCall) -> ToolResult:
        """Make a call that the last step asked for: proposed, approved where the policy asks, run, reported.

        An unknown tool, refused arguments and a denial are results with ``success`` false.
        """
        ...

    async def own(self, call: ToolCall, risk: Risk, summary: str) -> OwnCall:
        """Propose a call that the agent makes by itself; several may go on at once.

        Raises:
            AgentError: ``tool_limit``: there are too many in this turn, or its arguments are too large.
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


@runtime_checkable
class Runs(Protocol):
    """An agent that has something to start and to end: processes, connections."""

    def running(self) -> AbstractAsyncContextManager[None]:
        """Entered once, before the first turn; left when the daemon ends, at last within 3 s."""
        ...


@runtime_checkable
class Leaves(Protocol):
    """An agent that holds something for each session."""

    async def leave(self, session_id: str) -> None:
        """Let go of what it holds for the session, such as a process. The session may come back.

        Nobody is connected to it any more, or it was cleared, or goes on in another folder or with another
        agent.
        """
        ...


@dataclass(frozen=True, slots=True)
class Choices:
    """What can be chosen: names, in the agent's order, each with what a person reads; empty: nothing can."""

    models: Mapping[str, str] = field(default_factory=dict)
    modes: Mapping[str, str] = field(default_factory=dict)


@runtime_checkable
class Chooses(Protocol):
    """An agent that offers models or modes."""

    async def choices(self, turn: Turn) -> Choices:
        """What there is for the session of ``turn`` (its prompt is blank); it may start what tells.

        Raises:
            AgentError: it cannot be told now.
        """
        ...


@runtime_checkable
class Bounded(Protocol):
    """An agent whose steps are begun with a system prompt, in the room that its model has."""

    async def bounds(self, turn: Turn) -> tuple[str, int]:
        """``system`` and ``room_tokens``, as ``Sink.begin`` is given them in ``turn``."""
        ...


@runtime_checkable
class Compacts(Protocol):
    """An agent that can sum up a history, or its own context of a session."""

    async def compact(self, turn: Turn, history: Sequence[HistoryEntry]) -> str:
        """What stands for ``history`` from now on. Raises AgentError: nothing is changed then."""
        ...


@dataclass(frozen=True, slots=True)
class Finding:
    """What a check found: ``text`` in one sentence, and ``cure``, "" where all is well."""

    text: str
    cure: str = ""


@runtime_checkable
class Diagnoses(Protocol):
    async def diagnose(self) -> Sequence[Finding]:
        """Check the key, the endpoint, the program, the sign-in: within 20 s, and without spending."""
        ...


@dataclass(frozen=True, slots=True)
class AgentPlace:
    """What an agent may know of its surroundings. ``name`` is that of its table ``[agents.<name>]``.

    ``mcp`` gives the configured servers of tools, secrets filled in, as a ``session/new`` of the Agent Client
    Protocol has them, for agents that reach them by themselves.
    """

    name: str
    home: Home
    clock: Clock
    mcp: Callable[[], list[dict[str, Any]]] = list


@dataclass(frozen=True, slots=True)
class AgentSpec:
    """How an agent registers, in the entry-point group ``turnbridge.agents``.

    ``own_tools``: it reaches files and programs by itself, so it only ever answers sessions with tools.
    ``lacks`` says what must be installed before one can be made, "" where all is there; it imports nothing.
    """

    name: str
    settings: type[AgentSettings]
    create: Callable[[Any, AgentPlace], Agent]
    own_tools: bool = False
    lacks: Callable[[], str] = str
