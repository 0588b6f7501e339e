from functools import partial
from pathlib import Path

from bridge.channel.testing.clock import FakeClock
from bridge.paths import Home
from bridge.tools.choose import tools_for, with_more
from bridge.tools.contract import Tool
from bridge.tools.wait import Wait

PLAIN = {"list_files", "read_file", "write_file", "wait", "skill"}


def test_a_session_gets_what_it_may_use(tmp_path: Path) -> None:
    home, clock = Home(tmp_path), FakeClock()
    assert not tools_for(home, clock, True, "Feishu")
    assert set(tools_for(home, clock, False, "")) == PLAIN
    chat = tools_for(home, clock, False, "Feishu")
    assert set(chat) == {*PLAIN, "chat_attach"}
    for name, tool in chat.items():
        assert tool.name == name
        schema = tool.arguments.model_json_schema()
        assert schema["additionalProperties"] is False
        assert tool.description


def test_tools_of_servers_are_those_of_now_and_never_in_place_of_ours(tmp_path: Path) -> None:
    theirs, own = Wait(FakeClock()), partial(tools_for, Home(tmp_path), FakeClock())
    known: dict[str, Tool] = {"wait": theirs, "web__search": theirs}
    found = with_more(lambda: known, own, False, "")
    assert set(found) == {*PLAIN, "web__search"}
    assert found["wait"] is not theirs
    assert not with_more(lambda: known, own, True, "")
