"""``config check``: every problem in one go, and nothing secret in any of them."""

import json
from pathlib import Path

import pytest

from bridge.cli.main import main
from bridge.paths import Home, write_private

SECRETS = {"secrets": ["whsec_" + "QUJD" * 11], "ask_token": "token-4711"}


def check(home: Home, settings: str, capsys: pytest.CaptureFixture[str]) -> tuple[int, list[str]]:
    write_private(home.config, settings.encode())
    code = main(["config", "check", "--home", str(home.root)])
    return code, capsys.readouterr().out.splitlines()


@pytest.fixture
def home(tmp_path: Path) -> Home:
    home = Home(tmp_path)
    path = home.credentials("webhook", "demo")
    home.private_dir(path.parent)
    write_private(path, json.dumps(SECRETS).encode())
    return home


def test_good_settings_are_said_to_be_good(home: Home, capsys: pytest.CaptureFixture[str]) -> None:
    code, lines = check(home, "[agents.echo]\n[channels.webhook.demo]\n", capsys)
    assert (code, lines) == (0, [f"{home.config}: good"])


def test_every_problem_of_accounts_and_agents_is_a_line(
    home: Home, capsys: pytest.CaptureFixture[str]
) -> None:
    settings = """
        [daemon]
        agent = "ecko"
        [agents.echo]
        x = 1
        [channels.webhook.demo]
        ownr = "u1"
        enabled = "yes"
        [channels.webhook.none]
        [channels.pidgeon.main]
    """
    code, lines = check(home, settings, capsys)
    assert code == 2
    assert [line.removeprefix(f"{home.config}: ") for line in lines] == [
        "channels.pidgeon: no such channel: installed are: feishu, webhook",
        "channels.webhook.demo.enabled: must be a boolean",
        "channels.webhook.demo.ownr: no such setting: did you mean owner?",
        f"{home.credentials('webhook', 'none')} is missing: create it with mode 0600",
        "agents.echo.x: no such setting: remove it",
        "agents.ecko: there is no agent called 'ecko'; installed: echo",
    ]


def test_problems_of_the_daemons_tables_are_all_told(home: Home, capsys: pytest.CaptureFixture[str]) -> None:
    code, lines = check(home, "[web]\nprot = 1\nhost = 2\n", capsys)
    assert (code, len(lines)) == (2, 2)


def test_a_file_that_is_no_toml_or_not_there_is_told(home: Home, capsys: pytest.CaptureFixture[str]) -> None:
    code, lines = check(home, "[[[", capsys)
    assert (code, len(lines)) == (2, 1)
    home.config.unlink()
    assert main(["config", "check", "--home", str(home.root)]) == 2
    assert "is missing" in capsys.readouterr().out
