"""Whole turns: steps, calls, pictures, usage, choices, summing up."""

import asyncio
import json
from pathlib import Path
from typing import Any

import pytest

from bridge.agents.contract import (
    Agent,
    AgentError,
    AgentUsage,
    Chooses,
    Compacts,
    Diagnoses,
    HistoryEntry,
    Role,
    Runs,
    ToolCall,
    TurnFile,
)
from bridge.agents.echo_files import make
from bridge.channel.testing.clock import until
from tests.agents.llm.playing import KEY, playing
from tests.agents.llm.server import (
    Reply,
    Stall,
    block,
    call,
    calls,
    chunk,
    claude_calls,
    claude_says,
    ended,
    refuses,
    says,
    started,
)

CLAUDE: dict[str, Any] = {"provider": "anthropic", "model": "claude-sonnet-5"}
REFUSED = "The arguments were refused"


def photo(path: Path) -> TurnFile:
    path.write_bytes(make("a.png", "3x2"))
    return TurnFile("image", None, path.name, "image/png", 9, pixels=(3, 2), picture=path)


def user(text: str, *files: TurnFile) -> HistoryEntry:
    return HistoryEntry(role=Role.USER, text=text, files=files)


async def test_it_is_all_that_an_agent_can_be_here() -> None:
    async with playing() as player:
        agent: Agent = player.agent
        for ability in (Runs, Chooses, Compacts, Diagnoses):
            assert isinstance(agent, ability)
        assert agent.model == "small"


async def test_an_answer_is_shown_as_it_comes_and_then_whole() -> None:
    async with playing(says("Hel", "lo"), price_input=1, price_output=2) as player:
        played = await player.say("Hi")
        assert (played.deltas, played.steps) == (["Hel", "lo"], ["Hello"])
        assert played.usage == AgentUsage(1, 11, 5, 11 + 2 * 5)
        body = player.server.last
    assert [one["role"] for one in body["messages"]] == ["system", "user"]
    assert body["messages"][0]["content"] == played.systems[0]
    assert body["messages"][1]["content"] == "Hi"
    assert "Friday, 2026-01-02" in played.systems[0]


@pytest.mark.parametrize("wire", ["openai", "anthropic"])
async def test_calls_are_made_one_after_the_other_and_their_results_sent(wire: str) -> None:
    if wire == "anthropic":
        script, given = [claude_calls("add", '{"a": 1}'), claude_says("2")], CLAUDE
    else:
        two = calls(call("add", '{"a": 1}', "x", 0), call("add", '{"a": 2}', "y", 1))
        script, given = [two, says("2 and 3")], {}
    async with playing(*script, **given) as player:
        played = await player.say()
        sent = json.dumps(player.server.last["messages"])
    assert [result.output for result in played.results] == (["2"] if wire == "anthropic" else ["2", "3"])
    assert played.usage.steps == 2
    assert played.usage.input_tokens == 22
    for entry in played.entries:
        assert all(one.call_id in sent for one in entry.calls)


async def test_tools_are_told_with_their_schemas_and_only_where_there_are_any() -> None:
    async with playing(says("a")) as player:
        await player.say()
        (tool,) = player.server.last["tools"]
    assert tool["function"]["name"] == "add"
    assert tool["function"]["parameters"]["required"] == ["a"]
    async with playing(says("a"), tools=False) as player:
        await player.say()
        assert "tools" not in player.server.last
        assert "/w" not in json.dumps(player.server.last)


@pytest.mark.parametrize(
    ("broken", "text"),
    [
        (call("add", '{"a": 1'), REFUSED),
        (call("add", "[1]"), REFUSED),
        (call("add", '{"a": "x"}'), REFUSED),
        (call("add", '{"a": 1, "more": 1}'), REFUSED),
        (call("fly", "{}"), "There is no such tool here."),
        (call("", "{}"), "There is no such tool here."),
        (call(None, "{}"), "There is no such tool here."),
    ],
)
async def test_a_broken_call_is_a_result_for_the_model_which_goes_on(broken: bytes, text: str) -> None:
    async with playing(calls(broken), says("sorry")) as player:
        played = await player.say()
        result = player.server.last["messages"][-1]
    assert played.answer == "sorry"
    assert not played.results[0].success
    assert played.results[0].output.startswith(text)
    assert result["content"].startswith(text)


async def test_a_call_id_that_is_there_twice_or_empty_is_no_trouble() -> None:
    script = [
        calls(
            call("add", '{"a": 1}', "x", 0), call("add", '{"a": 2}', "x", 1), call("add", '{"a": 3}', "", 2)
        )
    ]
    async with playing(*script, says("ok")) as player:
        played = await player.say()
        results = [one for one in player.server.last["messages"] if one["role"] == "tool"]
    assert [result.output for result in played.results] == ["2", "3", "4"]
    assert len({one["tool_call_id"] for one in results}) == 3


async def test_thoughts_and_signatures_are_sent_back_within_the_turn() -> None:
    thought = block(
        0,
        {"type": "thinking", "thinking": "", "signature": ""},
        {"type": "thinking_delta", "thinking": "hm"},
        {"type": "signature_delta", "signature": "sig"},
    )
    tool = {"type": "tool_use", "id": "t", "name": "add", "input": {}}
    asked = block(1, tool, {"type": "input_json_delta", "partial_json": '{"a":1}'})
    async with playing(
        Reply([started(), *thought, *asked, *ended("tool_use")]), claude_says("2"), thinking="low", **CLAUDE
    ) as player:
        played = await player.say()
        (sent, used) = player.server.last["messages"][1]["content"]
    assert (sent["thinking"], sent["signature"], used["type"]) == ("hm", "sig", "tool_use")
    assert "hm" not in "".join(played.deltas + played.steps)


async def test_deepseek_gets_its_thoughts_back_within_the_turn() -> None:
    step = Reply([chunk({"reasoning_content": "hm"}), *calls(call("add", '{"a": 1}')).pieces])
    async with playing(step, says("2"), provider="deepseek", model="deepseek-reasoner") as player:
        await player.say()
        assert player.server.last["messages"][-2]["reasoning_content"] == "hm"


async def test_history_is_carried() -> None:
    call_ = ToolCall(name="Other agent's", arguments={"x": 1})
    history = [
        HistoryEntry(role=Role.NOTE, text="2 earlier messages were left out", covers=2),
        user("before"),
        HistoryEntry(role=Role.ASSISTANT, text="", calls=(call_,)),
        HistoryEntry(role=Role.TOOL, text="done", name=call_.name, call_id=call_.call_id),
        HistoryEntry(role=Role.ASSISTANT, text="said"),
    ]
    async with playing(says("a")) as player:
        await player.say("now", history)
        sent = player.server.last["messages"]
    assert [one["role"] for one in sent] == ["system", "user", "assistant", "tool", "assistant", "user"]
    assert "2 earlier messages" in sent[1]["content"]


async def test_a_picture_is_shown_where_the_model_takes_it(tmp_path: Path) -> None:
    async with playing(says("a cat")) as player:
        await player.say("what is it?", files=(photo(tmp_path / "a.png"),))
        text, picture = player.server.last["messages"][-1]["content"]
    assert "the picture 1 below" in text["text"]
    assert str(tmp_path) not in text["text"]
    assert picture["image_url"]["url"].startswith("data:image/png;base64,iVBOR")


async def test_a_model_that_is_known_to_be_blind_is_told_of_the_picture(tmp_path: Path) -> None:
    async with playing(says("what?"), model="deepseek-chat") as player:
        await player.say("what is it?", files=(photo(tmp_path / "a.png"),))
        assert "which you cannot see" in player.server.last["messages"][-1]["content"]


async def test_field_case_84_a_picture_that_is_refused_spoils_no_turn(tmp_path: Path) -> None:
    refusal = refuses(400, {"message": "image input is not supported"})
    seen = photo(tmp_path / "a.png")
    async with playing(refusal, says("what?"), says("well"), says("x"), models=("other",)) as player:
        assert (await player.say("what is it?", files=(seen,))).answer == "what?"
        assert (await player.say("and now?", [user("what is it?", seen)])).answer == "well"
        assert len(player.server.asked) == 3
        await player.say("and you?", [user("what is it?", seen)], model="other")
        assert isinstance(player.server.last["messages"][-1]["content"], list)


async def test_a_refusal_for_another_reason_blinds_nobody(tmp_path: Path) -> None:
    refusal = refuses(400, {"message": "no"})
    async with playing(refusal, refusal, says("a cat")) as player:
        seen = photo(tmp_path / "a.png")
        with pytest.raises(AgentError, match="refused the request"):
            await player.say("what is it?", files=(seen,))
        await player.say("what is it?", files=(seen,))
        assert isinstance(player.server.last["messages"][-1]["content"], list)


async def test_a_vanished_picture_is_a_note_and_the_conversation_goes_on(tmp_path: Path) -> None:
    seen = photo(tmp_path / "a.png")
    (tmp_path / "a.png").unlink()
    async with playing(says("gone")) as player:
        await player.say("and now?", [user("what is it?", seen)])
        assert "its file is gone" in json.dumps(player.server.last)


async def test_the_model_that_was_chosen_answers_while_the_profile_has_it() -> None:
    async with playing(says("a"), says("b"), models=("large",)) as player:
        assert (await player.agent.choices(player.turn())).models == {"small": "small", "large": "large"}
        await player.say(model="large")
        assert player.server.last["model"] == "large"
        await player.say(model="removed")
        assert player.server.last["model"] == "small"


async def test_a_turn_that_fails_says_why_and_shows_no_secret(capsys: pytest.CaptureFixture[str]) -> None:
    async with playing(refuses(401, {"message": f"bad key {KEY}", "code": "invalid_api_key"})) as player:
        with pytest.raises(AgentError) as caught:
            await player.say("my diary")
    assert caught.value.code == "sign_in_required"
    logged = capsys.readouterr().err
    assert "llm.failed" in logged
    for private in (KEY, "diary", "bad key"):
        assert private not in f"{caught.value}{logged}"


async def test_too_long_a_conversation_is_a_limit_of_its_own() -> None:
    async with playing(refuses(400, {"code": "context_length_exceeded"})) as player:
        with pytest.raises(AgentError) as caught:
            await player.say()
    assert caught.value.code == "context_limit"


async def test_cancelling_hangs_up_and_calls_nothing_more() -> None:
    stall = Stall()
    async with playing(Reply([call("add", '{"a": 1}'), stall])) as player, asyncio.TaskGroup() as tasks:
        running = tasks.create_task(player.say())
        await until(stall.reached.is_set)
        running.cancel()
        await until(lambda: player.server.gone == 1)
    assert running.cancelled()


async def test_a_small_model_is_shown_what_it_takes_and_writes_its_share() -> None:
    async with playing(says("a"), says("b"), context_tokens=4096) as player:
        played = await player.say()
        assert played.rooms == [2816]
        assert await player.agent.bounds(player.turn()) == (played.systems[0], 2816)
        assert player.server.last["max_tokens"] == 1024
        history = [HistoryEntry(role=Role.USER, text="x" * 1400)]
        assert await player.agent.compact(player.turn(), history) == "b"


async def test_a_history_is_summed_up_by_the_model_that_was_chosen() -> None:
    history = [user("my name is Ann"), HistoryEntry(role=Role.ASSISTANT, text="hello")]
    async with playing(says("Ann said ", "hello."), models=("large",)) as player:
        assert await player.agent.compact(player.turn(model="large"), history) == "Ann said hello."
        sent = player.server.last
    assert sent["model"] == "large"
    assert "tools" not in sent
    assert "Person: my name is Ann" in sent["messages"][-1]["content"]


async def test_a_summary_that_fails_is_an_error() -> None:
    async with playing(refuses(500, "x"), tries=1) as player:
        with pytest.raises(AgentError, match="the provider failed"):
            await player.agent.compact(player.turn(), [user("a")])


async def test_the_profile_s_own_words_end_the_system_prompt() -> None:
    async with playing(says("a"), instructions="You are a pirate.") as player:
        played = await player.say()
    assert played.systems[0].endswith("You are a pirate.")


async def test_a_secret_in_the_path_of_the_address_is_neither_told_nor_logged(
    capsys: pytest.CaptureFixture[str],
) -> None:
    async with playing(base_url="http://127.0.0.1:9/s3cr3t/v1", tries=1) as player:
        with pytest.raises(AgentError, match=r"http://127\.0\.0\.1:9 cannot be reached") as caught:
            await player.say()
    logged = capsys.readouterr().err
    assert "llm.failed" in logged
    assert "s3cr3t" not in f"{caught.value}{logged}"


async def test_the_connections_end_with_the_agent() -> None:
    async with playing(says("a")) as player:
        await player.say()
        assert player.agent._endpoint._pool is not None
    assert player.agent._endpoint._pool is None
