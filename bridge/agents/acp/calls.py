"""The tool calls that an agent tells of, as calls of its own at the gate.

A call is proposed once it is asked about, has some output, or has ended: before that agents still fill in
what it is, and some say that it runs before they ask. One that runs on is proposed by ``start_due``.
"""

import json
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

from acp.schema import (
    ContentToolCallContent,
    FileEditToolCallContent,
    PermissionOption,
    TextContentBlock,
    ToolCallProgress,
    ToolCallStart,
    ToolCallUpdate,
)

from bridge.agents.contract import AgentError, Gate, Option, OwnCall, ToolCall
from bridge.protocol import json_rules
from bridge.protocol.errors import ProtocolError
from bridge.tools.contract import Risk, ToolResult

Told = ToolCallStart | ToolCallProgress | ToolCallUpdate

MOST_TOLD = 2000  # of one turn
OUTPUT_BYTES = 16_384
ARGUMENT_BYTES = 65_536
TEXT_CHARACTERS = 4000
TITLE_CHARACTERS = 300
_FIELDS = ("title", "kind", "content", "locations", "raw_input", "raw_output")
_RISKS = {"fetch": Risk.NETWORK, "execute": Risk.PROCESS, "other": Risk.PROCESS}
ENDED = ("completed", "failed")


@dataclass(slots=True)
class Made:
    """A call as it is known so far; ``own`` once it is proposed, ``ended`` for good."""

    told: dict[str, Any] = field(default_factory=dict)
    own: OwnCall | None = None
    asked: bool = False
    runs: bool = False
    denied: bool = False
    ended: bool = False
    shown: str = ""

    def take(self, update: Told) -> None:
        """News replace what was told before; what they leave out stays."""
        self.told |= {name: value for name in _FIELDS if (value := getattr(update, name)) is not None}


class Calls:
    """Those of one turn, by the agent's ids."""

    def __init__(self, gate: Gate) -> None:
        self._gate = gate
        self._made: dict[str, Made] = {}

    @property
    def running(self) -> bool:
        """Whether one runs, so that silence means nothing."""
        return any(made.runs and not made.ended for made in self._made.values())

    @property
    def due(self) -> bool:
        """Whether one runs that nobody was told of."""
        return any(made.runs and made.own is None for made in self._made.values())

    async def start_due(self) -> None:
        for made in self._made.values():
            if made.runs and made.own is None:
                await self._show(made)

    def knows(self, call_id: str) -> bool:
        return call_id in self._made

    async def tell(self, update: Told) -> None:
        """Take in news of a call."""
        made = self._of(update.tool_call_id)
        if made.ended:
            return
        made.take(update)
        if update.status == "in_progress" and not made.denied:
            made.runs = True
            if made.own is not None or _output(made.told):
                await self._show(made)
        if update.status in ENDED:
            await self._end(made, update.status == "completed")

    def _of(self, call_id: str) -> Made:
        """Raises AgentError: ``tool_limit``: there are too many, also of such as came to nothing."""
        if call_id not in self._made and len(self._made) >= MOST_TOLD:
            raise AgentError("tool_limit", f"the agent told of over {MOST_TOLD} calls in one turn")
        return self._made.setdefault(call_id, Made())

    async def _show(self, made: Made) -> None:
        own = await self._proposed(made)
        await own.started()
        output = _output(made.told)
        if output != made.shown:
            fresh = output[len(made.shown) :] if output.startswith(made.shown) else output
            made.shown = output
            await own.progress(fresh)

    async def _end(self, made: Made, success: bool) -> None:
        own = await self._proposed(made)
        made.ended = True
        await own.completed(_result(success, _output(made.told)))

    async def ask(self, call: ToolCallUpdate, options: Sequence[PermissionOption]) -> str | None:
        """The id of the option that was chosen for a call, which may be none that was told of before.

        A call that was asked about, or runs, is asked about as another one.
        """
        made = self._of(call.tool_call_id)
        made.take(call)
        if made.asked or made.own is not None:
            return await self._ask_aside(made, options)
        made.asked = True
        own = await self._proposed(made)
        chosen = await own.ask(offered(options))
        if chosen is None or not chosen.allows:
            made.denied = True
        elif not made.ended:
            made.runs = True
            await own.started()
        return chosen.option_id if chosen else None

    async def _ask_aside(self, made: Made, options: Sequence[PermissionOption]) -> str | None:
        own = await self._propose(made.told)
        chosen = await own.ask(offered(options))
        allowed = chosen is not None and chosen.allows
        await own.completed(ToolResult(allowed, "Allowed." if allowed else "Denied."))
        return chosen.option_id if chosen else None

    async def _proposed(self, made: Made) -> OwnCall:
        if made.own is None:
            made.own = await self._propose(made.told)
        return made.own

    async def _propose(self, told: dict[str, Any]) -> OwnCall:
        kind, title = told.get("kind") or "other", _title(told)
        call = ToolCall(name=_name(kind, title), arguments=_arguments(told))
        # What an agent asks about is more than it may do unasked, also when it only reads.
        return await self._gate.own(call, _RISKS.get(kind, Risk.FILESYSTEM), title)


def offered(options: Sequence[PermissionOption]) -> list[Option]:
    """A lasting permission is none of ours to give: it is there where no other answer is of its kind."""
    kinds = {one.kind for one in options}
    return [
        Option(one.option_id, one.name, one.kind.startswith("allow"))
        for one in options
        if not one.kind.endswith("_always") or one.kind.replace("_always", "_once") not in kinds
    ]


def _title(told: dict[str, Any]) -> str:
    return " ".join(str(told.get("title") or "").split())[:TITLE_CHARACTERS]


def _name(kind: str, title: str) -> str:
    """What kind of call it is; of a kind that says nothing, how the agent calls it."""
    return title if kind == "other" and title else kind


def _arguments(told: dict[str, Any]) -> dict[str, Any]:
    """What a person has to know to say yes."""
    known = {
        "title": _title(told),
        "input": told.get("raw_input"),
        "files": [one.path for one in told.get("locations") or ()],
        "changes": [] if told.get("raw_input") else _changes(told),
    }
    arguments = {key: value for key, value in known.items() if value}
    text = _json(arguments)
    if _fits(text):
        return arguments
    return {"title": _title(told), "cut": text[:TEXT_CHARACTERS]}


def _fits(text: str) -> bool:
    """Whether the gate takes it: else the call is told as far as it can be, and the turn goes on."""
    data = text.encode(errors="replace")
    try:
        return len(data) <= ARGUMENT_BYTES and json_rules.parse(b"[" + data + b"]") is not None
    except ProtocolError:
        return False


def _json(value: Any) -> str:
    try:
        return json.dumps(value, ensure_ascii=False, default=str)
    except RecursionError:
        return "…"


def _changes(told: dict[str, Any]) -> list[dict[str, str]]:
    return [
        {"path": one.path, "new": one.new_text[:TEXT_CHARACTERS]}
        for one in told.get("content") or ()
        if isinstance(one, FileEditToolCallContent)
    ]


def _output(told: dict[str, Any]) -> str:
    """Its text so far; where it has none, what it was given back raw."""
    texts = [text for one in told.get("content") or () if (text := _text(one))]
    raw = told.get("raw_output")
    if texts or raw is None:
        return "\n".join(texts)
    return raw if isinstance(raw, str) else _json(raw)


def _text(content: Any) -> str:
    if isinstance(content, FileEditToolCallContent):
        return f"changed {content.path}"
    if isinstance(content, ContentToolCallContent) and isinstance(content.content, TextContentBlock):
        return str(content.content.text)
    return ""


def _result(success: bool, output: str) -> ToolResult:
    data = output.encode(errors="replace")
    if len(data) <= OUTPUT_BYTES:
        return ToolResult(success, output)
    return ToolResult(success, data[:OUTPUT_BYTES].decode(errors="ignore"), truncated=True)
