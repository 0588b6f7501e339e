"""One step: its answer, its calls, and what is tried again how often."""

import asyncio
import json
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import pytest
from pydantic_ai.messages import ModelRequest, ToolCallPart

from bridge.agents.contract import AgentError
from bridge.agents.llm.request import Answer, Question
from bridge.agents.llm.troubles import Trouble
from bridge.channel.testing.clock import until
from bridge.errors import BridgeError
from tests.agents.llm.playing import Player, playing
from tests.agents.llm.server import (
    DONE,
    JSON,
    Cut,
    Reply,
    Stall,
    block,
    call,
    calls,
    chunk,
    claude_calls,
    claude_says,
    ended,
    event,
    named,
    refuses,
    says,
    started,
    usage,
)

CLAUDE: dict[str, Any] = {"provider": "anthropic", "model": "claude-sonnet-5"}


class Asked:
    """A step of a player's agent, and what it said."""

    def __init__(self, player: Player) -> None:
        self.player, self.said = player, list[str]()
        self.waits: list[float] = []

    async def say(self, text: str) -> None:
        self.said.append(text)

    async def ask(self) -> Answer | Trouble:
        """Time passes while nothing comes. ``waits`` are those between tries, and what silence took."""
        model = self.player.agent.model
        question = Question(model, "Be kind.", [ModelRequest.user_text_prompt("hi")])
        async with asyncio.TaskGroup() as tasks:
            pacing = tasks.create_task(self._pace())
            try:
                found: Answer | Trouble | BridgeError = await self.player.agent._asking.ask(
                    question, self.say
                )
            except BridgeError as error:  # kept out of the group's
                found = error
            finally:
                pacing.cancel()
        if isinstance(found, BridgeError):
            raise found
        return found

    async def _pace(self) -> None:
        clock, server = self.player.clock, self.player.server
        stalls = any(isinstance(piece, Stall) for reply in server.script for piece in reply.pieces)
        while True:
            await asyncio.sleep(0)
            due = [wait for wait in clock.waits() if wait < 60]
            if due and (server.stalled or due[0] < 10 or not stalls):
                self.waits.append(due[0])
                await clock.advance(due[0])


@asynccontextmanager
async def asking(*script: Reply, **given: Any) -> AsyncIterator[Asked]:
    async with playing(*script, **given) as player:
        yield Asked(player)


async def answer(*script: Reply, **given: Any) -> Answer:
    async with asking(*script, **given) as asked:
        outcome = await asked.ask()
        assert isinstance(outcome, Answer), outcome
        assert "".join(asked.said) in (outcome.text, "")
        return outcome


async def trouble(*script: Reply, **given: Any) -> Trouble:
    async with asking(*script, **{"tries": 1, **given}) as asked:
        outcome = await asked.ask()
        assert isinstance(outcome, Trouble), outcome
        return outcome


def text_of(reply: Reply, separator: bytes) -> Reply:
    """``reply`` in other pieces."""
    whole = b"".join(piece for piece in reply.pieces if isinstance(piece, bytes))
    return Reply(
        [part + separator for part in whole.split(separator)] if separator else [bytes([b]) for b in whole]
    )


# --- what models say


@pytest.mark.parametrize(
    ("reply", "text"),
    [
        (says("Hel", "lo"), "Hello"),
        (says(), ""),
        (says("long", finish="length"), "long […]"),
        (says("odd", finish="eos"), "odd"),
        (text_of(says("a", "é字"), b""), "aé字"),
        (
            Reply(
                [piece.replace(b"\n", b"\r\n") for piece in says("a", "b").pieces if isinstance(piece, bytes)]
            ),
            "ab",
        ),
        (Reply([b"".join(piece for piece in says("a", "b").pieces if isinstance(piece, bytes))]), "ab"),
        (Reply([b": ping\n\n", chunk({"content": "a"}), b": ping\n\n", DONE]), "a"),
        (Reply([chunk({"content": "a"}), DONE]), "a"),
        (Reply([chunk({"content": "a"}), chunk({}, "stop")]), "a"),
        (
            Reply([chunk({"content": "a"}), b'data: {"choices": [{"delta": {}, "finish_reason": "stop"}]}']),
            "a",
        ),
        (
            Reply(
                [
                    b"data: null\n\n",
                    chunk(choices=None),
                    event({"choices": [{"delta": None}]}),
                    *says("a").pieces,
                ]
            ),
            "a",
        ),
        (Reply([chunk({"reasoning_content": "hm"}), chunk({"content": "yes"}), DONE]), "yes"),
        (says("<think>", "hm", "</think>", "\n\nyes"), "yes"),
        (
            Reply(
                [b'{"choices": [{"message": {"con', b'tent": "a"}, "finish_reason": "stop"}]}'], headers=JSON
            ),
            "a",
        ),
        (Reply([chunk({"refusal": "I can't."}), chunk({}, "stop"), DONE]), "I can't."),
        (Reply([b'data: {"choices":[{"delta":{"content":"\\ud800x"}}]}\n\n', DONE]), "?x"),
    ],
)
async def test_an_answer_is_read_however_it_comes(reply: Reply, text: str) -> None:
    assert (await answer(reply)).text == text


@pytest.mark.parametrize(
    ("reply", "text"),
    [
        (claude_says("Hel", "lo"), "Hello"),
        (text_of(claude_says("a", "é"), b""), "aé"),
        (Reply([started(), *block(0, {"type": "text", "text": "a"}), *ended("max_tokens")]), "a […]"),
        (Reply([named("message_start", message=None), *claude_says("a").pieces[1:]]), "a"),
        (Reply([named("ping"), started(), named("surprise"), *claude_says("a").pieces[1:]]), "a"),
        (Reply([started(usage=None), *claude_says("a").pieces[1:]]), "a"),
    ],
)
async def test_an_answer_of_anthropic_s_is_read_however_it_comes(reply: Reply, text: str) -> None:
    assert (await answer(reply, **CLAUDE)).text == text


async def test_tokens_are_those_that_were_told() -> None:
    for found in (await answer(says("a")), await answer(claude_says("a"), **CLAUDE)):
        assert (found.response.usage.input_tokens, found.response.usage.output_tokens) == (11, 5)
        assert not found.response.usage.unmeasured_requests


@pytest.mark.parametrize(
    "reply",
    [
        Reply([chunk({"content": "a"}), chunk({}, "stop"), DONE]),
        Reply([chunk({"content": "a"}, usage=None), usage("x"), DONE]),
        Reply([chunk({"content": "a"}), chunk(None, "stop", usage="many", service_tier=None), DONE]),
    ],
)
async def test_field_case_95_an_answer_without_proper_usage_is_an_answer(reply: Reply) -> None:
    found = await answer(reply)
    assert found.text == "a"
    assert found.response.usage.unmeasured_requests == 1


# --- calls


@pytest.mark.parametrize(
    ("pieces", "expected"),
    [
        ([call("add", '{"a": 1}')], [("add", {"a": 1})]),
        ([call("add", '{"a":'), call(None, " 1}", None)], [("add", {"a": 1})]),
        ([call("add", '{"a": 1}', "x", 0), call("sub", "{}", "y", 1)], [("add", {"a": 1}), ("sub", {})]),
        (
            [call("add", '{"a": 1}', "x", 0), call("add", '{"a": 2}', "x", 1)],
            [("add", {"a": 1}), ("add", {"a": 2})],
        ),
        (
            [call("add", '{"a": 1}', "x", None), call("add", '{"a": 2}', "y", None)],
            [("add", {"a": 1}), ("add", {"a": 2})],
        ),
        ([call("add", "{}", "")], [("add", {})]),
        ([call("add", "{}", None)], [("add", {})]),
        ([call("add", None)], [("add", {})]),
        ([call("add", {"a": 1})], [("add", {"a": 1})]),
        ([call(None, "{}")], [("", {})]),
        ([call("", "{}")], [("", {})]),
        ([call("rm -rf /", "{}")], [("rm -rf /", {})]),
        ([call("add", '{"a": 1')], [("add", '{"a": 1')]),
        ([call("add", "add(1)")], [("add", "add(1)")]),
        ([call("add", "[1]")], [("add", [1])]),
        ([call("add", '{"a": NaN}')], [("add", '{"a": NaN}')]),
        ([chunk({"content": "Let me see."}), call("add", "{}")], [("add", {})]),
    ],
)
async def test_each_kind_of_call_is_a_call_broken_ones_too(pieces: list[bytes], expected: list[Any]) -> None:
    found = await answer(calls(*pieces))
    assert [(one.name, one.arguments) for one in found.calls] == expected
    assert len({one.call_id for one in found.calls}) == len(expected)
    sent = [part for part in found.response.parts if isinstance(part, ToolCallPart)]
    assert [part.tool_call_id for part in sent] == [one.call_id for one in found.calls]
    assert all(isinstance(part.args_as_dict(), dict) and part.tool_name for part in sent)


@pytest.mark.parametrize(
    ("name", "arguments", "call_id", "expected"),
    [
        ("add", '{"a": 1}', "t", ("add", {"a": 1})),
        ("add", "", "t", ("add", {})),
        ("add", '{"a": 1', "", ("add", '{"a": 1')),
        ("", "[1]", "t", ("", [1])),
    ],
)
async def test_each_kind_of_call_of_anthropic_s_is_a_call(
    name: str, arguments: str, call_id: str, expected: Any
) -> None:
    (found,) = (await answer(claude_calls(name, arguments, call_id), **CLAUDE)).calls
    assert (found.name, found.arguments) == expected


# --- what goes wrong


@pytest.mark.parametrize(
    ("reply", "text"),
    [
        (Reply([]), "no model's answer"),
        (Reply([DONE]), "no model's answer"),
        (Reply([b"<html>sign in</html>"], headers={"content-type": "text/html"}), "no model's answer"),
        (Reply([b'{"message": "a"}'], headers=JSON), "no model's answer"),
        (Reply([b'{"error": {"message": "sk-secret", "code": "overloaded"}}'], headers=JSON), "(overloaded)"),
        (Reply([b"data: {oops\n\n", DONE]), "no model's answer"),
        (Reply([event({"error": "sk-secret"})]), "no model's answer"),
        (Reply([event({"error": {"message": "sk-secret", "code": "overloaded"}})]), "for now (overloaded)"),
        (Reply([chunk({}), chunk({}, "content_filter"), DONE]), "filter holds back"),
        (Reply([chunk({}), chunk({}, "length"), DONE]), "raise max_output_tokens"),
        (refuses(302, {}, location="http://127.0.0.1:9/"), "no model's answer"),
        (
            refuses(401, {"message": "sk-secret", "code": "invalid_api_key"}),
            "refused the key (401 invalid_api_key)",
        ),
        (refuses(404, {"code": "model_not_found"}), "no model small at http://127.0.0.1"),
        (refuses(400, {"code": "context_length_exceeded"}), "too long"),
        (refuses(402, {"message": "sk-secret"}), "no credit left (402)"),
        (refuses(429, {"code": "insufficient_quota"}), "no credit left (429 insufficient_quota)"),
        (refuses(400, {"message": "sk-secret"}), "refused the request (400)"),
    ],
)
async def test_what_cannot_be_mended_is_told_and_asked_once(reply: Reply, text: str) -> None:
    async with asking(reply, tries=1) as asked:
        outcome = await asked.ask()
        assert isinstance(outcome, Trouble)
        assert text in str(outcome.error)
        assert "sk-secret" not in str(outcome.error)
        assert len(asked.player.server.asked) == 1


@pytest.mark.parametrize("status", [400, 401, 402, 403, 404, 422])
async def test_a_refusal_is_final(status: int) -> None:
    async with asking(refuses(status, {"message": "no"}), says("a"), tries=5) as asked:
        assert isinstance(await asked.ask(), Trouble)
        assert len(asked.player.server.asked) == 1


@pytest.mark.parametrize("status", [408, 429, 500, 502, 503, 529])
async def test_what_may_pass_is_tried_again(status: int) -> None:
    async with asking(*[refuses(status, {"message": "later"})] * 2, says("a")) as asked:
        outcome = await asked.ask()
        assert isinstance(outcome, Answer)
        assert len(asked.player.server.asked) == 3
        assert len(asked.waits) == 2


async def test_it_is_tried_a_bounded_number_of_times() -> None:
    async with asking(*[refuses(503, {})] * 9, tries=3) as asked:
        outcome = await asked.ask()
        assert isinstance(outcome, Trouble)
        assert len(asked.player.server.asked) == 3


async def test_field_case_46_the_provider_s_wish_for_a_wait_is_respected() -> None:
    async with asking(refuses(429, {}, retry_after="37"), says("a")) as asked:
        assert isinstance(await asked.ask(), Answer)
        assert sum(asked.waits) >= 37
        assert sum(asked.waits) <= 37 + 1


async def test_a_wait_beyond_the_time_for_it_is_not_begun() -> None:
    async with asking(refuses(429, {}, retry_after="3600"), says("a")) as asked:
        outcome = await asked.ask()
        assert isinstance(outcome, Trouble)
        assert "try again later" in str(outcome.error)
        assert asked.waits == []


async def test_an_endpoint_that_is_not_there_is_tried_again_and_told() -> None:
    async with asking(base_url="http://127.0.0.1:9/v1", tries=3) as asked:
        outcome = await asked.ask()
        assert isinstance(outcome, Trouble)
        assert "http://127.0.0.1:9 cannot be reached" in str(outcome.error)
        assert len(asked.waits) == 2


async def test_whoever_says_nothing_in_events_is_asked_for_all_at_once() -> None:
    message = {"tool_calls": [{"id": "x", "function": {"name": "add", "arguments": "{}"}}]}
    body = {"choices": [{"message": message}], "usage": {"prompt_tokens": 3, "completion_tokens": 1}}
    async with asking(Reply([]), Reply([json.dumps(body).encode()], headers=JSON)) as asked:
        outcome = await asked.ask()
        assert isinstance(outcome, Answer)
        assert [one.name for one in outcome.calls] == ["add"]
        assert outcome.response.usage.input_tokens == 3
        first, second = (one.body for one in asked.player.server.asked)
    assert first["stream"] is True
    assert second["stream"] is False
    assert "stream_options" not in second
    assert second["messages"] == first["messages"]


async def test_what_is_wrong_is_told_by_whoever_hides_it_in_events() -> None:
    long = refuses(400, {"code": "context_length_exceeded", "message": "x"})
    async with asking(Reply([]), long) as asked:
        outcome = await asked.ask()
        assert isinstance(outcome, Trouble)
        assert outcome.error.code == "context_limit"


async def test_anthropic_always_streams() -> None:
    async with asking(Reply([]), claude_says("a"), **CLAUDE) as asked:
        assert isinstance(await asked.ask(), Answer)
        assert [one.body["stream"] for one in asked.player.server.asked] == [True, True]


async def test_a_break_before_the_first_byte_is_tried_again() -> None:
    async with asking(Reply([Cut()]), Reply([Cut()]), says("a")) as asked:
        assert isinstance(await asked.ask(), Answer)


BROKEN = [
    Reply([chunk({"reasoning_content": "hm"}), Cut()]),
    Reply([chunk({"role": "assistant"})]),
    Reply([call("add", "{"), Cut()]),
]


@pytest.mark.parametrize("broken", BROKEN)
async def test_an_answer_that_broke_off_unsaid_is_tried_again_once(broken: Reply) -> None:
    async with asking(broken, says("a"), tries=5) as asked:
        assert isinstance(await asked.ask(), Answer)
    async with asking(broken, broken, says("a"), tries=5) as asked:
        outcome = await asked.ask()
        assert isinstance(outcome, Trouble)
        assert "broke off" in str(outcome.error)
        assert len(asked.player.server.asked) == 2


@pytest.mark.parametrize(
    ("end", "code"),
    [
        ([Cut()], "provider_error"),
        ([], "provider_error"),
        ([event({"error": {"message": "x", "code": 529}})], "provider_error"),
        ([b"data: {oops\n\n"], "setup_required"),
    ],
)
async def test_an_answer_that_broke_off_after_it_was_shown_fails(end: list[Any], code: str) -> None:
    async with asking(Reply([chunk({"content": "a"}), *end]), says("b"), tries=5) as asked:
        outcome = await asked.ask()
        assert isinstance(outcome, Trouble)
        assert outcome.error.code == code
        assert (asked.said, len(asked.player.server.asked)) == (["a"], 1)


async def test_an_answer_of_anthropic_s_without_an_end_broke_off() -> None:
    found = await trouble(Reply([started(), *block(0, {"type": "text", "text": "a"})]), **CLAUDE)
    assert "broke off" in str(found.error)


async def test_silence_before_the_first_byte_is_tried_again() -> None:
    async with asking(Reply([Stall()]), says("a"), first_byte_seconds=30) as asked:
        assert isinstance(await asked.ask(), Answer)
        assert asked.waits[0] == 30


async def test_silence_within_an_answer_that_was_shown_fails() -> None:
    stalling = Reply([chunk({"content": "a"}), Stall()])
    async with asking(stalling, says("b"), silence_seconds=20) as asked:
        outcome = await asked.ask()
        assert isinstance(outcome, Trouble)
        assert "keeps silent" in str(outcome.error)
        await until(lambda: asked.player.server.gone == 1)


async def test_an_answer_that_is_too_large_is_refused_and_not_asked_for_again() -> None:
    large = Reply([chunk({"reasoning_content": "x" * 500_000})] * 10)
    async with asking(large, says("a")) as asked:
        with pytest.raises(AgentError, match="over 4194304 bytes"):
            await asked.ask()
        assert len(asked.player.server.asked) == 1


async def test_whoever_is_told_may_end_it() -> None:
    async with asking(says("a", "b")) as asked:

        async def refuse(text: str) -> None:
            raise BridgeError("no more")

        asked.say = refuse  # type: ignore[method-assign]  # another listener
        with pytest.raises(BridgeError, match="no more"):
            await asked.ask()


async def test_cancelling_hangs_up() -> None:
    stall = Stall()
    async with playing(Reply([chunk({"content": "a"}), stall])) as player, asyncio.TaskGroup() as tasks:
        asked = Asked(player)
        running = tasks.create_task(asked.ask())
        await until(stall.reached.is_set)
        running.cancel()
        await until(lambda: player.server.gone == 1)
    assert running.cancelled()
