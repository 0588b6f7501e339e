"""One turn: the agent runs, and what it says becomes events and history."""

import asyncio
from collections.abc import Sequence

from bridge.agents.contract import Agent, AgentError, AgentUsage, HistoryEntry, Role, ToolCall, TurnFile
from bridge.errors import StoreError
from bridge.protocol.events import AssistantCompleted, AssistantDelta, ContextCompacted
from bridge.sessions.attachments import describe
from bridge.sessions.budget import budget, select
from bridge.sessions.calls import Calls
from bridge.sessions.errors import RequestError
from bridge.sessions.scope import TurnScope, whole

STEP_TEXT_BYTES = 1_048_576
MEMORY_BYTES = 4096


class TurnRun:
    """Lets the agent answer; the agent's Sink. ``usage`` is there when it has, ``so_far`` as it told."""

    def __init__(self, scope: TurnScope) -> None:
        self.scope = scope
        self.usage: AgentUsage | None = None
        self.so_far = AgentUsage(0)
        self._calls = Calls(scope)
        self._steps = 0
        self._preview: list[str] = []
        self._preview_bytes = 0

    async def run(self) -> None:
        """Raises AgentError: the turn failed."""
        files = await asyncio.to_thread(self._files)
        self.scope.add(HistoryEntry(role=Role.USER, text=self.scope.work.prompt, files=files))
        agent, context = await self._agent(), self.scope.context
        context.take_tools()
        turn = context.turn(self.scope.work.prompt, files)
        try:
            usage = await agent.run(turn, self, self._calls)
        finally:
            await self._calls.finish()
        if self._preview or self.scope.said is None:  # every step ends with its whole text
            await self.completed("".join(self._preview))
        self.usage = usage

    async def begin(self, system: str = "", room_tokens: int = 0) -> tuple[HistoryEntry, ...]:
        self.scope.check()
        context, turn = self.scope.context, self.scope.entries
        self._steps += 1
        steps = context.services.table.max_steps
        if self._steps > steps:
            raise AgentError(
                "step_limit", f"the turn took {steps} steps and was not done: ask for less at once"
            )
        async for text in self.scope.steering.taken():
            self.scope.add(HistoryEntry(role=Role.USER, text=text))
        most = context.services.table.context_max_tokens
        room = budget(most, system, context.tools.values(), room_tokens)
        sizes = [*context.history.tokens, *self.scope.tokens]
        chosen = select([*context.history.entries, *turn], sizes, room, len(turn))
        if chosen.removed:
            await self.scope.send(
                ContextCompacted,
                before_tokens=chosen.before_tokens,
                after_tokens=chosen.after_tokens,
                removed_messages=chosen.removed,
            )
        return chosen.entries

    async def delta(self, text: str) -> None:
        text = whole(text)
        self._preview_bytes += len(text.encode())
        _check_size(self._preview_bytes)
        self._preview.append(text)
        if text:
            await self.scope.send(AssistantDelta, content=text)

    async def completed(self, text: str, calls: Sequence[ToolCall] = ()) -> None:
        text = whole(text)
        _check_size(len(text.encode()))
        self._preview.clear()
        self._preview_bytes = 0
        self.scope.said = await self.scope.send(AssistantCompleted, content=text)
        asked = self._calls.expect(calls)
        self.scope.add(HistoryEntry(role=Role.ASSISTANT, text=text, calls=asked))

    async def keep(self, memory: str) -> None:
        memory, context = whole(memory), self.scope.context
        if len(memory.encode()) > MEMORY_BYTES:
            raise AgentError("internal_error", f"the agent wants to remember over {MEMORY_BYTES} bytes")
        if self.scope.closed:
            raise AgentError("internal_error", "the turn is over")
        try:
            await context.keep(context.agent_name, memory)
        except StoreError as error:
            raise AgentError("internal_error", "it could not be stored: look at the disk") from error

    def used(self, usage: AgentUsage) -> None:
        self.so_far = usage

    async def _agent(self) -> Agent:
        context = self.scope.context
        try:
            return await context.services.agents.started(context.settings.agent, context.settings.no_tools)
        except RequestError as error:  # since it was chosen, the settings have changed
            raise AgentError("provider_error", str(error)) from error

    def _files(self) -> tuple[TurnFile, ...]:
        with_path = not self.scope.context.settings.no_tools
        return tuple(describe(one, with_path=with_path) for one in self.scope.work.attachments)


def _check_size(size: int) -> None:
    if size > STEP_TEXT_BYTES:
        raise AgentError("response_limit", f"the answer is over {STEP_TEXT_BYTES} bytes")
