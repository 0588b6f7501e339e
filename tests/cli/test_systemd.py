"""What systemd is asked, and what is made of its answers."""

from pathlib import Path

import pytest

from bridge.cli import systemd
from bridge.cli.systemd import ServiceError
from tests.cli.fake_systemd import with_systemd, without_systemd


def test_its_answers_are_words(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    fake = with_systemd(tmp_path, monkeypatch)
    fake.say(active="failed", state="degraded")
    assert systemd.is_there()
    assert systemd.says("is-active", "turnbridge") == "failed"
    fake.say(state="offline", active="")
    assert not systemd.is_there()
    assert systemd.says("is-active", "turnbridge") == "unknown"


def test_without_it_nothing_is_known(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    without_systemd(tmp_path, monkeypatch)
    assert not systemd.is_there()
    assert systemd.says("is-active", "turnbridge") == "unknown"
    assert systemd.lingers()


@pytest.mark.parametrize(("said", "lingers"), [("yes", True), ("no", False), ("", True)])
def test_whether_services_stop_at_the_end_of_the_session(
    said: str, lingers: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with_systemd(tmp_path, monkeypatch).say(linger=said)
    assert systemd.lingers() is lingers


def test_a_unit_without_its_sandbox_is_known_by_its_status(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    fake = with_systemd(tmp_path, monkeypatch)
    assert systemd.is_sandboxed("turnbridge")
    fake.say(status="226")
    assert not systemd.is_sandboxed("turnbridge")


def test_what_it_refuses_is_told_in_its_words(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    fake = with_systemd(tmp_path, monkeypatch)
    systemd.systemctl("enable", "x")
    fake.say(fails="restart")
    with pytest.raises(ServiceError, match=r"^systemctl --user restart x: Unit is masked\.$"):
        systemd.systemctl("restart", "x")
    assert fake.asked == ["enable x", "restart x"]
    (tmp_path / "bin" / "systemctl").write_text("#!/bin/sh\nexit 5\n")
    with pytest.raises(ServiceError, match="code 5"):
        systemd.systemctl("daemon-reload")


def test_one_that_hangs_is_given_up(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with_systemd(tmp_path, monkeypatch)
    (tmp_path / "bin" / "systemctl").write_text("#!/bin/sh\nexec sleep 60\n")
    monkeypatch.setattr(systemd, "CALL_SECONDS", 0.05)
    with pytest.raises(ServiceError, match="try again"):
        systemd.systemctl("daemon-reload")
