"""``reload``: has the daemon read its settings again."""

import pytest

from bridge.cli.main import main
from tests.cli.socket_daemon import refusal, short_home, socket_daemon


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
