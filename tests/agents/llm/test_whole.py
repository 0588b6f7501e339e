"""Profiles of the llm agent in a whole daemon: what reaches a client, a chat and the log."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import pytest

from bridge.paths import Home, write_private
from bridge.protocol import ours
from bridge.protocol.events import AssistantDelta, ToolCompleted, TurnCancelled, TurnFailed
from tests.agents.llm.playing import KEY
from tests.agents.llm.server import ModelServer, Reply, Stall, call, calls, chunk, refuses, says
from tests.agents.llm.sessions import talking
from tests.daemons import DEMO, Running, daemon, short_home

PROFILE = """[daemon]
agent = "fast"
[agents.fast]
type = "llm"
provider = "compatible"
base_url = "{address}/v1"
model = "small"
tries = 1
price_input = 2
price_output = 4
"""


def keep_key(home: Home) -> None:
    path = home.credentials("agents", "fast")
    home.private_dir(path.parent)
    write_private(path, f'{{"api_key": "{KEY}"}}'.encode())


@asynccontextmanager
async def whole(*script: Reply) -> AsyncIterator[tuple[Running, ModelServer]]:
    async with ModelServer(script).serving() as server:
        with short_home(DEMO + PROFILE.format(address=server.address)) as home:
            keep_key(home)
            async with daemon(home) as running:
                assert running.error is None
                yield running, server


async def test_a_client_is_shown_the_answer_and_told_what_it_cost() -> None:
    async with whole(says("Hel", "lo")) as (running, server), talking(running.home) as talk:
        end = await talk.say("Hi")
        assert isinstance(end, ours.TurnCompleted)
        assert (talk.shown, talk.said) == ("Hello", "Hello")
        assert (end.steps, end.usage.input_tokens, end.usage.output_tokens) == (1, 11, 5)
        assert end.cost_micros == 11 * 2 + 5 * 4
        assert server.asked[0].headers["Authorization"] == f"Bearer {KEY}"


async def test_an_answer_that_reaches_its_limit_is_marked_where_it_was_cut() -> None:
    async with whole(says("Hel", "lo", finish="length")) as (running, _), talking(running.home) as talk:
        await talk.say("Hi")
        assert (talk.shown, talk.said) == ("Hello […]", "Hello […]")


async def test_the_history_goes_along() -> None:
    async with whole(says("Hello Ann"), says("Ann")) as (running, server), talking(running.home) as talk:
        await talk.say("I am Ann")
        await talk.say("Who am I?")
        sent = [(one["role"], one["content"]) for one in server.last["messages"][1:]]
    assert sent == [("user", "I am Ann"), ("assistant", "Hello Ann"), ("user", "Who am I?")]


async def test_a_broken_call_is_told_and_refused() -> None:
    script = [calls(call("read_file", '{"path": ')), says("sorry")]
    async with whole(*script) as (running, _), talking(running.home, no_tools=False) as talk:
        assert isinstance(await talk.say("read"), ours.TurnCompleted)
        (done,) = [event for event in talk.events if isinstance(event, ToolCompleted)]
    assert not done.success


@pytest.mark.parametrize("count", [33])
async def test_too_many_calls_at_once_end_the_turn(count: int) -> None:
    script = calls(*(call("read_file", "{}", f"c{at}", at) for at in range(count)))
    async with whole(script) as (running, _), talking(running.home, no_tools=False) as talk:
        end = await talk.say("read")
        assert isinstance(end, TurnFailed)
        assert end.code == "tool_limit"
        assert not [event for event in talk.events if isinstance(event, ToolCompleted)]


async def test_arguments_over_their_limit_end_the_turn() -> None:
    pieces = [call("read_file", '{"path": "'), *[call(None, "x" * 90_000, None)] * 3, call(None, '"}', None)]
    async with whole(calls(*pieces)) as (running, _), talking(running.home, no_tools=False) as talk:
        end = await talk.say("read")
        assert isinstance(end, TurnFailed)
        assert end.code == "tool_limit"


async def test_a_text_over_its_limit_ends_the_turn() -> None:
    large = Reply([chunk({"content": "x" * 300_000})] * 4)
    async with whole(large) as (running, _), talking(running.home) as talk:
        end = await talk.say("much")
        assert isinstance(end, TurnFailed)
        assert end.code == "response_limit"


async def test_a_cancelled_turn_ends_the_request_and_leaves_the_history() -> None:
    stall = Stall()
    script = [Reply([chunk({"content": "well"}), stall]), says("back")]
    async with whole(*script) as (running, server), talking(running.home) as talk:
        end = await talk.say("long", stop=lambda event: isinstance(event, AssistantDelta))
        assert isinstance(end, TurnCancelled)
        assert server.gone == 1
        assert isinstance(await talk.say("again"), ours.TurnCompleted)
        assert [one["content"] for one in server.last["messages"][1:]] == ["again"]


async def test_a_chat_is_answered_and_a_failure_is_told_without_the_provider_s_words(
    capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    refusal = refuses(401, {"message": f"bad key {KEY}", "code": "invalid_api_key"})
    async with whole(says("Hello"), refusal) as (running, _):
        assert await running.ask("Hi") == ["Hello"]
        (failed,) = await running.ask("Hi again")
    logged = capsys.readouterr().err
    assert "refused the key (401 invalid_api_key)" in logged
    for told in (failed, logged):
        assert KEY not in told
        assert "bad key" not in told
    assert "refused the key" in failed  # the owner, who can do something about it, is told


async def test_a_daemon_whose_profile_has_no_key_says_so_and_does_not_start() -> None:
    settings = '[daemon]\nagent = "fast"\n[agents.fast]\ntype = "llm"\nprovider = "deepseek"\nmodel = "m"\n'
    with short_home(DEMO + settings) as home:
        async with daemon(home) as running:
            assert "DEEPSEEK_API_KEY" in str(running.error)
