"""One step: the request to the model, tried again where that makes sense, and what came of it."""

import json
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any

import httpx2
from pydantic_ai.direct import model_request_stream
from pydantic_ai.exceptions import AgentRunError, UserError
from pydantic_ai.messages import (
    InstructionPart,
    ModelMessage,
    ModelResponse,
    PartDeltaEvent,
    PartStartEvent,
    TextPart,
    TextPartDelta,
    ToolCallPart,
)
from pydantic_ai.models import Model, ModelRequestParameters, StreamedResponse
from pydantic_ai.tools import ToolDefinition
from pydantic_ai.usage import RequestUsage

from bridge.agents.contract import ToolCall
from bridge.agents.llm import oddities, troubles
from bridge.agents.llm.endpoint import Endpoint
from bridge.agents.llm.models import model_settings
from bridge.agents.llm.troubles import Source, Trouble
from bridge.agents.llm.wire import Watch
from bridge.clock import Clock
from bridge.errors import BridgeError
from bridge.retry import Backoff, Randomness

Say = Callable[[str], Awaitable[None]]

# What the library raises where an endpoint sends what nobody promised: it is the endpoint's fault.
_ODD = (AttributeError, TypeError, ValueError, LookupError, ArithmeticError, AssertionError, RuntimeError)
_RAISED = (AgentRunError, UserError, httpx2.HTTPError, httpx2.StreamError, *_ODD)


@dataclass(frozen=True, slots=True)
class Question:
    """What a model is asked in one step."""

    model: str
    system: str
    messages: Sequence[ModelMessage]
    tools: Sequence[ToolDefinition] = ()
    has_pictures: bool = False


@dataclass(frozen=True, slots=True)
class Answer:
    """``response`` is how the library has it, its calls under our ids and with arguments that can be sent."""

    text: str
    calls: tuple[ToolCall, ...]
    response: ModelResponse


CUT = " […]"
"""Ends a text that the model was not let to end itself."""


class Asking:
    """Asks the models of a profile's endpoint."""

    def __init__(self, endpoint: Endpoint, clock: Clock, rng: Randomness) -> None:
        self._endpoint, self._settings = endpoint, endpoint.settings
        self._clock, self._rng = clock, rng

    async def ask(self, question: Question, say: Say) -> Answer | Trouble:
        """The answer, told to ``say`` as it comes; or why there is none, after all tries.

        Nothing is tried again once something was said; what broke off unsaid, once; what failed before the
        first byte, as often and as long as the profile has it, and not before the provider wishes it. Whoever
        has nothing to say in events is asked for all at once, as some only tell then what is wrong.

        Raises:
            AgentError: ``response_limit``.
            BridgeError: ``say`` raised it.
        """
        backoff, broken, streams = Backoff(self._clock, self._rng), 0, True
        deadline = self._clock.monotonic() + self._settings.retry_seconds
        while True:
            outcome = await self._try(question, say, streams=streams)
            if isinstance(outcome, BridgeError):
                raise outcome
            if isinstance(outcome, Answer) or not outcome.trouble.is_passing or outcome.said:
                return outcome if isinstance(outcome, Answer) else outcome.trouble
            broken += outcome.began
            wait = backoff.next_seconds(outcome.trouble.after_seconds)
            late = self._clock.monotonic() + wait > deadline
            if broken > 1 or backoff.failures >= self._settings.tries or late:
                return outcome.trouble
            streams = streams and not outcome.trouble.is_mute
            await self._clock.sleep(wait)

    async def _try(self, question: Question, say: Say, *, streams: bool) -> "Answer | Failed | BridgeError":
        source, watch = self._endpoint.source(question.model), self._endpoint.watch()
        model = await self._endpoint.model(question.model, watch, streams=streams)
        trying = _Try(source, watch, say)
        outcome = await watch.limit(trying.run(model, question, model_settings(self._settings)))
        return trying.failed(troubles.silent(source)) if outcome is None else outcome


@dataclass(frozen=True, slots=True)
class Failed:
    """``began``: there was something of an answer; ``said``: it was passed on."""

    trouble: Trouble
    began: bool
    said: bool


class _Try:
    """One request."""

    def __init__(self, source: Source, watch: Watch, say: Say) -> None:
        self._source, self._watch, self._say = source, watch, say
        self._said = False

    def failed(self, trouble: Trouble) -> Failed:
        return Failed(trouble, self._watch.began, self._said)

    async def run(
        self, model: Model[Any], question: Question, settings: Any
    ) -> Answer | Failed | BridgeError:
        """Everything that goes wrong is a value, as the task group around would pack up what is raised."""
        parameters = ModelRequestParameters(
            function_tools=list(question.tools),
            instruction_parts=[InstructionPart(content=question.system)] if question.system else [],
        )
        try:
            async with model_request_stream(
                model, question.messages, model_settings=settings, model_request_parameters=parameters
            ) as stream:
                await self._listen(stream)
                response = stream.get()
                if _is_cut(response):
                    await self._say(CUT)
                return self._answer(response)
        except BridgeError as error:  # of a limit, or of whoever is told
            return error
        except _RAISED as error:
            return self.failed(troubles.judge(error, self._source, began=self._watch.began))

    async def _listen(self, stream: StreamedResponse) -> None:
        async for event in stream:
            match event:
                case (
                    PartStartEvent(part=TextPart(content=text))
                    | PartDeltaEvent(delta=TextPartDelta(content_delta=text))
                ) if text:
                    self._said = True
                    with self._watch.paused():
                        await self._say(text)

    def _answer(self, response: ModelResponse) -> Answer | Failed:
        details = response.provider_details or {}
        if not self._watch.is_whole:
            return self.failed(troubles.broke_off(self._source))
        texts = [part.content for part in response.parts if isinstance(part, TextPart)]
        text = "".join(texts) or str(details.get("refusal") or "")
        calls, parts = [], []
        for part in response.parts:
            if isinstance(part, ToolCallPart):
                calls.append(_call(part))
                part = _sent(part, calls[-1])
            parts.append(part)
        why = troubles.ENDINGS.get(response.finish_reason or "")
        if why and not text and not calls:
            return self.failed(Trouble(troubles.told(self._source, why)))
        if _is_cut(response):
            text += CUT
        usage = response.usage if self._watch.is_counted else RequestUsage(unmeasured_requests=1)
        return Answer(text, tuple(calls), replace(response, parts=parts, usage=usage))


def _is_cut(response: ModelResponse) -> bool:
    """Whether it ends within its words, as the model may write no more."""
    parts = response.parts
    has_words = any(isinstance(part, TextPart) and part.content for part in parts)
    return (
        response.finish_reason == "length"
        and has_words
        and not any(isinstance(part, ToolCallPart) for part in parts)
    )


def _call(part: ToolCallPart) -> ToolCall:
    return ToolCall(
        name=oddities.call_name(part.tool_name),
        arguments=oddities.read_arguments(part.args),
        call_id=oddities.call_id(),
    )


def _sent(part: ToolCallPart, call: ToolCall) -> ToolCallPart:
    arguments = json.dumps(oddities.sent_arguments(call.arguments))
    return replace(part, tool_name=oddities.sent_name(call.name), args=arguments, tool_call_id=call.call_id)
