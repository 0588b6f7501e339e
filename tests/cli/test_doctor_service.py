"""The doctor on the service: as it would be installed, running, and coming back."""

import os
from pathlib import Path

import pytest

from bridge.cli import service_unit
from bridge.cli.doctor_service import examined
from bridge.cli.findings import Level
from bridge.paths import Home, write_private
from tests.cli.fake_systemd import FakeSystemd, with_systemd


@pytest.fixture
def systemd(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> FakeSystemd:
    monkeypatch.setattr(service_unit, "TEMPORARY", ())
    return with_systemd(tmp_path, monkeypatch)


@pytest.fixture
def where(tmp_path: Path, systemd: FakeSystemd) -> Home:
    home = Home(tmp_path / "home")
    home.root.mkdir()
    write_private(home.config, b"")
    unit = service_unit.unit_of(home)
    unit.path.parent.mkdir(parents=True)
    unit.path.write_text(service_unit.text_of(home))
    return home


def test_one_that_runs_and_comes_back_is_well(where: Home) -> None:
    assert examined(where).level is Level.GOOD


def test_a_shell_with_another_path_is_no_reason_to_install_it_again(
    where: Home, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PATH", f"{os.environ['PATH']}:/opt/other/bin")
    assert examined(where).level is Level.GOOD


def test_where_it_may_have_no_sandbox_the_cure_is_in_the_documents(where: Home, systemd: FakeSystemd) -> None:
    systemd.say(active="activating", status="217")
    found = examined(where)
    assert (found.level, "docs/install.md" in found.cure) == (Level.FAULT, True)


def test_none_is_no_fault(where: Home) -> None:
    service_unit.unit_of(where).path.unlink()
    found = examined(where)
    assert (found.level, "service install" in found.text) == (Level.UNKNOWN, True)


def test_where_this_user_has_no_systemd_it_is_said_what_to_do_instead(
    where: Home, systemd: FakeSystemd
) -> None:
    systemd.say(state="offline")
    service_unit.unit_of(where).path.unlink()
    found = examined(where)
    assert "service install" not in found.text
    assert "this user has no systemd" in found.text
    assert f"run --home {where.root}" in found.text


@pytest.mark.parametrize(
    ("answers", "level", "words"),
    [
        ({"active": "failed"}, Level.FAULT, "turnbridge-home is failed"),
        ({"enabled": "disabled"}, Level.WARNING, "runs and is disabled"),
        ({"linger": "no"}, Level.WARNING, "stops when you log out"),
    ],
)
def test_what_is_not_well_is_told_with_its_cure(
    answers: dict[str, str], level: Level, words: str, where: Home, systemd: FakeSystemd
) -> None:
    systemd.say(**answers)
    found = examined(where)
    assert (found.level, words in found.text, bool(found.cure)) == (level, True, True)


def test_one_that_is_not_as_it_would_be_installed_now_is_told(where: Home) -> None:
    write_private(where.config, b"[daemon]\nworkspace = '/srv/work'\n")
    found = examined(where)
    assert (found.level, "install it again" in found.cure) == (Level.WARNING, True)


def test_with_wrong_settings_it_cannot_be_compared(where: Home) -> None:
    write_private(where.config, b"[[[")
    found = examined(where)
    assert (found.level, "not TOML" in found.text) == (Level.FAULT, True)


def test_another_homes_service_is_none(where: Home) -> None:
    service_unit.unit_of(where).path.write_text("[Unit]\nDescription=Turnbridge of /another/home\n")
    found = examined(where)
    assert (found.level, "is not this home's" in found.text) == (Level.UNKNOWN, True)
