"""One turn: the agent runs, and what it says becomes events and history."""

import asyncio

from bridge.agents.contract import AgentError, AgentUsage, HistoryEntry, Role, Turn, TurnFile
from bridge.protocol.events import AssistantCompleted, AssistantDelta
from bridge.sessions.attachments import describe
from bridge.sessions.calls import Calls
from bridge.sessions.scope import TurnScope, whole

STEP_TEXT_BYTES = 1_048_576


class TurnRun:
    """Lets the agent answer; the agent's Sink. ``usage`` is there when it has."""

    def __init__(self, scope: TurnScope) -> None:
        self.scope = scope
        self.usage: AgentUsage | None = None
        self._preview: list[str] = []
        self._preview_bytes = 0

    async def run(self) -> None:
        """Raises AgentError: the turn failed."""
        files = await asyncio.to_thread(self._files)
        self.scope.entries.append(self._question(files))
        agent = self.scope.context.services.agent
        usage = await agent.run(self._turn(files), self, Calls(self.scope))
        if self._preview or self.scope.said is None:  # every step ends with its whole text
            await self.completed("".join(self._preview))
        self.usage = usage

    async def delta(self, text: str) -> None:
        text = whole(text)
        self._preview_bytes += len(text.encode())
        _check_size(self._preview_bytes)
        self._preview.append(text)
        if text:
            await self.scope.send(AssistantDelta, content=text)

    async def completed(self, text: str) -> None:
        text = whole(text)
        _check_size(len(text.encode()))
        self._preview.clear()
        self._preview_bytes = 0
        self.scope.said = await self.scope.send(AssistantCompleted, content=text)
        self.scope.entries.append(HistoryEntry(role=Role.ASSISTANT, text=text))

    def _files(self) -> tuple[TurnFile, ...]:
        with_path = not self.scope.context.settings.no_tools
        return tuple(describe(one, with_path=with_path) for one in self.scope.work.attachments)

    def _question(self, files: tuple[TurnFile, ...]) -> HistoryEntry:
        named = tuple(str(file.path) if file.path else file.name for file in files)
        return HistoryEntry(role=Role.USER, text=self.scope.work.prompt, files=named)

    def _turn(self, files: tuple[TurnFile, ...]) -> Turn:
        context = self.scope.context
        return Turn(
            session_id=context.session_id,
            prompt=self.scope.work.prompt,
            files=files,
            history=context.history.entries,
            tools=context.tools,
            cwd=context.cwd,
            channel=context.settings.channel,
        )


def _check_size(size: int) -> None:
    if size > STEP_TEXT_BYTES:
        raise AgentError("response_limit", f"the answer is over {STEP_TEXT_BYTES} bytes")
