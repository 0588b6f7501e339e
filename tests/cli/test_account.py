"""What commands about one account share: waiting until it has settled, and telling how it is."""

import argparse
from typing import Any

import pytest

from bridge.cli import account
from bridge.cli.account import add_account, named, settled, taken_up, tell
from bridge.errors import ConfigError
from bridge.paths import Home
from tests.cli.socket_daemon import short_home


@pytest.fixture
def home(tmp_path: Any) -> Home:
    return Home(tmp_path)


def component(state: str, **fields: Any) -> dict[str, Any]:
    return {"id": "a:b", "state": state, "enabled": True, "user_id": "u", "senders": "owner", **fields}


def status(*states: str) -> list[dict[str, Any]]:
    return [{"components": [component(state)]} for state in states]


def arguments(name: str) -> argparse.Namespace:
    parser = argparse.ArgumentParser()
    add_account(parser)
    parser.set_defaults(command=parser)
    return parser.parse_args([name])


def test_an_account_is_named_by_channel_and_account() -> None:
    assert named(arguments("a:b")) == ("a", "b")
    assert named(arguments("a"), "main") == ("a", "main")
    with pytest.raises(SystemExit):
        named(arguments("a"))
    with pytest.raises(ConfigError):
        named(arguments("a:b/c"))


def test_the_daemon_is_asked_to_change_it(home: Home, monkeypatch: pytest.MonkeyPatch) -> None:
    asked = []

    def ask(where: Home, command: dict[str, Any]) -> dict[str, Any]:
        asked.append(command)
        return status("connected")[0]

    monkeypatch.setattr(account, "ask_daemon", ask)
    found = taken_up(home, "a", "b", enabled=True)
    assert found is not None
    assert found["state"] == "connected"
    assert asked == [
        {"action": "channel_set", "channel": "a", "account": "b", "workspace": None, "enabled": True}
    ]


def test_an_account_that_starts_is_waited_for(home: Home, monkeypatch: pytest.MonkeyPatch) -> None:
    first, *later = status("starting", "stopping", "connected")
    monkeypatch.setattr(account, "ask_daemon", lambda where, command: later.pop(0))
    monkeypatch.setattr(account, "PAUSE_SECONDS", 0.0)
    found = settled(home, "a:b", first)
    assert found is not None
    assert found["state"] == "connected"
    assert later == []


def test_it_is_not_waited_for_without_end_and_not_at_all_when_it_is_gone(
    home: Home, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(account, "SETTLE_SECONDS", -1.0)
    found = settled(home, "a:b", status("starting")[0])
    assert found is not None
    assert found["state"] == "starting"
    assert settled(home, "a:none", status("starting")[0]) is None


@pytest.mark.parametrize(
    ("fields", "code", "said"),
    [
        ({"state": "connected"}, 0, "a:b: connected\n"),
        (
            {"state": "failed", "error": "its file is \x1b[0m missing"},
            1,
            "a:b: failed: its file is \ufffd[0m",
        ),
        ({"state": "disabled", "enabled": False, "user_id": None}, 0, "a:b: disabled\n"),
        ({"state": "connected", "user_id": None}, 0, "so it answers nobody: "),
        ({"state": "connected", "user_id": None, "senders": "anyone"}, 0, "but nobody has tools: "),
    ],
)
def test_its_state_is_told_with_what_is_missing(
    fields: dict[str, Any], code: int, said: str, home: Home, capsys: pytest.CaptureFixture[str]
) -> None:
    assert tell(home, component(**fields)) == code
    assert said in capsys.readouterr().out


def test_tools_that_nobody_can_have_are_told(home: Home, capsys: pytest.CaptureFixture[str]) -> None:
    tell(home, component("connected", user_id=None), wants_tools=True)
    assert "remote_tools is not in effect" in capsys.readouterr().out


def test_without_a_daemon_it_is_said_when_it_takes_effect(capsys: pytest.CaptureFixture[str]) -> None:
    with short_home() as home:
        account.not_running(home, "a:b is set")
    assert capsys.readouterr().out.startswith("a:b is set. No daemon runs: it takes effect when")
