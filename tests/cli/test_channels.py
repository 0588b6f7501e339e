"""``channels``: what it lists, switches, sets and signs out, with a daemon and without."""

import asyncio
import json
from collections.abc import Iterator

import pytest

from bridge.cli.main import main
from bridge.config import load
from bridge.paths import Home, write_private
from tests.cli.socket_daemon import socket_daemon, status
from tests.daemons import daemon, keep, short_home

SETTINGS = """\
[channels.webhook.demo] # mine
owner = "you"

[channels.webhook.off]
enabled = false
senders = ["a", "b"]

[channels.feishu.main]
app_id = "cli_1"
"""


@pytest.fixture
def home() -> Iterator[Home]:
    with short_home(SETTINGS) as home:
        keep(home, "off")
        yield home


def run(home: Home, *args: str) -> int:
    return main(["channels", *args, "--home", str(home.root)])


# --- without a daemon -----------------------------------------------------------------------------


def test_all_accounts_are_listed_whatever_their_state(home: Home, capsys: pytest.CaptureFixture[str]) -> None:
    assert run(home, "list") == 0
    lines = capsys.readouterr().out.splitlines()
    assert [line.split() for line in lines[:-1]] == [
        ["ACCOUNT", "STATE", "SENDERS", "TOOLS", "OWNER"],
        ["feishu:main", "broken", "-", "-", "-"],
        ["webhook:demo", "not", "running", "owner", "none", "you"],
        ["webhook:off", "disabled", "list", "of", "2", "none", "-"],
    ]
    assert "console, feishu, webhook" in lines[-1]
    assert "channels login CHANNEL" in lines[-1]


def test_the_list_as_json_has_the_reasons(home: Home, capsys: pytest.CaptureFixture[str]) -> None:
    assert run(home, "list", "--json") == 0
    found = json.loads(capsys.readouterr().out)
    assert "feishu" in found["channels"]
    broken, demo, _ = found["accounts"]
    assert "is missing: create it" in broken["reasons"][0]
    assert demo == {
        "account": "webhook:demo", "state": "not running",
        "senders": "owner", "tools": "none", "owner": "you",
    }  # fmt: skip


def test_without_settings_it_tells_how_to_begin(home: Home, capsys: pytest.CaptureFixture[str]) -> None:
    home.config.unlink()
    assert run(home, "list") == 0
    assert capsys.readouterr().out.startswith("Installed channels: ")


def test_switching_is_written_and_told_to_take_effect_later(
    home: Home, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run(home, "disable", "webhook:demo") == 0
    assert load(home.config).channels["webhook"]["demo"] == {"owner": "you", "enabled": False}
    assert "takes effect when it is started: " in capsys.readouterr().out
    assert run(home, "enable", "webhook:demo") == 0
    assert load(home.config).channels["webhook"]["demo"] == {"owner": "you", "enabled": True}


@pytest.mark.parametrize(
    ("args", "said"),
    [
        (["enable", "feishu:main"], "is not signed in: "),
        (["disable", "feishu:none"], "is not signed in: "),
        (["enable", "pigeon:main"], "no channel called"),
        (["enable", "webhook:../x"], "letters, digits"),
        (["set", "webhook:none", "owner=x"], "sign it in first"),
        (["set", "webhook:demo", "ownr=x"], "did you mean owner"),
        (["set", "webhook:demo", "ask_token=x"], "no place in a command"),
    ],
)
def test_what_is_wrong_is_exit_code_2_and_changes_nothing(
    home: Home, args: list[str], said: str, capsys: pytest.CaptureFixture[str]
) -> None:
    before = home.config.read_bytes()
    assert run(home, *args) == 2
    assert said in capsys.readouterr().err
    assert home.config.read_bytes() == before


@pytest.mark.parametrize("name", ["webhook", "webhook:", ":demo"])
def test_a_name_that_is_none_is_wrong_usage(
    home: Home, name: str, capsys: pytest.CaptureFixture[str]
) -> None:
    with pytest.raises(SystemExit) as ended:
        run(home, "enable", name)
    assert ended.value.code == 2
    assert "write CHANNEL:ACCOUNT" in capsys.readouterr().err


def test_settings_are_set_and_unset_and_the_rest_stays(
    home: Home, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run(home, "set", "webhook:demo", "senders=anyone", "owner=", "media.keep_days=3") == 0
    assert load(home.config).channels["webhook"]["demo"] == {"senders": "anyone", "media": {"keep_days": 3}}
    assert "[channels.webhook.demo] # mine\n" in home.config.read_text()
    assert "webhook:demo is set. No daemon runs" in capsys.readouterr().out


def test_signing_out_needs_the_daemon(home: Home) -> None:
    assert run(home, "logout", "webhook:demo") == 3
    assert home.credentials("webhook", "demo").exists()


# --- with a daemon --------------------------------------------------------------------------------


async def ask(home: Home, *args: str) -> int:
    return await asyncio.to_thread(run, home, *args)


async def test_a_running_daemon_takes_each_change_up_at_once(
    home: Home, capsys: pytest.CaptureFixture[str]
) -> None:
    async with daemon(home) as running:
        assert await ask(home, "disable", "webhook:demo") == 0
        assert capsys.readouterr().out == "webhook:demo: disabled\n"
        assert await ask(home, "enable", "webhook:demo") == 0
        assert capsys.readouterr().out == "webhook:demo: connected\n"
        assert await ask(home, "set", "webhook:demo", "senders=anyone", "owner=", "remote_tools=owner") == 0
        said = capsys.readouterr().out
        assert "nobody has tools" in said
        assert "pair webhook:demo" in said
        assert await running.ask("hello")
        capsys.readouterr()
        assert await ask(home, "list") == 0
        listed = [line.split()[:2] for line in capsys.readouterr().out.splitlines()]
        assert listed[1:4] == [
            ["feishu:main", "failed"], ["webhook:demo", "connected"], ["webhook:off", "disabled"],
        ]  # fmt: skip


async def test_an_account_that_does_not_work_is_exit_code_1_with_its_reason(
    home: Home, capsys: pytest.CaptureFixture[str]
) -> None:
    write_private(home.credentials("webhook", "off"), b"nonsense")
    async with daemon(home):
        assert await ask(home, "enable", "webhook:off") == 1
        assert "webhook:off: failed: " in capsys.readouterr().out
        assert await ask(home, "enable", "feishu:main") == 2
        assert "feishu:main is not signed in" in capsys.readouterr().err
        assert await ask(home, "disable", "webhook:none") == 2
        assert "webhook:none is not signed in" in capsys.readouterr().err


async def test_signing_out_leaves_nothing_and_touches_no_other(
    home: Home, capsys: pytest.CaptureFixture[str]
) -> None:
    async with daemon(home) as running:
        assert await running.ask("hello")
        assert await ask(home, "logout", "webhook:demo") == 0
        assert "is signed out" in capsys.readouterr().out
        assert not home.credentials("webhook", "demo").exists()
        assert load(home.config).channels["webhook"].keys() == {"off"}
        assert await ask(home, "logout", "webhook:demo") == 0
        assert "there is no account webhook:demo" in capsys.readouterr().out
        assert await ask(home, "list", "--json") == 0
        out = capsys.readouterr().out.splitlines()[-1]
        assert [one["account"] for one in json.loads(out)["accounts"]] == ["feishu:main", "webhook:off"]


def test_an_account_that_somebody_removes_meanwhile_is_told(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    with socket_daemon(status()) as fake:
        assert main(["channels", "enable", "webhook:demo", "--home", str(fake.home.root)]) == 1
        assert fake.command == {
            "action": "channel_set", "channel": "webhook", "account": "demo",
            "workspace": None, "enabled": True,
        }  # fmt: skip
    assert "is gone" in capsys.readouterr().err
    with socket_daemon(status()) as fake:
        write_private(fake.home.config, b"[channels.console.local]\n")
        set_ = ["channels", "set", "console:local", "owner=me", "--home", str(fake.home.root)]
        assert main(set_) == 1
