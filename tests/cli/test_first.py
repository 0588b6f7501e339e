"""The questions of ``init``: asked again until an answer will do, or answered by lines."""

import socket
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from bridge import registry
from bridge.agents.contract import AgentSettings, AgentSpec
from bridge.cli import first as module
from bridge.cli.answers import Given, Person
from bridge.cli.first import first, free_port, is_free, text_of
from bridge.cli.first_agent import ChosenAgent
from bridge.config import load
from bridge.errors import ConfigError
from bridge.paths import Home, write_private
from tests.daemons import free_port as any_port

ECHO = ChosenAgent("echo")


@pytest.fixture
def where(tmp_path: Path) -> Home:
    return Home(tmp_path / "home")


@pytest.fixture(autouse=True)
def _one_agent(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(registry, "agents", lambda: Agents("echo"))


class Agents:
    """Those that are installed."""

    def __init__(self, *names: str) -> None:
        self._names = list(names)

    def names(self) -> list[str]:
        return self._names

    def load(self, name: str) -> AgentSpec:
        return AgentSpec(name, AgentSettings, create=lambda *_: None)  # type: ignore[arg-type]  # made nowhere


@pytest.fixture
def typed(monkeypatch: pytest.MonkeyPatch) -> Callable[..., list[str]]:
    """Let a person type these lines; returns the questions."""

    def types(*lines: str) -> list[str]:
        waiting, asked = list(lines), []

        def answer(question: str) -> str:
            asked.append(question)
            if not waiting:
                raise EOFError
            return waiting.pop(0)

        monkeypatch.setattr("builtins.input", answer)
        return asked

    return types


def test_a_person_who_takes_what_is_offered_types_only_the_channel(
    where: Home, typed: Callable[..., list[str]], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(module, "is_free", lambda port: port != 8470)
    asked = typed("feishu", "", "", "")
    assert first(where, Person()) == {
        "channel": "feishu", "account": "main", "agent": ECHO, "port": 8471, "public_url": "",
    }  # fmt: skip
    assert asked[0] == f"Which channel ({', '.join(registry.channels().names())}): "
    assert asked[1:3] == [
        "A name for the account [main]: ",
        "The port of this machine for webhooks and health [8471]: ",
    ]


def test_the_console_is_reached_by_nobody_else(where: Home, typed: Callable[..., list[str]]) -> None:
    asked = typed("console", "", str(any_port()))
    assert first(where, Person())["account"] == "local"
    assert len(asked) == 3


def test_a_person_is_asked_again_and_told_why(
    where: Home, typed: Callable[..., list[str]], capsys: pytest.CaptureFixture[str]
) -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        busy = taken.getsockname()[1]
        typed(
            "pigeon",
            "",
            "webhook",
            "a b",
            "x",
            str(busy),
            "x",
            str(any_port()),
            "bot.example",
            "https://bot.example",
        )
        chosen = first(where, Person())
    assert (chosen["channel"], chosen["account"], chosen["public_url"]) == (
        "webhook",
        "x",
        "https://bot.example",
    )
    said = capsys.readouterr().out.splitlines()
    assert said[0].startswith("choose one of: ")
    assert said[2] == "a name has up to 64 letters, digits, _ and -, and nothing else: rename it"
    assert said[3:5] == [f"the port {busy} is taken: choose another", "a port is a number"]
    assert "web.public_url: must be an address" in said[5]


def test_a_person_who_gives_up_gets_nothing_written(where: Home, typed: Callable[..., list[str]]) -> None:
    typed(*["pigeon"] * 9, "webhook")
    with pytest.raises(ConfigError, match="nothing was written"):
        first(where, Person())


def test_lines_answer_and_what_is_not_ours_is_left(where: Home) -> None:
    port = any_port()
    lines = ("channel = webhook", "owner=me", "", f"port={port}", "odd", "public_url=https://bot.example")
    given = Given("\n".join(lines))
    chosen = first(where, given)
    assert (chosen["channel"], chosen["account"], chosen["port"]) == ("webhook", "main", port)
    assert given.left == "\nowner=me\n\n\nodd\n"  # each in its place, by which a mistake is named


@pytest.mark.parametrize(
    ("lines", "words"),
    [
        ("", "channel: choose one of"),
        ("channel=webhook\naccount=a/b", "account: a name has"),
        ("channel=webhook\nport=70000", "port: .*less than or equal to 65535"),
        ("channel=webhook\npublic_url=https://u:p@bot.example", "public_url: .*without login"),
    ],
)
def test_a_wrong_line_is_an_error_with_its_key(lines: str, words: str, where: Home) -> None:
    with pytest.raises(ConfigError, match=f"^{words}"):
        first(where, Given(lines))


def test_several_agents_are_a_question(where: Home, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(registry, "agents", lambda: Agents("other", "echo"))
    lines = f"channel=console\nport={any_port()}\n"
    assert first(where, Given(lines))["agent"].name == "echo"
    assert first(where, Given(lines + "agent=other"))["agent"].name == "other"
    monkeypatch.setattr(registry, "agents", lambda: Agents("other"))
    assert first(where, Given(lines))["agent"].name == "other"


def test_a_port_is_offered_that_nobody_listens_on(monkeypatch: pytest.MonkeyPatch) -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        assert not is_free(taken.getsockname()[1])
    assert is_free(any_port())
    monkeypatch.setattr(module, "is_free", lambda _: False)
    assert free_port() == 8470  # which the daemon then refuses with its own words


def write(where: Home, chosen: dict[str, Any]) -> None:
    where.private_dir(where.root)
    write_private(where.config, text_of(where, chosen).encode())


def test_the_settings_say_what_was_chosen(where: Home) -> None:
    write(where, {"agent": ECHO, "port": 8471, "public_url": 'https://bot.example/"x'})
    config = load(where.config)
    assert (config.web.port, config.web.public_url, config.daemon.agent) == (
        8471,
        'https://bot.example/"x',
        "echo",
    )
    assert where.config.read_text().startswith("# Turnbridge's settings.")
    write(where, {"agent": ECHO, "port": 8471})
    assert load(where.config).web.public_url == ""


def test_the_console_is_there_beside_any_channel_and_not_twice_where_it_is_the_one_that_is_chosen(
    where: Home,
) -> None:
    write(where, {"channel": "feishu", "agent": ECHO, "port": 8471})
    assert load(where.config).channels.keys() == {"console"}
    write(where, {"channel": "console", "account": "mine", "agent": ECHO, "port": 8471})
    assert load(where.config).channels == {}  # whoever signs it in writes it, under its own name


@pytest.mark.parametrize(
    ("address", "warned"),
    [
        ("http://bot.example.org", True),
        ("https://bot.example.org", False),
        ("http://localhost:8470", False),
        ("http://127.0.0.1:8470", False),
        ("http://[::1]", False),
        ("http://10.0.0.1", True),
    ],
)
def test_an_address_that_platforms_do_not_take_is_warned_of(
    address: str, warned: bool, where: Home, capsys: pytest.CaptureFixture[str]
) -> None:
    chosen = first(where, Given(f"channel=webhook\nport={any_port()}\npublic_url={address}"))
    assert chosen["public_url"] == address
    assert ("want https" in capsys.readouterr().out) is warned
