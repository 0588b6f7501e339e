"""One turn of the echo agent: what it says, and what it asks for."""

from collections.abc import Sequence
from typing import Any

from bridge.agents import echo_text
from bridge.agents.contract import Gate, HistoryEntry, Option, Sink, ToolCall, Turn
from bridge.clock import Clock
from bridge.tools.contract import Risk, ToolResult

NO_TOOLS = "This chat has no tools, so I cannot do that here."
NO_TOOLS_ZH = "这个聊天没有工具，我在这里做不了。"


class Talk:
    """``steps`` counts what was said, as a model's requests would be. ``zh``: it is spoken Chinese.

    ``rest`` is all that stands behind the command that is done, as it was written.
    """

    def __init__(self, turn: Turn, sink: Sink, gate: Gate, clock: Clock) -> None:
        self.turn, self.clock = turn, clock
        self.steps = 0
        self.zh = False
        self.rest = ""
        self._sink, self._gate = sink, gate
        self._seen: tuple[HistoryEntry, ...] | None = None  # by the step that has begun
        self._added: list[str] = []  # what was said to the turn since it began

    async def seen(self) -> tuple[HistoryEntry, ...]:
        """What a model would see in the step that comes, or has begun."""
        if self._seen is None:
            self._seen = await self._sink.begin()
            self._added = echo_text.added(self._seen, self.turn.prompt)
        return self._seen

    async def say(self, text: str, calls: Sequence[ToolCall] = ()) -> None:
        """One step: the text as a preview, piece by piece, then whole."""
        await self.seen()
        if self._added:
            text = "\n\n".join(
                [text, *(self.words(f"You added: {one}", f"您补充：{one}") for one in self._added)]
            )
        for piece in echo_text.pieces(text):
            await self._sink.delta(piece)
        await self._sink.completed(text, calls)
        self._seen = None
        self.steps += 1

    def words(self, english: str, chinese: str) -> str:
        return chinese if self.zh else english

    async def call(self, saying: str, tool: str, arguments: dict[str, Any]) -> ToolResult:
        """Say what comes, then do it; where the session lacks the tool, nothing is done."""
        if tool not in self.turn.tools:
            if not self.turn.tools:
                return ToolResult(False, self.words(NO_TOOLS, NO_TOOLS_ZH))
            text = self.words(
                f"This session has no tool {tool}, so I cannot do that.",
                f"这个会话没有工具 {tool}，我做不了。",
            )
            return ToolResult(False, text)
        return (await self.call_all(saying, [ToolCall(name=tool, arguments=arguments)]))[0]

    async def own(self, name: str, words: Sequence[str], options: Sequence[Option]) -> ToolResult:
        """Make a call as agents do that have tools of their own: ask, go on, and say how it ended."""
        if not self.turn.tools:
            return ToolResult(False, self.words(NO_TOOLS, NO_TOOLS_ZH))
        call = ToolCall(name=name, arguments={"words": list(words)})
        own = await self._gate.own(call, Risk.PROCESS, f"{name} {' '.join(words)}".strip())
        chosen = await own.ask(options)
        if chosen is None or not chosen.allows:
            result = ToolResult(
                False, chosen.label if chosen else self.words("Nobody agreed.", "没有人同意。")
            )
        else:
            await own.started()
            await own.progress(" ".join(words))
            result = ToolResult(True, chosen.label)
        await own.completed(result)
        return result

    async def call_all(self, saying: str, calls: Sequence[ToolCall]) -> list[ToolResult]:
        """Say what comes, then make the calls in order, whether the session has their tools or not."""
        await self.say(saying, calls)
        return [await self._gate.call(call) for call in calls]
