"""One of our sessions with the agent: the process and session that it has there, from turn to turn."""

import asyncio
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from bridge.agents.acp.prompting import Prompting
from bridge.agents.acp.session import Session
from bridge.agents.contract import ToolCall
from bridge.tools.contract import Tool, ToolResult


@dataclass(slots=True)
class Seat:
    """``live`` is the open session, ``prompting`` its turn, ``settling`` waits for one that was cancelled.

    ``tools`` are those of its newest turn, ``secret`` and ``server`` the way to them. ``starting`` holds off
    a second start.
    """

    secret: str = ""
    server: dict[str, Any] = field(default_factory=dict)
    tools: Mapping[str, Tool] = field(default_factory=dict)
    live: Session | None = None
    prompting: Prompting | None = None
    settling: asyncio.Task[None] | None = None
    starting: asyncio.Lock = field(default_factory=asyncio.Lock)

    async def call(self, call: ToolCall) -> ToolResult:
        """See ``Uses``."""
        if self.prompting is None:
            return ToolResult(False, "No turn runs, so there is nobody to do this for.")
        return await self.prompting.tool(call)

    async def settled(self) -> None:
        """Wait until a prompt that was cancelled has ended, or its process has."""
        if self.settling is not None:
            await asyncio.wait([self.settling])
            self.settling = None

    def opened(self) -> Session | None:
        """The open session, while its process lives."""
        if self.live is not None and (not self.live.peer.alive or self.live.peer.retired):
            self.live = None
        return self.live

    def drop(self) -> Session | None:
        """Forget the open session, whose process goes on for others, or is ended by whoever drops it."""
        live, self.live = self.live, None
        if live is not None:
            live.peer.sessions.pop(live.session_id, None)
        return live
