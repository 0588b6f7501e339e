import json
from pathlib import Path

import pytest

from bridge.cli.main import main
from bridge.paths import Home
from tests.daemons import write_settings
from tests.tools.test_choose import RISKS
from tests.tools.test_installed import GOOD, Install, install

__all__ = ["install"]


@pytest.fixture
def home(tmp_path: Path) -> Home:
    home = Home(tmp_path / "home")
    home.private_dir(home.root)
    return home


def tools(home: Home, *words: str) -> int:
    return main(["tools", "--home", str(home.root), *words])


def test_what_an_owners_session_may_use_is_listed_with_its_risk_and_origin(
    home: Home, install: Install, capsys: pytest.CaptureFixture[str]
) -> None:
    install("inst_good", GOOD, "[turnbridge.tools]\ngood = inst_good:SPEC\n")
    write_settings(home, "")
    assert tools(home, "--json") == 0
    told = json.loads(capsys.readouterr().out)
    assert told["not_loaded"] == []
    rows = {row["name"]: row for row in told["tools"]}
    assert {name: row["risk"] for name, row in rows.items()} == {
        **{name: risk.value for name, risk in RISKS.items()}, "chat_attach": "network", "good": "read_only",
    }  # fmt: skip
    assert (rows["shell"]["origin"], rows["good"]["origin"]) == ("turnbridge", "inst_good")
    assert tools(home) == 0
    lines = capsys.readouterr().out.splitlines()
    assert lines[0].split() == ["TOOL", "RISK", "OF", "WHAT", "IT", "DOES"]
    assert any(line.startswith("shell ") and "process" in line for line in lines)


def test_what_is_disabled_served_or_broken_is_told(
    home: Home, install: Install, capsys: pytest.CaptureFixture[str]
) -> None:
    install("inst_bad", "SPEC = 3", "[turnbridge.tools]\nbad = inst_bad:SPEC\n")
    servers = '[mcp.web]\ncommand = ["x"]\n[mcp.off]\ncommand = ["x"]\nenabled = false\n'
    write_settings(home, f'[tools]\ndisabled = ["shell"]\n{servers}')
    assert tools(home) == 1
    shown = capsys.readouterr().out
    assert "\nshell " not in shown
    assert "disabled: shell" in shown
    assert "those of the servers web: " in shown
    assert "! the tool 'bad' of inst_bad cannot be used" in shown


def test_disabling_what_is_not_there_is_a_mistake(home: Home, capsys: pytest.CaptureFixture[str]) -> None:
    write_settings(home, '[tools]\ndisabled = ["shel"]\n')
    assert tools(home) == 2
    assert "'shel', which is no tool here" in capsys.readouterr().err
