"""An adapter from outside of the project: it is found as ours are, and its author's run passes."""

import os
import re
import subprocess
import sys
from pathlib import Path

from bridge.registry import channels, kits
from tests.outside.mistakes import PIGEON

ROOT = Path(__file__).parents[2]


def test_it_is_found_like_our_own(outside: None) -> None:
    assert {"pigeon", "webhook"} <= set(channels().names())
    assert channels().load("pigeon").name == "pigeon"
    assert "pigeon" in kits().names()


def test_its_authors_run_passes_without_anything_else_of_ours(tmp_path: Path) -> None:
    """As its author runs it: their folder, their file, no configuration and no conftest of ours."""
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join([str(PIGEON), str(ROOT)])}
    environment.pop("PYTEST_ADDOPTS", None)
    plain = ["-q", "-p", "no:cacheprovider", "-c", os.devnull, "--rootdir", str(tmp_path), "-W", "error"]
    command = [
        sys.executable,
        "-m",
        "pytest",
        *plain,
        "-k",
        "[pigeon",  # not our own channels, which are tried with it in tests/channel/test_suite.py
        "--noconftest",
        str(PIGEON / "contract.py"),
    ]
    run = subprocess.run(command, cwd=tmp_path, env=environment, capture_output=True, text=True, timeout=120)
    assert run.returncode == 0, run.stdout
    passed = re.search(r"(\d+) passed", run.stdout)
    assert passed is not None
    assert int(passed[1]) > 25
    assert "failed" not in run.stdout
