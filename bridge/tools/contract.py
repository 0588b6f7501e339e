"""What a tool is to an agent's session: a name, a schema, a risk, and a run."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass
from enum import StrEnum
from pathlib import Path
from typing import Any, Protocol

from pydantic import BaseModel, ConfigDict, ValidationError

from bridge.clock import Clock
from bridge.errors import BridgeError
from bridge.paths import Home


class Risk(StrEnum):
    """As the wire says it."""

    READ_ONLY = "read_only"
    FILESYSTEM = "filesystem"
    PROCESS = "process"
    DELEGATE = "delegate"
    NETWORK = "network"


@dataclass(frozen=True, slots=True)
class ToolResult:
    """``output`` is for the model, at most what the tool itself cut it to (``truncated``)."""

    success: bool
    output: str
    truncated: bool = False


@dataclass(frozen=True, slots=True)
class Said:
    """A message of a session: of its ``user``, ``assistant`` or ``tool``, or the ``note`` of what is gone.

    ``files`` are where the user's lie.
    """

    by: str
    text: str
    files: tuple[Path, ...] = ()


@dataclass(frozen=True, slots=True)
class CallPlace:
    """Where a call runs: ``cwd`` is the session's workspace; ``progress`` shows a line to whoever watches.

    ``history`` gives what was said in this session and is stored of it, oldest first, this turn's too, but
    for the message that asks for the call.
    """

    cwd: Path
    progress: Callable[[str], Awaitable[None]]
    history: Callable[[], Sequence[Said]] = tuple


class Tool(Protocol):
    @property
    def name(self) -> str: ...
    @property
    def description(self) -> str: ...
    @property
    def risk(self) -> Risk: ...
    @property
    def arguments(self) -> type[BaseModel]:
        """The model that refuses bad arguments; it forbids unknown keys."""
        ...

    def summary(self, arguments: Any) -> str:
        """One line that tells a person what the call would do."""
        ...

    async def run(self, arguments: Any, place: CallPlace) -> ToolResult:
        """Do it. A failure is a result for the model, never an exception. Cancelling stops it."""
        ...


@dataclass(frozen=True, slots=True)
class ToolPlace:
    """What a tool may know of its surroundings."""

    home: Home
    clock: Clock


@dataclass(frozen=True, slots=True)
class ToolSpec:
    """How a third party's tool registers, in the entry-point group ``turnbridge.tools``."""

    name: str
    create: Callable[[ToolPlace], Tool]


class Arguments(BaseModel):
    """Base of a tool's arguments: exact types, no unknown keys."""

    model_config = ConfigDict(extra="forbid", frozen=True, strict=True)


class ArgumentsError(BridgeError):
    """A tool's arguments were refused; the text names the fields and holds no value."""


def read_arguments(model: type[BaseModel], raw: Any) -> BaseModel:
    """``raw`` as ``model`` has it.

    Raises:
        ArgumentsError: it does not fit.
    """
    try:
        return model.model_validate(raw)
    except ValidationError as error:
        found = error.errors(include_url=False, include_context=False, include_input=False)
        said = [f"{'.'.join(map(str, one['loc'])) or 'the arguments'}: {one['msg']}" for one in found[:8]]
        raise ArgumentsError("; ".join(said)) from None  # the cause would show the values
