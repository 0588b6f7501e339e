"""An agent's tool calls: proposed, judged, run and reported, one after the other."""

import asyncio
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from bridge.agents.contract import AgentError, HistoryEntry, OwnCall, Role, ToolCall
from bridge.protocol import ours
from bridge.protocol.events import (
    ToolCompleted,
    ToolProgress,
    ToolProposed,
    ToolStarted,
    TurnEvent,
)
from bridge.protocol.helpers import reply_attachment
from bridge.sessions.approvals import DENIED, Decision, decide
from bridge.sessions.arguments import plain
from bridge.sessions.own_calls import OwnCalls
from bridge.sessions.progress import Progress, one_line
from bridge.sessions.said import said
from bridge.sessions.scope import TurnScope, whole
from bridge.tools.contract import ArgumentsError, CallPlace, Risk, Said, Tool, ToolResult, read_arguments

STEP_CALLS = 32
NO_SUCH_TOOL = "There is no such tool here."


@dataclass(frozen=True, slots=True)
class Call:
    call_id: str
    tool: Tool
    arguments: Any  # as the tool's own model has them


class Calls:
    """The Gate of a turn. Calls made at the same time wait for each other; the agent's own do not."""

    def __init__(self, scope: TurnScope) -> None:
        self._scope = scope
        self._one_by_one = asyncio.Lock()
        self._expected: dict[str, ToolCall] = {}
        self._own = OwnCalls(scope)

    def expect(self, calls: Sequence[ToolCall]) -> tuple[ToolCall, ...]:
        """The calls of a step, as they are made and stored.

        Raises:
            AgentError: ``tool_limit``: none of them may be made.
        """
        if len(calls) > STEP_CALLS:
            raise AgentError("tool_limit", f"the agent asked for over {STEP_CALLS} calls at once")
        asked = tuple(
            ToolCall(name=whole(call.name), arguments=plain(call.arguments), call_id=whole(call.call_id))
            for call in calls
        )
        self._expected = {call.call_id: call for call in asked}
        return asked

    async def call(self, call: ToolCall) -> ToolResult:
        """See ``Gate``; raises AgentError for a call that the last step did not ask for."""
        async with self._one_by_one:
            self._scope.check()
            asked = self._expected.pop(whole(call.call_id), None)
            if asked is None:
                raise AgentError("internal_error", "the agent made a call that its step did not ask for")
            call_id, name, arguments = asked.call_id, asked.name, asked.arguments
            proposed = await self._scope.send(ToolProposed, call_id=call_id, name=name, arguments=arguments)
            result = await self._judge(proposed)
            await self._report(call_id, name, result)
            return result

    async def own(self, call: ToolCall, risk: Risk, summary: str) -> OwnCall:
        """See ``Gate``."""
        return await self._own.propose(call, risk, summary)

    async def finish(self) -> None:
        """Complete what the agent left open; raises nothing of the turn's."""
        await self._own.finish()

    async def _judge(self, proposed: ToolProposed) -> ToolResult:
        """What comes of the call, up to and without its report."""
        call_id, name = proposed.call_id, proposed.name
        tool = self._scope.context.tools.get(name)
        if tool is None:
            return ToolResult(False, NO_SUCH_TOOL)
        try:
            call = Call(call_id, tool, read_arguments(tool.arguments, proposed.arguments))
        except ArgumentsError as error:
            return ToolResult(False, f"The arguments were refused: {error}")
        if not await self._is_approved(call, proposed):
            return ToolResult(False, DENIED)
        self._scope.check()
        await self._scope.send(ToolStarted, call_id=call_id, name=name)
        return await self._run(call)

    async def _is_approved(self, call: Call, proposed: ToolProposed) -> bool:
        context = self._scope.context
        decision = decide(context.settings.policy(context.services.table), call.tool.risk)
        if decision is not Decision.ASK:
            return decision is Decision.ALLOW

        async def announce(approval_id: str) -> Sequence[TurnEvent]:
            requested = await self._scope.send(
                ours.ApprovalRequested,
                approval_id=approval_id,
                call_id=call.call_id,
                name=call.tool.name,
                risk=call.tool.risk.value,
                cwd=str(context.cwd),
                summary=one_line(whole(call.tool.summary(call.arguments))),
            )
            return proposed, requested

        answer = await context.approvals.ask(announce, context.services.table.approval_seconds)
        return answer.approved

    async def _run(self, call: Call) -> ToolResult:
        async def show(text: str) -> None:
            await self._scope.send(ToolProgress, call_id=call.call_id, text=text)

        progress = Progress(self._scope.context.services.clock, show)
        async with asyncio.TaskGroup() as tasks:
            showing = tasks.create_task(progress.run())
            place = CallPlace(self._scope.context.cwd, progress.line, lambda: self._history(call))
            result = await call.tool.run(call.arguments, place)
            self._note_copy(call.tool.name, result)  # before anything can be cancelled
            showing.cancel()
        return ToolResult(result.success, whole(result.output), result.truncated)

    def _history(self, call: Call) -> list[Said]:
        """All that was said, but for the message that asks for the ``call``."""
        entries = (*self._scope.context.history.entries, *self._scope.entries)
        return [said(one) for one in entries if call.call_id not in {made.call_id for made in one.calls}]

    async def _report(self, call_id: str, name: str, result: ToolResult) -> None:
        report = await self._scope.send(
            ToolCompleted,
            call_id=call_id,
            name=name,
            success=result.success,
            output=result.output,
            truncated=result.truncated,
        )
        self._scope.add(HistoryEntry(role=Role.TOOL, text=result.output, name=name, call_id=call_id))
        if reply_attachment(name, result.success, result.output):
            self._scope.attached.append(report)

    def _note_copy(self, name: str, result: ToolResult) -> None:
        attachment = reply_attachment(name, result.success, result.output)
        if attachment is not None:
            self._scope.copies.append(attachment.path)
