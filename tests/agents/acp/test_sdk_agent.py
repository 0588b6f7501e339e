"""With an agent that is made with the SDK's own agent side."""

import sys
from pathlib import Path

import pytest

from tests.agents.acp.stage import stage

PROGRAM = str(Path(__file__).with_name("sdk_agent.py"))


@pytest.mark.parametrize(("chooses", "said"), [(0, "yes: hello"), (1, "no: hello")])
async def test_a_turn_with_a_question_and_a_call(tmp_path: Path, chooses: int, said: str) -> None:
    async with stage(tmp_path, command=[sys.executable, PROGRAM]) as here:
        here.chooses = chooses
        heard = await here.say("hello")
        assert heard.steps == [said]
        (own,) = heard.owned
        assert own.call.arguments == {"title": "Change the file", "input": {"path": "a"}}
        assert own.result is not None
        assert own.result.success is (chooses == 0)
        assert len((await here.say("hello")).steps) == 1
