from pathlib import Path

from bridge.channel.testing.clock import FakeClock
from bridge.paths import Home
from bridge.tools.choose import tools_for

PLAIN = {"list_files", "read_file", "write_file", "wait"}


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
