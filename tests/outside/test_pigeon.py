"""An adapter from outside of the project: it is found, it passes the suite, and spoilt ones do not."""

import os
import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from bridge.registry import channels, kits
from tests.outside.mistakes import PIGEONS, WEBHOOKS, Spoilt, adapter, never_hangs_up, notices

HERE = Path(__file__).parent / "pigeon"
ROOT = Path(__file__).parents[2]


@pytest.fixture
def outside(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Pigeon lies on the path, with its metadata, as if it had been installed."""
    monkeypatch.syspath_prepend(HERE)
    yield
    for name in ("pigeon", "pigeon_kit"):
        sys.modules.pop(name, None)


def test_it_is_found_like_our_own(outside: None) -> None:
    assert {"pigeon", "webhook"} <= set(channels().names())
    assert channels().load("pigeon").name == "pigeon"
    assert "pigeon" in kits().names()


def test_its_authors_run_passes_without_anything_else_of_ours(tmp_path: Path) -> None:
    """As its author runs it: their folder, their file, no configuration and no conftest of ours."""
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join([str(HERE), str(ROOT)])}
    environment.pop("PYTEST_ADDOPTS", None)
    plain = ["-q", "-p", "no:cacheprovider", "-c", os.devnull, "--rootdir", str(tmp_path), "-W", "error"]
    command = [
        sys.executable,
        "-m",
        "pytest",
        *plain,
        "-k",
        "pigeon",
        "--noconftest",
        str(HERE / "contract.py"),
    ]
    run = subprocess.run(command, cwd=tmp_path, env=environment, capture_output=True, text=True, timeout=120)
    assert run.returncode == 0, run.stdout
    passed = re.search(r"(\d+) passed", run.stdout)
    assert passed is not None
    assert int(passed[1]) > 25
    assert "failed" not in run.stdout


def named(spoilt: Spoilt) -> str:
    return f"{spoilt.by}, {spoilt.check}"


@pytest.mark.parametrize("spoilt", PIGEONS, ids=named)
def test_the_suite_notices_a_spoilt_pigeon(spoilt: Spoilt, outside: None) -> None:
    notices(spoilt, "pigeon")


@pytest.mark.parametrize("spoilt", WEBHOOKS, ids=named)
def test_the_suite_notices_a_spoilt_webhook(spoilt: Spoilt) -> None:
    notices(spoilt, "webhook")


def test_the_suite_notices_connections_that_are_never_given_back(
    outside: None, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Only by its deadline, so the check is run with a short one."""
    monkeypatch.setattr("bridge.channel.testing.checks.stage.DEADLINE_SECONDS", 1.0)
    notices(
        adapter("a held connection", "hanging_up_on_a_file_leaves_nothing_behind", never_hangs_up), "pigeon"
    )
