"""``confirm``: its exit code is the owner's answer, and anything but a yes is none."""

import json
import os
import signal
from typing import Any

import pytest

from bridge.cli import confirm
from bridge.cli.main import main
from tests.cli.socket_daemon import SocketDaemon, refusal, short_home, socket_daemon, status


def told(state: str) -> dict[str, Any]:
    event = status()
    event["status"]["question"] = {"id": "q1", "account": "feishu:main", "state": state, "seconds_left": 60}
    return event


def asked(daemon: SocketDaemon, *options: str) -> int:
    return main(["confirm", "Deploy now?", *options, "--home", str(daemon.home.root)])


def commands(daemon: SocketDaemon) -> list[dict[str, Any]]:
    return [each["command"] for each in daemon.asked if each["type"] == "daemon.control"]


@pytest.mark.parametrize(
    ("state", "code"), [("yes", 0), ("no", 1), ("unanswered", 1), ("failed", 2), ("withdrawn", 2)]
)
def test_the_exit_code_is_the_answer(state: str, code: int, capsys: pytest.CaptureFixture[str]) -> None:
    with socket_daemon(told("sending"), told("open"), told("open"), told(state), each=True) as daemon:
        assert asked(daemon) == code
        first, *others = commands(daemon)
    assert first == {"action": "confirm", "text": "Deploy now?", "account": "", "wait_seconds": 1800}
    assert others == [{"action": "question_state", "id": "q1", "withdraw": False}] * 3
    said = capsys.readouterr()
    assert said.err.startswith("asked by feishu:main; it waits for the answer")
    assert said.out == ("" if code == 2 else f"{confirm.ENDS[state][1]}\n")


def test_every_end_has_its_exit_code() -> None:
    assert {code for code, _ in confirm.ENDS.values()} == {0, 1, 2}


def test_an_account_and_the_time_can_be_given() -> None:
    with socket_daemon(told("yes"), each=True) as daemon:
        assert asked(daemon, "--account", "webhook:demo", "--wait", "60") == 0
        assert commands(daemon)[0]["account"] == "webhook:demo"
        assert commands(daemon)[0]["wait_seconds"] == 60


def test_what_is_refused_was_not_asked(capsys: pytest.CaptureFixture[str]) -> None:
    with socket_daemon(refusal("no account with a known owner has contact")) as daemon:
        assert asked(daemon) == 2
    assert capsys.readouterr().err == "turnbridge: no account with a known owner has contact\n"


def test_without_a_daemon_nothing_was_asked(capsys: pytest.CaptureFixture[str]) -> None:
    with short_home() as home:
        assert main(["confirm", "Deploy now?", "--home", str(home.root)]) == 3
    assert "no daemon runs" in capsys.readouterr().err


def test_a_daemon_that_ends_meanwhile_gives_no_answer(capsys: pytest.CaptureFixture[str]) -> None:
    with socket_daemon(told("open"), each=True) as daemon:
        assert asked(daemon) == 2


def test_what_the_terminal_gave_in_another_encoding_is_not_asked(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["confirm", "Deploy \udcff?"]) == 2
    assert "not UTF-8" in capsys.readouterr().err


@pytest.mark.parametrize("seconds", ["0", "14401", "soon", "-1", "1000000000"])
def test_a_wait_out_of_bounds_is_a_usage_error(seconds: str, capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as ended:
        main(["confirm", "Deploy now?", "--wait", seconds])
    assert ended.value.code == 2
    capsys.readouterr()


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_ending_the_command_withdraws_the_question(
    number: signal.Signals, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    asked: list[dict[str, Any]] = []

    def ask(where: object, command: dict[str, Any]) -> dict[str, Any]:
        asked.append(command)
        if len(asked) == 2:
            os.kill(os.getpid(), number)
        found: dict[str, Any] = json.loads(json.dumps(told("open")["status"]))
        return found

    monkeypatch.setattr(confirm, "ask_daemon", ask)
    if number is signal.SIGINT:
        assert main(["confirm", "Deploy now?"]) == 130
    else:
        with pytest.raises(SystemExit) as ended:
            main(["confirm", "Deploy now?"])
        assert ended.value.code == 143
    assert asked[-1] == {"action": "question_state", "id": "q1", "withdraw": True}
