"""``doctor``: lines or JSON, and a code that says whether there is a fault."""

import json

import pytest

from bridge.cli import examination
from bridge.cli.findings import Finding, fault, good, warning
from bridge.cli.main import main


def doctor(
    found: list[Finding], monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], *more: str
) -> tuple[int, str]:
    monkeypatch.setattr(examination, "examined", lambda _: found)
    code = main(["doctor", "--home", "/x", *more])
    return code, capsys.readouterr().out


def test_a_fault_is_a_line_with_its_cure_and_code_1(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    code, said = doctor([good("home", "/x"), fault("daemon", "down", "start it")], monkeypatch, capsys)
    assert code == 1
    assert said.splitlines()[1:3] == [
        "fault    daemon       down",
        "                      -> start it",
    ]


def test_a_warning_is_no_fault(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    code, said = doctor([warning("disk", "little", "free some")], monkeypatch, capsys)
    assert (code, said.splitlines()[-1]) == (0, "0 faults, 1 warning")


def test_for_programs_it_is_json(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    code, said = doctor([fault("daemon", "down", "start it")], monkeypatch, capsys, "--json")
    assert code == 1
    assert json.loads(said) == {
        "ok": False,
        "findings": [{"check": "daemon", "level": "fault", "text": "down", "cure": "start it"}],
    }
