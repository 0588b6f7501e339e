"""``reload``: has the daemon read its settings again."""

import pytest

from bridge.cli.main import main
from bridge.cli.reload import NOTHING
from tests.cli.socket_daemon import refusal, short_home, socket_daemon, status


def test_the_daemon_is_asked_to_reload(capsys: pytest.CaptureFixture[str]) -> None:
    with socket_daemon() as daemon:
        assert main(["reload", "--home", str(daemon.home.root)]) == 0
        assert daemon.command == {"action": "reload"}
    assert capsys.readouterr().out.startswith("read;")


def test_what_is_wrong_is_told(capsys: pytest.CaptureFixture[str]) -> None:
    with socket_daemon(refusal("config.toml: web.prot: no such setting")) as daemon:
        assert main(["reload", "--home", str(daemon.home.root)]) == 1
    assert "web.prot" in capsys.readouterr().err


def test_without_a_daemon_it_is_exit_code_3() -> None:
    with short_home() as home:
        assert main(["reload", "--home", str(home.root)]) == 3


@pytest.mark.parametrize(
    ("reloaded", "told"),
    [
        ({"started": ["a:new"]}, "read; started: a:new\n"),
        ({"anew": ["a:x", "a:y"], "stopped": ["a:off"]}, "read; started anew: a:x, a:y; stopped: a:off\n"),
        ({}, f"read; {NOTHING}\n"),
        (None, f"read; {NOTHING}\n"),
    ],
)
def test_what_became_of_accounts_is_told_and_nothing_of_those_that_only_changed_their_state(
    reloaded: dict[str, list[str]] | None, told: str, capsys: pytest.CaptureFixture[str]
) -> None:
    answer = status({"id": "a:bystander", "since_unix_seconds": 2**40})
    if reloaded is not None:
        answer["status"]["reloaded"] = reloaded
    with socket_daemon(answer) as daemon:
        assert main(["reload", "--home", str(daemon.home.root)]) == 0
    assert capsys.readouterr().out == told
