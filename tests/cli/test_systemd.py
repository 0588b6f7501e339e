"""What systemd is asked, and what is made of its answers."""

import os
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
    assert systemd.why("turnbridge") == "see why: journalctl --user -u turnbridge -n 50"
    for status in ("217", "226"):
        fake.say(status=status)
        assert not systemd.is_sandboxed("turnbridge")
        assert "no sandbox: docs/install.md" in systemd.why("turnbridge")


def test_what_it_refuses_is_told_in_its_words(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    fake = with_systemd(tmp_path, monkeypatch)
    systemd.systemctl("enable", "x")
    fake.say(fails="restart")
    systemd.forget("x")
    with pytest.raises(ServiceError, match=r"^systemctl --user restart x: Unit is masked\.$"):
        systemd.systemctl("restart", "x")
    assert fake.asked == ["enable x", "reset-failed x", "restart x"]
    (tmp_path / "bin" / "systemctl").write_text("#!/bin/sh\nexit 5\n")
    with pytest.raises(ServiceError, match="code 5"):
        systemd.systemctl("daemon-reload")


def test_it_is_found_from_sudo_and_su_which_do_not_tell_the_way(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with_systemd(tmp_path, monkeypatch)
    (tmp_path / "bin" / "systemctl").write_text('#!/bin/sh\necho "$XDG_RUNTIME_DIR"\n')
    monkeypatch.setattr(systemd, "RUNTIME", tmp_path / "run")
    monkeypatch.delenv("XDG_RUNTIME_DIR", raising=False)
    assert systemd.says("is-active", "x") == "unknown"
    own = tmp_path / "run" / str(os.geteuid())
    own.mkdir(parents=True)
    assert systemd.says("is-active", "x") == str(own)
    monkeypatch.setenv("XDG_RUNTIME_DIR", "/told")
    assert systemd.says("is-active", "x") == "/told"


def test_whether_it_runs_the_machine_is_seen_by_its_folder(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for place, is_there in ((tmp_path, True), (tmp_path / "none", False)):
        monkeypatch.setattr(systemd, "BOOTED", place)
        assert systemd.is_booted() is is_there


def test_one_that_hangs_is_given_up(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with_systemd(tmp_path, monkeypatch)
    (tmp_path / "bin" / "systemctl").write_text("#!/bin/sh\nexec sleep 60\n")
    monkeypatch.setattr(systemd, "CALL_SECONDS", 0.05)
    with pytest.raises(ServiceError, match="try again"):
        systemd.systemctl("daemon-reload")
