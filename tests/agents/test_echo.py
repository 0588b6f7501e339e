from functools import partial
from pathlib import Path

from hypothesis import given
from hypothesis import strategies as st

from bridge.agents.contract import AgentPlace, TurnFile
from bridge.agents.echo import SPEC, Echo, EchoSettings
from bridge.channel.testing.clock import FakeClock
from bridge.paths import Home
from bridge.tools.choose import tools_for
from tests.agents.talking import Talker
from tests.sessions.wire import serving


def test_it_registers_under_its_name() -> None:
    place = AgentPlace("echo", Home(Path("/nonexistent")), FakeClock())
    agent = SPEC.create(SPEC.settings.model_validate({}), place)
    assert (SPEC.name, agent.model, SPEC.settings) == ("echo", "echo", EchoSettings)


async def test_a_prompt_without_a_command_comes_back(tmp_path: Path) -> None:
    talker = Talker(tmp_path, Home(tmp_path / "home"), files=(TurnFile("file", None, "a", "", 1),))
    talked = await talker.say("hello there")
    assert talked.steps == ["You said: hello there\n\nYou sent a file:\n- file a (1 byte)"]
    assert talked.previews == talked.steps
    assert talked.usage is not None
    assert (talked.usage.steps, talked.usage.input_tokens) == (1, None)


@given(st.text(max_size=300).filter(lambda text: "fail" not in text.lower() and "失败" not in text))
async def test_no_prompt_breaks_it(text: str) -> None:
    talked = await Talker(Path("/nonexistent"), Home(Path("/nonexistent/home")), no_tools=True).say(text)
    assert len(talked.steps) == 1


async def test_every_path_works_over_the_wire() -> None:
    clock, home = FakeClock(), Home(Path("/nonexistent"))
    async with serving(Echo(clock), tools=partial(tools_for, home, clock)) as server:
        client = await server.session(channel="Chat")
        events = await client.turn("write a.txt hello\nlist\nread a.txt")
        assert [event["type"] for event in events].count("approval.requested") == 3
        assert events[-2]["content"] == "Wrote 6 bytes.\n\na.txt (6 bytes)\n\nhello\n"
        failed = (await client.turn("fail context_limit"))[-1]
        assert (failed["type"], failed["code"]) == ("turn.failed", "context_limit")


async def test_a_picture_goes_over_the_wire_and_a_failed_turn_takes_its_copy_back(tmp_path: Path) -> None:
    clock, home = FakeClock(), Home(tmp_path / "home")
    async with serving(Echo(clock), tools=partial(tools_for, home, clock)) as server:
        client = await server.session(channel="Chat")
        events = await client.turn("picture cat.png 30x20")
        assert events[-2]["content"] == "Here is cat.png."
        assert len(list(home.outbox.iterdir())) == 1
        assert (await client.turn("picture dog.png\nfail"))[-1]["type"] == "turn.failed"
        assert len(list(home.outbox.iterdir())) == 1
