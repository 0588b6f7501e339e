"""``config show``: what is in effect and where it comes from, and no secret."""

import json
import tomllib
from pathlib import Path
from typing import Any

import pytest

from bridge.cli.config_show import MASK
from bridge.cli.main import main
from bridge.config import Config
from bridge.paths import Home, write_private

SECRETS = {"secrets": ["whsec_" + "QUJD" * 11], "ask_token": "token-4711"}
URL = "https://hooks.example.org/in"


@pytest.fixture
def home(tmp_path: Path) -> Home:
    home = Home(tmp_path)
    path = home.credentials("webhook", "demo")
    home.private_dir(path.parent)
    write_private(path, json.dumps(SECRETS).encode())
    return home


def show(home: Home, settings: str, capsys: pytest.CaptureFixture[str], *more: str) -> tuple[int, str]:
    write_private(home.config, settings.encode())
    code = main(["config", "show", "--home", str(home.root), *more])
    return code, capsys.readouterr().out


def test_it_is_toml_with_every_setting_and_its_value(home: Home, capsys: pytest.CaptureFixture[str]) -> None:
    code, text = show(home, "[web]\nport = 8471\n[channels.webhook.demo]\nsenders = ['a b', 'c']\n", capsys)
    said = tomllib.loads(text)
    defaults = Config().model_dump(mode="json")
    expected = {**defaults, "agents": {"echo": {}}, "web": {**defaults["web"], "port": 8471}}
    assert {name: table for name, table in said.items() if name != "channels"} == {
        name: table for name, table in expected.items() if name != "channels"
    }
    account = said["channels"]["webhook"]["demo"]
    assert (code, account["senders"], account["media"]["keep_days"]) == (0, ["a b", "c"], 7)
    assert "port = 8471 # default: 8470\n" in text
    assert 'senders = ["a b", "c"] # default: "owner"\n' in text
    assert 'host = "127.0.0.1"\n' in text


def test_a_server_of_tools_is_shown_without_what_its_address_may_hold(
    home: Home, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("OWN", "own-4711")
    far = "[mcp.far]\nurl = 'https://mcp.example.org/x?key=hidden-4711'\n[mcp.far.headers]\nX-Team = 'a'\n"
    code, text = show(home, far + "X-Own = { env = 'OWN' }\n[mcp.near]\ncommand = ['sh', '-v']\n", capsys)
    servers = tomllib.loads(text)["mcp"]
    assert (code, servers["near"]["command"], servers["far"]["headers"]) == (
        0,
        ["sh", "-v"],
        {"X-Team": "a", "X-Own": {"env": "OWN"}},
    )
    assert "4711" not in text
    assert 'command = ["sh", "-v"] # default: []' in text


def test_secrets_are_masked_and_their_source_is_told(
    home: Home, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("HOOK_TOKEN", "token-0815")
    until = {"secret": "whsec_" + "QUJE" * 11, "until": "2030-01-01T00:00:00Z"}
    both = {**SECRETS, "secrets": [SECRETS["secrets"][0], until]}
    write_private(home.credentials("webhook", "demo"), json.dumps(both).encode())
    table = "[channels.webhook.demo]\nowner = 'u'\ncredentials.file_token = { env = 'HOOK_TOKEN' }\n"
    code, text = show(home, table, capsys)
    file = home.credentials("webhook", "demo")
    assert code == 0
    assert f'ask_token = "{MASK}" # from {file}\n' in text
    assert f'file_token = "{MASK}" # from the environment: HOOK_TOKEN\n' in text
    assert (
        f'secrets = [{{ secret = "{MASK}" }}, {{ secret = "{MASK}", until = "2030-01-01T00:00:00+00:00" }}]'
        in text
    )
    assert "callback_secrets = []\n" in text
    for mode in ((), ("--json",)):
        _, text = show(home, table, capsys, *mode)
        assert not any(secret in text for secret in ("4711", "0815", "QUJD", "QUJE"))


def test_the_login_and_query_of_an_address_are_not_shown(
    home: Home, capsys: pytest.CaptureFixture[str]
) -> None:
    write_private(
        home.credentials("webhook", "demo"),
        json.dumps({**SECRETS, "callback_secrets": ["whsec_" + "QUJF" * 11]}).encode(),
    )
    table = f"[channels.webhook.demo]\nowner = 'u'\ncallback_url = '{URL}?key=s3cr3t'\n"
    _, text = show(home, table, capsys)
    assert f'callback_url = "{URL}?[redacted]" # default: ""\n' in text


def test_what_is_wrong_is_told_and_its_values_are_not_shown(
    home: Home, capsys: pytest.CaptureFixture[str]
) -> None:
    settings = (
        "[channels.webhook.demo]\nask_token = 's3cr3t'\n[channels.pidgeon.main]\n"
        "[agents.ecko]\nkey = 's3cr3t'\n[web]\nprot = 's3cr3t'\n"
    )
    code, text = show(home, settings, capsys)
    assert code == 2
    assert "s3cr3t" not in text
    assert f"# wrong: {home.config}: web.prot: no such setting: did you mean port?\n" in text
    assert "[channels.webhook.demo] # cannot be used, see above\nenabled = true\n" in text
    said: dict[str, Any] = tomllib.loads(text)
    assert said["web"]["port"] == 8470
    code, text = show(home, settings, capsys, "--json")
    said = json.loads(text)
    assert (code, len(said["wrong"])) == (2, 4)
    assert "s3cr3t" not in text


def test_an_account_without_secrets_has_no_table_of_them(
    home: Home, capsys: pytest.CaptureFixture[str]
) -> None:
    code, text = show(home, "[channels.console.local]\n", capsys, "--json")
    assert code == 0
    assert "credentials" not in json.loads(text)["channels"]["console"]["local"]


def test_odd_names_are_written_as_toml_wants_them(home: Home, capsys: pytest.CaptureFixture[str]) -> None:
    _, text = show(home, '[channels.webhook."a b"]\n', capsys)
    assert tomllib.loads(text)["channels"]["webhook"] == {"a?b": {"enabled": True}}


def test_a_file_that_cannot_be_read_is_the_error_itself(
    home: Home, capsys: pytest.CaptureFixture[str]
) -> None:
    write_private(home.config, b"[[[")
    assert main(["config", "show", "--home", str(home.root)]) == 2
    assert "not TOML" in capsys.readouterr().err


def test_a_profile_is_shown_with_its_agent(home: Home, capsys: pytest.CaptureFixture[str]) -> None:
    code, text = show(home, '[agents.fast]\ntype = "echo"\n[agents.odd]\ntype = "none"\n', capsys)
    assert code == 2
    assert tomllib.loads(text)["agents"] == {"echo": {}, "fast": {"type": "echo"}}
    assert "agents.odd.type: must name an installed agent" in text
