"""The calls that an agent makes by itself: told as they go on, asked about, and each completed once."""

from collections.abc import Sequence
from contextlib import suppress
from enum import Enum

from bridge.agents.contract import AgentError, HistoryEntry, Option, Role, ToolCall
from bridge.logs import get_logger
from bridge.protocol import ours
from bridge.protocol.events import ToolCompleted, ToolProgress, ToolProposed, ToolStarted, TurnEvent
from bridge.protocol.helpers import CHAT_ATTACH
from bridge.sessions.approvals import Answer, Decision, decide, first
from bridge.sessions.arguments import plain
from bridge.sessions.progress import KEPT_LINES, PACE_SECONDS, join, one_line
from bridge.sessions.scope import TurnScope, whole
from bridge.tools.contract import Risk, ToolResult

log = get_logger(__name__)

MOST_CALLS = 1000  # of one turn
MOST_OPTIONS = 16
UNFINISHED = ToolResult(False, "The turn ended before this was done.")


class _Stage(Enum):
    PROPOSED = "proposed"
    ALLOWED = "allowed"
    DENIED = "denied"
    STARTED = "started"
    COMPLETED = "completed"


_WAITS = (_Stage.PROPOSED, _Stage.ALLOWED)


class OwnCalls:
    """Those of one turn."""

    def __init__(self, scope: TurnScope) -> None:
        self._scope = scope
        self._calls: list[_OwnCall] = []

    async def propose(self, call: ToolCall, risk: Risk, summary: str) -> "_OwnCall":
        """See ``Gate.own``."""
        self._scope.check()
        if len(self._calls) == MOST_CALLS:
            raise AgentError("tool_limit", f"the agent made {MOST_CALLS} calls of its own and was not done")
        asked = ToolCall(name=_name(call.name), arguments=plain(call.arguments), call_id=whole(call.call_id))
        proposed = await self._scope.send(
            ToolProposed, call_id=asked.call_id, name=asked.name, arguments=asked.arguments
        )
        own = _OwnCall(self._scope, asked, proposed, risk, one_line(whole(summary)))
        self._calls.append(own)
        return own

    async def finish(self) -> None:
        """Complete those that the agent left open: it has ended, or was stopped."""
        with suppress(AgentError):  # the turn is over, or too large: that is told already
            for call in self._calls:
                await call.completed(UNFINISHED)


class _OwnCall:
    """See ``OwnCall``. What comes out of order is not told, so that clients see each call as any other."""

    def __init__(
        self, scope: TurnScope, call: ToolCall, proposed: ToolProposed, risk: Risk, summary: str
    ) -> None:
        self._scope, self._call, self._proposed = scope, call, proposed
        self._risk, self._summary = risk, summary
        self._stage = _Stage.PROPOSED
        self._lines: list[str] = []
        self._next = 0.0  # when lines may be shown again, by the monotonic clock

    async def ask(self, options: Sequence[Option]) -> Option | None:
        """As ``OwnCall.ask``.

        Raises:
            AgentError: it was asked about already, or runs.
        """
        if self._stage is not _Stage.PROPOSED:
            raise AgentError("internal_error", "the agent asked twice about a call, or about one that runs")
        answer = await self._answer([_shown(one) for one in options[:MOST_OPTIONS]])
        self._scope.check()
        allowed = answer.option is not None and answer.option.allows
        self._stage = _Stage.ALLOWED if allowed else _Stage.DENIED
        return answer.option

    async def _answer(self, options: Sequence[Option]) -> Answer:
        context = self._scope.context
        decision = decide(context.settings.policy(context.services.table), self._risk)
        if decision is not Decision.ASK:
            return first(options, decision is Decision.ALLOW)

        async def announce(approval_id: str) -> Sequence[TurnEvent]:
            return self._proposed, await self._request(approval_id, options)

        return await context.approvals.ask(announce, context.services.table.approval_seconds, options)

    async def _request(self, approval_id: str, options: Sequence[Option]) -> TurnEvent:
        return await self._scope.send(
            ours.ApprovalRequested,
            approval_id=approval_id,
            call_id=self._call.call_id,
            name=self._call.name,
            risk=self._risk.value,
            cwd=str(self._scope.context.cwd),
            summary=self._summary,
            options=tuple(
                ours.ApprovalOption(id=one.option_id, label=one.label, allows=one.allows) for one in options
            ),
        )

    async def started(self) -> None:
        if self._stage in _WAITS:
            self._stage = _Stage.STARTED
            await self._scope.send(ToolStarted, call_id=self._call.call_id, name=self._call.name)

    async def progress(self, text: str) -> None:
        """Lines that come too fast are shown with the next ones."""
        if self._stage is not _Stage.STARTED:
            return
        self._lines += map(one_line, text.splitlines()[-KEPT_LINES:])
        del self._lines[:-KEPT_LINES]
        now = self._scope.context.services.clock.monotonic()
        if self._lines and now >= self._next:
            self._next = now + PACE_SECONDS
            lines, self._lines = self._lines, []
            await self._scope.send(ToolProgress, call_id=self._call.call_id, text=join(lines))

    async def completed(self, result: ToolResult) -> None:
        if self._stage is _Stage.COMPLETED:
            return
        if result.success:
            await self.started()
        success = result.success and self._stage is not _Stage.DENIED
        if success is not result.success:
            log.warning("call.made_although_denied", session=self._scope.context.session_id)
        self._stage = _Stage.COMPLETED
        call, output = self._call, whole(result.output)
        await self._scope.send(
            ToolCompleted,
            call_id=call.call_id,
            name=call.name,
            success=success,
            output=output,
            truncated=result.truncated,
        )
        self._scope.add(HistoryEntry(role=Role.ASSISTANT, text="", calls=(call,)))
        self._scope.add(HistoryEntry(role=Role.TOOL, text=output, name=call.name, call_id=call.call_id))


def _name(name: str) -> str:
    """Never that of the tool whose results are files of the reply, and which nobody is asked about."""
    shown = one_line(whole(name)).strip() or "tool"
    return f"own {shown}" if shown == CHAT_ATTACH else shown


def _shown(option: Option) -> Option:
    return Option(option.option_id, one_line(whole(option.label)), option.allows)
