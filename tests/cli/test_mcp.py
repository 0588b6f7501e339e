"""``mcp``: the servers of tools as the daemon tells them, and one that is tried from here."""

import json
import sys
from pathlib import Path
from typing import Any

import pytest

from bridge.cli.main import main
from bridge.cli.mcp import overview
from tests.cli.socket_daemon import STATUS, short_home, socket_daemon
from tests.tools.mcp.running import SIMPLE

WEB: dict[str, Any] = {
    "name": "web",
    "kind": "http",
    "state": "connected",
    "since_unix_seconds": 5,
    "says": "search\x1b 1.0",
    "tools": [
        {"name": "web__find", "own": "find", "risk": "network", "description": "Find it."},
        {"name": "web__get", "own": "get", "risk": "read_only", "description": "Get it."},
    ],
    "notes": ["tools: the server has no gone: correct it"],
}
LOST: dict[str, Any] = {
    "name": "lost",
    "kind": "stdio",
    "state": "backoff",
    "since_unix_seconds": 5,
    "reason": "its program has ended (exit code 1)",
    "next_try_unix_seconds": 9,
}
OFF = {"name": "off", "kind": "http", "state": "disabled", "since_unix_seconds": 5}


def answer(*servers: dict[str, Any]) -> dict[str, Any]:
    return {"type": "daemon.status", "request_id": "2", "status": {**STATUS, "mcp": list(servers)}}


def test_each_server_has_a_line_and_its_tools_below() -> None:
    assert overview([WEB, LOST, OFF], 7) == [
        "SERVER  KIND   STATE      SINCE   TOOLS  REASON",
        "web     http   connected  2s ago  2",
        "lost    stdio  backoff    2s ago  0      its program has ended (exit code 1)",
        "off     http   disabled   2s ago  0",
        "\nweb (search\N{REPLACEMENT CHARACTER} 1.0)",
        "  web__find  [network]  Find it.",
        "  web__get  [never asked about]  Get it.",
        "  ! tools: the server has no gone: correct it",
        "lost: next try in 2s",
    ]


@pytest.mark.parametrize(("servers", "code"), [((WEB, OFF), 0), ((WEB, LOST), 1), ((), 0)])
def test_it_is_1_where_one_that_is_switched_on_is_not_connected(
    servers: tuple[dict[str, Any], ...], code: int, capsys: pytest.CaptureFixture[str]
) -> None:
    with socket_daemon(answer(*servers)) as daemon:
        assert main(["mcp", "--home", str(daemon.home.root)]) == code
        assert daemon.command == {"action": "mcp"}
    out = capsys.readouterr().out
    assert ("mcp test NAME" in out) is (LOST in servers)
    assert ("no servers of tools" in out) is (not servers)


def test_json_is_the_daemons_own(capsys: pytest.CaptureFixture[str]) -> None:
    with socket_daemon(answer(WEB)) as daemon:
        assert main(["mcp", "--json", "--home", str(daemon.home.root)]) == 0
    assert json.loads(capsys.readouterr().out) == [WEB]


def test_one_is_tried_from_here_without_a_daemon(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    (tmp_path / "notes.tools").write_text("look")
    monkeypatch.setenv("NOTES", str(tmp_path / "notes"))
    code = "import sys; sys.stderr.write('bye\\\\n'); sys.exit(3)"
    with short_home() as home:
        (home.root / "workspace").mkdir()
        home.config.write_text(
            f'[mcp.good]\nenabled = false\nenv = ["NOTES"]\n'
            f'command = ["{sys.executable}", "-I", "-S", "{SIMPLE}"]\n'
            f'[mcp.bad]\ncommand = ["{sys.executable}", "-I", "-S", "-c", "{code}"]\n'
        )
        home.config.chmod(0o600)
        at = ["--home", str(home.root)]
        assert main(["mcp", "test", "good", *at]) == 0
        assert "good__look  [process]  look, of good" in capsys.readouterr().out
        assert main(["mcp", "--json", "test", "good", *at]) == 0
        assert json.loads(capsys.readouterr().out)["says"] == "simple 1"
        assert main(["mcp", "test", "bad", *at]) == 1
        out = capsys.readouterr().out
        assert "its program has ended (exit code 3)" in out
        assert "on its standard error: bye" in out
        assert main(["mcp", "test", "none", *at]) == 2
        assert "there is no [mcp.none]: there are: good, bad" in capsys.readouterr().err
