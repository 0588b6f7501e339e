"""``service``: installed once the daemon answers, removed with nothing left, never over somebody else's."""

import json
from collections.abc import Iterator
from pathlib import Path

import pytest

from bridge.cli import service, service_unit
from bridge.cli.main import main
from bridge.cli.service_unit import unit_of
from bridge.paths import Home, write_private
from tests.cli.fake_systemd import FakeSystemd, with_systemd, without_systemd
from tests.cli.socket_daemon import short_home, socket_daemon


@pytest.fixture
def systemd(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> FakeSystemd:
    return with_systemd(tmp_path, monkeypatch)


@pytest.fixture(autouse=True)
def _anywhere(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(service_unit, "TEMPORARY", ())
    monkeypatch.setattr(service, "START_SECONDS", 0.0)
    monkeypatch.setattr(service, "PAUSE_SECONDS", 0.001)


@pytest.fixture
def stopped() -> Iterator[Home]:
    """A home whose daemon does not run."""
    with short_home() as home:
        write_private(home.config, b"")
        yield home


def run(where: Home, *words: str) -> int:
    return main(["service", *words, "--home", str(where.root)])


def test_it_is_installed_enabled_and_started(
    systemd: FakeSystemd, capsys: pytest.CaptureFixture[str]
) -> None:
    with socket_daemon() as daemon:
        write_private(daemon.home.config, b"")
        assert run(daemon.home, "install") == 0
        unit = unit_of(daemon.home)
        assert unit.read() == service_unit.text_of(daemon.home)
    assert systemd.asked == ["daemon-reload", f"enable {unit.name}", f"restart {unit.name}"]
    said = capsys.readouterr().out
    assert f"{unit.path}: installed and running; its log: journalctl --user -u {unit.name}" in said
    assert "loginctl" not in said


def test_who_logs_out_is_told_how_to_keep_it(
    systemd: FakeSystemd, capsys: pytest.CaptureFixture[str]
) -> None:
    systemd.say(linger="no")
    with socket_daemon() as daemon:
        write_private(daemon.home.config, b"")
        assert run(daemon.home, "install") == 0
    assert "to keep it: loginctl enable-linger" in capsys.readouterr().out


def test_a_unit_is_only_shown_when_that_is_asked(
    stopped: Home, systemd: FakeSystemd, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run(stopped, "install", "--print") == 0
    assert capsys.readouterr().out == service_unit.text_of(stopped)
    assert (systemd.asked, unit_of(stopped).read()) == ([], None)


def test_a_daemon_that_does_not_come_up_is_told(
    stopped: Home, systemd: FakeSystemd, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run(stopped, "install") == 1
    assert "the daemon does not answer: see why: journalctl" in capsys.readouterr().err


def test_a_system_that_allows_no_sandbox_is_told_as_such(
    stopped: Home, systemd: FakeSystemd, capsys: pytest.CaptureFixture[str]
) -> None:
    systemd.say(status="226")
    assert run(stopped, "install") == 1
    assert "this system allows it no sandbox: docs/install.md" in capsys.readouterr().err


@pytest.mark.parametrize("ending", [{"active": "failed"}, {"status": "226"}])
def test_one_that_cannot_come_up_is_not_waited_for(
    ending: dict[str, str], stopped: Home, systemd: FakeSystemd, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(service, "START_SECONDS", 600.0)
    systemd.say(**ending)
    assert run(stopped, "install") == 1


def test_one_that_comes_up_slowly_is_waited_for(
    stopped: Home, systemd: FakeSystemd, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(service, "START_SECONDS", 60.0)
    answers = iter([False, False, True])
    monkeypatch.setattr(service, "answers", lambda _: next(answers))
    assert run(stopped, "install") == 0


def test_a_daemon_in_the_foreground_is_not_pushed_aside(
    systemd: FakeSystemd, capsys: pytest.CaptureFixture[str]
) -> None:
    systemd.say(active="inactive")
    for answer in ((), (b"nonsense\n",)):
        with socket_daemon(*answer) as daemon:
            write_private(daemon.home.config, b"")
            assert run(daemon.home, "install") == 1
        assert "that is no service: stop it first: turnbridge stop --home " in capsys.readouterr().err
    assert systemd.asked == []


def test_without_systemd_it_is_said_what_another_manager_runs(
    stopped: Home, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    without_systemd(tmp_path, monkeypatch)
    assert run(stopped, "install") == 1
    said = capsys.readouterr().err
    assert "let another service manager run: " in said
    assert f"run --home {stopped.root}" in said
    assert unit_of(stopped).read() is None


def test_wrong_settings_are_told_before_anything_is_done(stopped: Home, systemd: FakeSystemd) -> None:
    write_private(stopped.config, b"[[[")
    assert run(stopped, "install") == 2
    assert systemd.asked == []


def test_it_is_stopped_and_removed_and_the_home_stays(stopped: Home, systemd: FakeSystemd) -> None:
    unit = unit_of(stopped)
    unit.path.parent.mkdir(parents=True)
    unit.path.write_text(service_unit.text_of(stopped))
    assert run(stopped, "uninstall") == 0
    assert (unit.read(), stopped.config.exists()) == (None, True)
    assert systemd.asked == [f"disable --now {unit.name}", "daemon-reload", f"reset-failed {unit.name}"]
    assert run(stopped, "uninstall") == 0
    assert len(systemd.asked) == 3


def test_what_its_user_added_to_it_is_named_and_stays(
    stopped: Home, systemd: FakeSystemd, capsys: pytest.CaptureFixture[str]
) -> None:
    unit = unit_of(stopped)
    own = unit.path.with_name(f"{unit.name}.service.d")
    own.mkdir(parents=True)
    unit.path.write_text(service_unit.text_of(stopped))
    systemd.say(fails="reset-failed")  # it had not failed
    assert run(stopped, "uninstall") == 0
    assert f"what was set by systemctl --user edit stays, too: {own}" in capsys.readouterr().out
    assert own.is_dir()


def test_a_unit_of_a_systemd_that_is_gone_is_removed_all_the_same(
    stopped: Home, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    without_systemd(tmp_path, monkeypatch)
    unit = unit_of(stopped)
    unit.path.parent.mkdir(parents=True)
    unit.path.write_text(service_unit.text_of(stopped))
    assert run(stopped, "uninstall") == 0
    assert unit.read() is None


def test_the_status_tells_by_its_code(
    stopped: Home, systemd: FakeSystemd, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run(stopped, "status") == 1
    assert "not installed" in capsys.readouterr().out
    unit = unit_of(stopped)
    unit.path.parent.mkdir(parents=True)
    unit.path.write_text(service_unit.text_of(stopped))
    assert run(stopped, "status") == 0
    assert capsys.readouterr().out == f"{unit.name} runs, and is started with the machine\n"
    systemd.say(active="failed")
    assert run(stopped, "status") == 3
    assert f"{unit.name} is failed\nsee why: journalctl" in capsys.readouterr().out
    assert run(stopped, "status", "--json") == 3
    found = json.loads(capsys.readouterr().out)
    assert (found["unit"], found["installed"], found["active"]) == (unit.name, True, "failed")
    assert found["finding"]["level"] == "fault"


def test_the_service_of_another_home_whose_folder_has_the_same_name_is_left_alone(
    stopped: Home, systemd: FakeSystemd, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    other = Home(tmp_path / stopped.root.name)
    other.root.mkdir()
    write_private(other.config, b"")
    unit = unit_of(stopped)
    unit.path.parent.mkdir(parents=True)
    unit.path.write_text(service_unit.text_of(other))
    for action in ("install", "uninstall"):
        assert run(stopped, action) == 1
        assert f"{unit.path} is not this home's" in capsys.readouterr().err
    assert run(stopped, "status") == 1
    assert "is not this home's" in capsys.readouterr().out
    assert (systemd.asked, unit.read()) == ([], service_unit.text_of(other))
