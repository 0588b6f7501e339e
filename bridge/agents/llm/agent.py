"""The agent: a turn is asked for step by step, and its calls are made between the steps."""

from __future__ import annotations

import asyncio
import random
from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import asynccontextmanager
from functools import partial

from pydantic_ai.messages import ModelResponse
from pydantic_ai.tools import ToolDefinition

from bridge.agents import skills
from bridge.agents.contract import (
    AgentPlace,
    AgentUsage,
    Choices,
    Finding,
    Gate,
    HistoryEntry,
    Sink,
    Turn,
)
from bridge.agents.llm import pictures, prompt
from bridge.agents.llm.bill import Bill
from bridge.agents.llm.compacting import sum_up
from bridge.agents.llm.diagnosing import diagnose
from bridge.agents.llm.endpoint import Endpoint
from bridge.agents.llm.history import messages
from bridge.agents.llm.request import Answer, Asking, Question, Say
from bridge.agents.llm.settings import LlmSettings
from bridge.agents.llm.sight import Sight
from bridge.agents.llm.troubles import Trouble
from bridge.logs import get_logger
from bridge.retry import Randomness
from bridge.tools.contract import Tool

log = get_logger(__name__)


class Llm:
    """One profile. ``rng`` spreads what is tried again."""

    def __init__(
        self, settings: LlmSettings, place: AgentPlace, key: str, rng: Randomness | None = None
    ) -> None:
        self._settings, self._place = settings, place
        self._endpoint = Endpoint(place.name, settings, key, place.clock)
        self._asking = Asking(self._endpoint, place.clock, rng or random.SystemRandom())
        self._sight = Sight(settings)

    @property
    def model(self) -> str:
        return self._settings.model

    @asynccontextmanager
    async def running(self) -> AsyncIterator[None]:
        """See ``Runs``."""
        try:
            yield
        finally:
            await self._endpoint.close()

    async def choices(self, turn: Turn) -> Choices:
        """See ``Chooses``: the models that the profile names."""
        return Choices(models={name: name for name in self._settings.all_models})

    async def run(self, turn: Turn, sink: Sink, gate: Gate) -> AgentUsage:
        """See ``Agent``."""
        model, bill = self._chosen(turn), Bill(self._settings)
        system, room_tokens = await self.bounds(turn)
        working = _Turn(turn, system, model, self._settings.image_pixels)
        while True:
            entries = await sink.begin(system, room_tokens)
            answer = await self._ask(working, entries, sink.delta)
            bill.add(model, answer.response)
            sink.used(bill.usage)
            working.keep(answer)
            await sink.completed(answer.text, answer.calls)
            if not answer.calls:
                return bill.usage
            for call in answer.calls:
                await gate.call(call)

    async def bounds(self, turn: Turn) -> tuple[str, int]:
        """See ``Bounded``."""
        now, settings = self._place.clock.now().astimezone(), self._settings
        system = prompt.system(turn, now, settings.instructions, await skills.for_turn(turn))
        return system, settings.room_tokens

    async def compact(self, turn: Turn, history: Sequence[HistoryEntry]) -> str:
        """See ``Compacts``: the model sums up."""
        model = self._chosen(turn)

        async def ask(system: str, text: str) -> str:
            entries = [HistoryEntry(role="user", text=text)]
            question = Question(model, system, messages(entries, {}, None, with_paths=False))
            return self._settled(await self._asking.ask(question, _say_nothing)).text

        return await sum_up(history, ask, self._settings.room_tokens)

    async def diagnose(self) -> Sequence[Finding]:
        """See ``Diagnoses``."""
        return await diagnose(self._endpoint)

    def _chosen(self, turn: Turn) -> str:
        """What was chosen, unless the profile has it no longer."""
        return turn.choice.model if turn.choice.model in self._settings.all_models else self.model

    async def _ask(self, working: _Turn, entries: Sequence[HistoryEntry], say: Say) -> Answer:
        """The step's answer. A model that refuses pictures is asked without, from then on."""
        if self._sight.sees(working.model):
            question = await working.question(entries, sees=True)
            outcome = await self._asking.ask(question, say)
            if not (isinstance(outcome, Trouble) and outcome.is_rejected and question.has_pictures):
                return self._settled(outcome)
        outcome = await self._asking.ask(await working.question(entries, sees=False), say)
        answer = self._settled(outcome)
        self._sight.blind(working.model)
        return answer

    def _settled(self, outcome: Answer | Trouble) -> Answer:
        """Raises AgentError: there is no answer."""
        if isinstance(outcome, Answer):
            return outcome
        log.warning("llm.failed", agent=self._place.name, code=outcome.error.code, error=outcome.error)
        raise outcome.error


class _Turn:
    """What the steps of one turn have in common."""

    def __init__(self, turn: Turn, system: str, model: str, side_pixels: int) -> None:
        self.system, self.model, self._side_pixels = system, model, side_pixels
        self._turn = turn
        self._tools = _definitions(turn.tools)
        self._kept: dict[str, ModelResponse] = {}
        self._pictures: pictures.Shown = {}

    def keep(self, answer: Answer) -> None:
        """Providers want to see their own words again within a turn, thoughts and signatures among them."""
        if answer.calls:
            self._kept[answer.calls[0].call_id] = answer.response

    async def question(self, entries: Sequence[HistoryEntry], *, sees: bool) -> Question:
        read = partial(pictures.shown, entries, self._pictures, self._side_pixels)
        shown = await asyncio.to_thread(read) if sees else None
        self._pictures = shown or self._pictures
        found = messages(entries, self._kept, shown, with_paths=bool(self._turn.tools))
        has_pictures = any(isinstance(one, pictures.Picture) for one in (shown or {}).values())
        return Question(self.model, self.system, found, self._tools, has_pictures)


def _definitions(tools: Mapping[str, Tool]) -> list[ToolDefinition]:
    return [
        ToolDefinition(
            name=tool.name,
            description=tool.description,
            parameters_json_schema=tool.arguments.model_json_schema(),
            strict=False,
        )
        for tool in tools.values()
    ]


async def _say_nothing(text: str) -> None:
    """For answers that are shown to nobody."""
