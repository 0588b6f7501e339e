"""How servers are reached, and where their secrets come from."""

import io
import json
from pathlib import Path
from typing import Any

import pytest

from bridge import logs
from bridge.config import McpTable
from bridge.errors import ConfigError
from bridge.paths import Home, write_private
from bridge.tools.mcp.access import Access, access, passed

HTTP = "https://mcp.example.org/mcp"


def reached(
    tmp_path: Path, settings: dict[str, Any], secrets: object = None, name: str = "s", **environ: str
) -> Access:
    home = Home(tmp_path)
    if secrets is not None:
        home.private_dir(home.credentials("mcp", name).parent)
        write_private(home.credentials("mcp", name), json.dumps(secrets).encode())
    return access(name, McpTable.model_validate(settings), home, tmp_path, environ)


def test_a_program_is_given_the_variables_that_are_named_and_no_other(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("SECRET_OF_OURS", "x")
    found = reached(
        tmp_path,
        {"command": ("tool", "-x"), "env": ("A",)},
        {"env": {"B_TOKEN": "from-the-file"}},
        A="1",
        C="3",
    )
    assert (found.command, found.cwd, found.url) == (("tool", "-x"), tmp_path, "")
    assert (found.env["A"], found.env["B_TOKEN"]) == ("1", "from-the-file")
    assert "PATH" in found.env
    assert not {"C", "SECRET_OF_OURS"} & found.env.keys()


def test_a_program_may_work_in_a_folder_of_its_own(tmp_path: Path) -> None:
    (tmp_path / "own").mkdir()
    assert reached(tmp_path, {"command": ("t",), "cwd": str(tmp_path / "own")}).cwd == tmp_path / "own"
    for odd in ("own", str(tmp_path / "none")):
        with pytest.raises(ConfigError, match=r"mcp\.s\.cwd: must be an existing folder"):
            reached(tmp_path, {"command": ("t",), "cwd": odd})


def test_a_workspace_that_the_daemon_has_yet_to_make_is_no_fault(tmp_path: Path) -> None:
    later = tmp_path / "workspace"
    found = access("s", McpTable.model_validate({"command": ("t",)}), Home(tmp_path), later, {})
    assert found.cwd == later


def test_an_address_has_headers_from_settings_environment_and_file(tmp_path: Path) -> None:
    table = {"url": HTTP, "headers": {"X-Team": "blue", "X-Key": {"env": "K"}}, "bearer": {"env": "B"}}
    found = reached(tmp_path, table, {"headers": {"X-Other": "o"}}, K="key-1", B="bearer-1")
    assert found.headers == {
        "X-Team": "blue",
        "X-Key": "key-1",
        "X-Other": "o",
        "Authorization": "Bearer bearer-1",
    }
    assert reached(tmp_path, {"url": HTTP}, {"bearer": "b-2"}).headers == {"Authorization": "Bearer b-2"}
    assert reached(tmp_path, {"url": HTTP}, {}).headers == {}


def test_a_secret_of_the_query_is_put_behind_the_address(tmp_path: Path) -> None:
    secrets = {"query": {"apiKey": "a b&c"}}
    assert reached(tmp_path, {"url": HTTP}, secrets).url == f"{HTTP}?apiKey=a+b%26c"
    assert reached(tmp_path, {"url": f"{HTTP}?x=1"}, secrets).url == f"{HTTP}?x=1&apiKey=a+b%26c"


@pytest.mark.parametrize("table", [{"bearer": {"env": "B"}}, {"headers": {"X-Key": {"env": "B"}}}])
def test_a_variable_that_is_not_set_is_named(tmp_path: Path, table: dict[str, Any]) -> None:
    with pytest.raises(ConfigError, match=r"the environment has no B, named by .*; set it before the start"):
        reached(tmp_path, {"url": HTTP, **table})
    with pytest.raises(ConfigError, match=r"mcp\.s: the environment has no B, named by env"):
        reached(tmp_path, {"command": ("t",), "env": ("B",)})


def test_a_header_that_cannot_be_sent_is_refused_without_its_value(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match="the value of Authorization has characters") as refused:
        reached(tmp_path, {"url": HTTP, "bearer": {"env": "B"}}, B="line\nbreak")
    assert "break" not in str(refused.value)


def test_a_private_file_with_other_keys_or_open_to_others_is_refused(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match="baerer: no such setting: did you mean bearer"):
        reached(tmp_path, {"url": HTTP}, {"baerer": "x"})
    Home(tmp_path).credentials("mcp", "s").chmod(0o644)
    with pytest.raises(ConfigError, match="open to others"):
        reached(tmp_path, {"url": HTTP})


def test_secrets_are_known_as_such_and_shown_nowhere(tmp_path: Path) -> None:
    found = reached(
        tmp_path,
        {"url": HTTP, "headers": {"X-Key": {"env": "K"}}, "bearer": {"env": "B"}},
        {"query": {"k": "query-secret"}, "headers": {"X-Two": "header-secret"}},
        K="key-secret",
        B="bearer-secret",
    )
    program = reached(
        tmp_path,
        {"command": ("t",), "env": ("A_TOKEN",)},
        {"env": {"X": "env-secret"}},
        A_TOKEN="passed-secret",
    )
    out = io.StringIO()
    logs.configure(as_json=True, stream=out)
    logs.get_logger("t").info("x", what=f"{found.url} {found.headers} {program.env}")
    for word in ("query", "header", "key", "bearer", "env", "passed"):
        assert f"{word}-secret" not in repr(found) + repr(program) + out.getvalue()


def test_an_agent_of_its_own_is_told_of_a_server_in_its_protocols_words(tmp_path: Path) -> None:
    there = reached(tmp_path, {"url": HTTP}, {"bearer": "b-3"}, name="web")
    assert passed(there) == {
        "type": "http",
        "name": "web",
        "url": HTTP,
        "headers": [{"name": "Authorization", "value": "Bearer b-3"}],
    }
    program = reached(tmp_path, {"command": ("sh", "-c", "x"), "env": ("A",)}, A="1")
    told = passed(program)
    assert (told["name"], told["args"]) == ("s", ["-c", "x"])
    assert told["command"].endswith("/sh")
    assert told["command"].startswith("/")
    assert {"name": "A", "value": "1"} in told["env"]
    assert passed(reached(tmp_path, {"command": ("no-such-program",)}))["command"] == "no-such-program"
