"""What a model's turns use, through a whole daemon: counted, shown, limited, also over a restart."""

import asyncio
import json

import pytest

from bridge.cli.main import main
from tests.agents.llm.server import ModelServer, call, calls, refuses, says
from tests.agents.llm.test_whole import PROFILE, keep_key
from tests.daemons import DEMO, daemon, short_home

OWNED = DEMO.replace(
    'owner = "you"', 'owner = "boss"\nsenders = "anyone"\ncost_per_day = 0.0001\nagent = "fast"'
)


async def test_usage_is_counted_shown_and_limited_over_a_restart(capsys: pytest.CaptureFixture[str]) -> None:
    async with ModelServer([says("one"), says("two"), says("three")]).serving() as server:
        with short_home(OWNED + PROFILE.format(address=server.address)) as home:
            keep_key(home)
            async with daemon(home) as running:
                assert await running.ask("hello") == ["one"]
                assert await running.ask("hello") == ["two"]
            async with daemon(home) as running:
                assert await running.ask("hello") == ["three"]
                told = await running.ask("hello")
                assert told == [
                    "You have used as much of me as one person may in 24 hours. Please come back later."
                ]
                words = ["usage", "--by", "sender", "--home", str(home.root)]
                assert await asyncio.to_thread(main, words) == 0
                assert capsys.readouterr().out.splitlines() == [
                    "TURNS  INPUT  OUTPUT       COST  ACCOUNT       SENDER",
                    "    3     33      15  $0.000126  webhook:demo  you",
                ]
                assert await asyncio.to_thread(main, [*words, "--json", "--by", "agent"]) == 0
                (line,) = json.loads(capsys.readouterr().out)["usage"]
                assert (line["name"], line["cost_micros"]) == ("fast", 3 * 42)


async def test_a_turn_that_fails_in_its_second_step_counts_its_first(
    capsys: pytest.CaptureFixture[str],
) -> None:
    script = [calls(call("no_such_tool", "{}")), refuses(400, {"message": "no"})]
    async with ModelServer(script).serving() as server:
        with short_home(DEMO + PROFILE.format(address=server.address)) as home:
            keep_key(home)
            async with daemon(home) as running:
                assert (await running.ask("hello"))[0].startswith("I could not answer this: ")
                assert await asyncio.to_thread(main, ["usage", "--json", "--home", str(home.root)]) == 0
                (line,) = json.loads(capsys.readouterr().out)["usage"]
                assert (line["turns"], line["input_tokens"], line["output_tokens"]) == (1, 11, 5)
