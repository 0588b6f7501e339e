"""``reload``: has the daemon read its settings again."""

import pytest

from bridge.cli.main import main
from bridge.cli.reload import started
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


def test_the_accounts_that_began_anew_are_named_and_none_where_nothing_changed(
    capsys: pytest.CaptureFixture[str],
) -> None:
    before, after = {"id": "a:old", "since_unix_seconds": 5}, {"id": "a:new", "since_unix_seconds": 2**40}
    for components, told in (([before, after], "started anew: a:new"), ([before], "nothing new")):
        with socket_daemon(status(*components)) as daemon:
            assert main(["reload", "--home", str(daemon.home.root)]) == 0
        assert told in capsys.readouterr().out


def test_an_account_began_anew_when_its_state_did_since_then() -> None:
    components = [
        {"id": "a:old", "since_unix_seconds": 5},
        {"id": "a:new", "since_unix_seconds": 6},
        {"id": "a:x"},
    ]
    assert started({"components": components}, 6) == ["a:new"]
