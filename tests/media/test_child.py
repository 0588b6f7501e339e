"""A child process is bounded, whatever it does, and its code is one of a few."""

import resource
import sys
from pathlib import Path

import pytest

from bridge.media.child import FAILED, LACKING, TOO_LONG, limit, run_limited


@pytest.mark.parametrize(("code", "told"), [(0, 0), (LACKING, 3), (TOO_LONG, 4), (7, FAILED), (-9, FAILED)])
def test_only_known_codes_are_told(
    code: int, told: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    end = f"exit {code}" if code >= 0 else "kill -9 $$"
    script = tmp_path / "python"
    script.write_text(f"#!/bin/sh\necho $@ > {tmp_path}/said; env > {tmp_path}/env\n{end}\n")
    script.chmod(0o755)
    monkeypatch.setenv("MY_SECRET_KEY", "s3cr3t")
    monkeypatch.setattr(sys, "executable", str(script))
    assert run_limited("a.module", ["x", "y"], 20) == told
    assert (tmp_path / "said").read_text() == "-I -m a.module x y\n"
    assert "s3cr3t" not in (tmp_path / "env").read_text()


def test_what_takes_too_long_or_is_not_there_has_failed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    script = tmp_path / "python"
    script.write_text("#!/bin/sh\nexec sleep 60\n")
    script.chmod(0o755)
    monkeypatch.setattr(sys, "executable", str(script))
    assert run_limited("a.module", [], 0.1) == FAILED
    monkeypatch.setattr(sys, "executable", str(tmp_path / "none"))
    assert run_limited("a.module", [], 1) == FAILED


def test_limits_are_set_as_far_as_the_system_has_them(monkeypatch: pytest.MonkeyPatch) -> None:
    told: dict[int, tuple[int, int]] = {}

    def setrlimit(kind: int, values: tuple[int, int]) -> None:
        if kind == resource.RLIMIT_AS:
            raise ValueError("not here")
        told[kind] = values

    monkeypatch.setattr(resource, "setrlimit", setrlimit)
    limit(5, 100, 2)
    assert told[resource.RLIMIT_CPU] == (5, 5)
    assert told[resource.RLIMIT_FSIZE] == (2 << 20, 2 << 20)
    assert told[resource.RLIMIT_CORE] == (0, 0)
