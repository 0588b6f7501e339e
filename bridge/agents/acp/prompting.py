"""One prompt in a session: what the agent says and does becomes steps and calls, until it has answered."""

import asyncio
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from typing import Any

from acp.schema import (
    AgentMessageChunk,
    AgentPlanUpdate,
    PromptResponse,
    RequestPermissionRequest,
    ResourceContentBlock,
    TextContentBlock,
    ToolCallProgress,
    ToolCallStart,
)

from bridge.agents.acp.calls import ENDED, Calls
from bridge.agents.acp.errors import LostError
from bridge.agents.acp.waiting import Room, size
from bridge.agents.contract import AgentError, Gate, OwnCall, Sink, ToolCall
from bridge.tools.contract import Risk, ToolResult

MOST_ASKED = 8
"""Questions at the gate at once: each is a message to the owner. Others wait for an answer to one of them."""

DUE_SECONDS = 0.5
"""How long a call runs before it is told, as it may still be asked about."""

_MARKS = {"pending": "○", "in_progress": "◐", "completed": "●"}


@dataclass(slots=True)
class _Question:
    request: RequestPermissionRequest
    answer: asyncio.Future[str | None] = field(default_factory=asyncio.Future, repr=False)


@dataclass(slots=True)
class _Tool:
    call: ToolCall
    answer: asyncio.Future[ToolResult] = field(default_factory=asyncio.Future, repr=False)


@dataclass(slots=True)
class _Open:
    """A question that is asked, and what was told of its call meanwhile."""

    question: _Question
    task: asyncio.Task[None]
    news: list[Any] = field(default_factory=list)


@dataclass(frozen=True, slots=True)
class _Told:
    """By the program, and counted with its size while it waits."""

    news: Any
    size: int


@dataclass(frozen=True, slots=True)
class _Answered:
    call_id: str


@dataclass(frozen=True, slots=True)
class _Over:
    """The prompt has its answer, or something ended it."""

    outcome: PromptResponse | BaseException


class Prompting:
    """Takes in news at any time; ``run`` works them off in order.

    ``said`` is the last whole text, ``steps`` how many steps there were, ``heard_of`` whether any news came.
    """

    def __init__(self, title: str, sink: Sink, gate: Gate, silent_seconds: float) -> None:
        self.said, self.steps = "", 0
        self.heard_of = False
        self._title, self._sink, self._gate = title, sink, gate
        self._silent_seconds = silent_seconds
        self._calls = Calls(gate)
        self._news: asyncio.Queue[Any] = asyncio.Queue()
        self._queued, self._held = Room(), Room()
        self._text: list[str] = []
        self._plan: OwnCall | None = None
        self._planned = ""
        self._asking: dict[str, _Open] = {}  # by their calls, whose news wait
        self._few = asyncio.Semaphore(MOST_ASKED)
        self._tool: asyncio.Task[None] | None = None
        self._tools: list[_Tool] = []
        self._closed = False

    def update(self, update: Any) -> None:
        """News of the session; what comes after the end is dropped."""
        self._put(update)

    async def permission(self, request: RequestPermissionRequest) -> str | None:
        question = _Question(request)
        self._put(question)
        return await question.answer

    async def tool(self, call: ToolCall) -> ToolResult:
        """Make a call of one of our own tools, in its order."""
        tool = _Tool(call)
        self._put(tool)
        return await tool.answer

    def over(self, outcome: PromptResponse | BaseException) -> None:
        """The prompt has been answered, or cannot be any more. Only the first time counts."""
        self._news.put_nowait(_Over(outcome))

    def _put(self, news: Any) -> None:
        if self._closed:
            _turn_down(news)
            return
        self.heard_of = True
        if self._queued.take(told := size(news)):
            self._news.put_nowait(_Told(news, told))
        else:
            self.over(_too_much())
            _turn_down(news)

    async def run(self) -> PromptResponse:
        """Until it is over.

        Raises:
            AgentError: that is how it ended; LostError: also since nothing was heard for too long.
        """
        try:
            async with asyncio.TaskGroup() as tasks:
                return await self._work_off(tasks)
        except BaseExceptionGroup as group:
            raise _leaf(group) from group
        finally:
            self.close()

    def close(self) -> None:
        """Nothing is answered any more but with the turn's end."""
        self._closed = True
        left = [news for one in self._asking.values() for news in one.news]
        while not self._news.empty():
            one = self._news.get_nowait()
            left.append(one.news if isinstance(one, _Told) else one)
        for news in [*left, *self._tools]:
            _turn_down(news)

    async def _work_off(self, tasks: asyncio.TaskGroup) -> PromptResponse:
        while not isinstance(news := await self._next(), _Over):
            await self._take(news, tasks)
        if isinstance(news.outcome, BaseException):
            raise news.outcome
        for asked in self._asking.values():  # nobody waits for an answer any more
            asked.task.cancel()
        return news.outcome

    async def _next(self) -> Any:
        if self._calls.due:
            with suppress(TimeoutError):
                async with asyncio.timeout(DUE_SECONDS):
                    return await self._news.get()
            await self._calls.start_due()
        busy = self._asking or self._tool is not None or self._calls.running
        try:
            async with asyncio.timeout(None if busy else self._silent_seconds):
                return await self._news.get()
        except TimeoutError:
            raise LostError(f"{self._title} was silent for {self._silent_seconds:g} s") from None

    async def _take(self, news: Any, tasks: asyncio.TaskGroup) -> None:
        match news:
            case AgentMessageChunk():
                await self._say(_shown(news.content))
            case ToolCallStart() | ToolCallProgress():
                await self._tell(news)
            case AgentPlanUpdate():
                await self._show_plan(news)
            case _Question():
                await self._put_question(news, tasks)
            case _Told():
                self._queued.leave(news.size)
                await self._take(news.news, tasks)
            case _Answered():
                asked = self._asking.pop(news.call_id)
                self._held.leave(size(asked.question))
                for waiting in asked.news:
                    self._held.leave(size(waiting))
                    await self._take(waiting, tasks)
            case _Tool():
                self._tools.append(news)
                await self._make_next(tasks)
            case asyncio.Task():
                self._tool = None
                await self._make_next(tasks)

    async def _say(self, text: str) -> None:
        if text:
            self._text.append(text)
            await self._sink.delta(text)

    async def _flush(self, calls: Sequence[ToolCall] = ()) -> None:
        """End the step, where it has said anything or asks for calls."""
        text = "".join(self._text)
        self._text.clear()
        if text or calls:
            self.steps += 1
            await self._sink.completed(text, calls)
        if text and not calls:
            self.said = text

    async def finish(self, note: str) -> None:
        """End the last step, with ``note`` before what was said last."""
        if self._plan is not None:
            await self._plan.completed(ToolResult(True, self._planned))
        if note:
            text = "".join(self._text) or self.said
            self._text[:] = [f"{note}\n\n{text}".strip()]
        await self._flush()

    async def _tell(self, news: ToolCallStart | ToolCallProgress) -> None:
        """While a call is asked about its news wait, unless they are its end: then nobody need answer."""
        if (asked := self._asking.get(news.tool_call_id)) is not None:
            self._hold(asked, news)
            if news.status in ENDED:
                asked.task.cancel()
            return
        if not self._calls.knows(news.tool_call_id):
            await self._flush()
        await self._calls.tell(news)

    def _hold(self, asked: _Open, news: Any) -> None:
        """Let it wait for the answer. Raises AgentError: it is too much; ``news`` is among what is left."""
        asked.news.append(news)
        if not self._held.take(size(news)):
            raise _too_much()

    async def _put_question(self, question: _Question, tasks: asyncio.TaskGroup) -> None:
        call_id = question.request.tool_call.tool_call_id
        if (asked := self._asking.get(call_id)) is not None:
            self._hold(asked, question)
            return
        if not self._held.take(size(question)):
            _turn_down(question)
            raise _too_much()
        await self._flush()
        self._asking[call_id] = _Open(question, tasks.create_task(self._ask(question)))
        await asyncio.sleep(0)  # it has begun, and so ends properly when it is cancelled

    async def _ask(self, question: _Question) -> None:
        """In a task of its own, so that others go on."""
        call = question.request.tool_call
        try:
            async with self._few:
                _answer(question.answer, await self._calls.ask(call, question.request.options))
        finally:
            _answer(question.answer, None)
            self._news.put_nowait(_Answered(call.tool_call_id))

    async def _make_next(self, tasks: asyncio.TaskGroup) -> None:
        """Our tools' calls are made one after the other, each as its step asks for it."""
        if self._tool is None and self._tools:
            tool = self._tools.pop(0)
            await self._flush([tool.call])
            self._tool = tasks.create_task(self._make(tool))
            await asyncio.sleep(0)  # it is at the gate before another step can end

    async def _make(self, tool: _Tool) -> None:
        try:
            _answer(tool.answer, await self._gate.call(tool.call))
        finally:
            _answer(tool.answer, ToolResult(False, "The turn has ended."))
            self._news.put_nowait(self._tool)

    async def _show_plan(self, plan: AgentPlanUpdate) -> None:
        """One call for all of the turn's plans: the latest stands."""
        lines = [f"{_MARKS.get(one.status, '')} {one.content}".strip() for one in plan.entries]
        self._planned = "\n".join(lines)
        if self._plan is None:
            call = ToolCall(name="plan", arguments={"steps": [one.content for one in plan.entries]})
            self._plan = await self._gate.own(call, Risk.READ_ONLY, "plan")
            await self._plan.started()
        await self._plan.progress(self._planned)


def _too_much() -> AgentError:
    return AgentError("response_limit", "the agent says more than is taken in")


def _turn_down(news: Any) -> None:
    """Answer whoever asks: it is not taken in."""
    if isinstance(news, _Question):
        _answer(news.answer, None)
    elif isinstance(news, _Tool):
        _answer(news.answer, ToolResult(False, "The turn has ended."))


def _answer(answer: asyncio.Future[Any], value: Any) -> None:
    if not answer.done():
        answer.set_result(value)


def _shown(content: Any) -> str:
    if isinstance(content, TextContentBlock):
        return str(content.text)
    if isinstance(content, ResourceContentBlock):
        return f"{content.name} ({content.uri})"
    return ""


def _leaf(error: BaseException) -> BaseException:
    """What ended a group of tasks: the first error in it."""
    while isinstance(error, BaseExceptionGroup):
        error = error.exceptions[0]
    return error
