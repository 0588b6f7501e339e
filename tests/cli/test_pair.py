"""``pair``: shows a code, follows what becomes of it, and says who owns the account then."""

import json
import os
import re
import signal
from typing import Any

import pytest

from bridge.cli import pair, qr
from bridge.cli.main import main
from tests.cli.socket_daemon import SocketDaemon, refusal, socket_daemon, status

MAIN = {"id": "feishu:main", "state": "connected", "remote_tools": "none"}


def told(state: str, tries: int = 5, account: dict[str, Any] = MAIN, **words: str) -> dict[str, Any]:
    event = status(account)
    pairing = {"id": "p1", "account": "feishu:main", "state": state, "tries_left": tries, "seconds_left": 600}
    event["status"]["pairing"] = {**pairing, **words}
    return event


def commands(daemon: SocketDaemon) -> list[dict[str, Any]]:
    return [asked["command"] for asked in daemon.asked if asked["type"] == "daemon.control"]


def paired(daemon: SocketDaemon, *options: str) -> int:
    return main(["pair", "feishu:main", *options, "--home", str(daemon.home.root)])


def test_a_code_is_shown_and_whoever_sent_it_is_named(capsys: pytest.CaptureFixture[str]) -> None:
    answers = told("waiting"), told("waiting"), told("saving"), told("paired", owner="ou_7"), status(MAIN)
    with socket_daemon(*answers, each=True) as daemon:
        assert paired(daemon) == 0
        first, *asked, last = commands(daemon)
    shown = capsys.readouterr().out
    (code,) = re.findall(r"^    ([0-9]{4}-[0-9]{4})$", shown, re.MULTILINE)
    assert first == {
        "action": "pair",
        "account": "feishu:main",
        "code": code.replace("-", ""),
        "replace": False,
    }
    assert asked == [{"action": "pair_state", "id": "p1", "withdraw": False}] * 3
    assert last == {"action": "status"}
    assert "for 10 minutes" in shown
    assert "ou_7 is the owner of feishu:main now." in shown
    assert "turnbridge channels set feishu:main remote_tools=owner --home" in shown


def test_what_the_owner_may_do_is_told_as_it_is_then(capsys: pytest.CaptureFixture[str]) -> None:
    tools = status({**MAIN, "remote_tools": "owner"})
    with socket_daemon(told("paired", owner="ou_7"), tools, each=True) as daemon:
        assert paired(daemon, "--replace") == 0
        assert commands(daemon)[0]["replace"] is True
    assert "They may use tools in their direct chat" in capsys.readouterr().out


def test_each_pairing_has_another_code(capsys: pytest.CaptureFixture[str]) -> None:
    codes = set()
    for _ in range(3):
        with socket_daemon(told("expired"), each=True) as daemon:
            paired(daemon)
            codes.add(commands(daemon)[0]["code"])
    assert len(codes) == 3


def test_wrong_codes_are_told_while_it_waits(capsys: pytest.CaptureFixture[str]) -> None:
    answers = told("waiting"), told("waiting", 4), told("waiting", 4), told("guessed", 0)
    with socket_daemon(*answers, each=True) as daemon:
        assert paired(daemon) == 1
    said = capsys.readouterr()
    assert said.out.count("a wrong code came; 4 more") == 1
    assert said.err.startswith("turnbridge: too many wrong codes came")
    assert "for a new one: turnbridge pair feishu:main --home" in said.err


@pytest.mark.parametrize("state", pair.ENDS)
def test_every_other_end_is_exit_code_1_and_says_what_to_do(
    state: str, capsys: pytest.CaptureFixture[str]
) -> None:
    with socket_daemon(told("waiting"), told(state, reason="it is read-only"), each=True) as daemon:
        assert paired(daemon, "--replace") == 1
    said = capsys.readouterr().err
    assert "pair feishu:main --replace" in said
    assert ("it is read-only" in said) == (state == "failed")


def test_an_account_without_contact_is_told_so_beside_its_code(capsys: pytest.CaptureFixture[str]) -> None:
    with socket_daemon(told("expired", account={**MAIN, "state": "backoff"}), each=True) as daemon:
        paired(daemon)
    assert "has no contact with its platform right now (backoff)" in capsys.readouterr().out


def test_a_refusal_is_exit_code_1(capsys: pytest.CaptureFixture[str]) -> None:
    with socket_daemon(refusal("feishu:main has an owner already: give --replace")) as daemon:
        assert paired(daemon) == 1
    assert capsys.readouterr().err == "turnbridge: feishu:main has an owner already: give --replace\n"


def test_a_daemon_that_ends_meanwhile_is_exit_code_3(capsys: pytest.CaptureFixture[str]) -> None:
    with socket_daemon(told("waiting"), each=True) as daemon:
        assert paired(daemon) == 3


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_ending_the_command_withdraws_the_code(
    number: signal.Signals, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    asked: list[dict[str, Any]] = []

    def ask(where: object, command: dict[str, Any]) -> dict[str, Any]:
        asked.append(command)
        if len(asked) == 2:
            os.kill(os.getpid(), number)
        found: dict[str, Any] = json.loads(json.dumps(told("waiting")["status"]))
        return found

    monkeypatch.setattr(pair, "ask_daemon", ask)
    if number is signal.SIGINT:
        assert main(["pair", "feishu:main"]) == 130
    else:
        with pytest.raises(SystemExit) as ended:
            main(["pair", "feishu:main"])
        assert ended.value.code == 143
    assert asked[-1] == {"action": "pair_state", "id": "p1", "withdraw": True}


@pytest.mark.parametrize("account", ["feishu", ":main", "feishu:"])
def test_an_account_is_named_with_its_channel(account: str, capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as ended:
        main(["pair", account])
    assert ended.value.code == 2
    assert "write CHANNEL:ACCOUNT" in capsys.readouterr().err


def test_the_code_is_drawn_for_a_phone_to_read(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    drawn: list[str] = []
    monkeypatch.setattr(qr, "show", drawn.append)
    with socket_daemon(told("expired"), each=True) as daemon:
        paired(daemon)
        assert drawn == [commands(daemon)[0]["code"]]
