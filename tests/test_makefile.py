"""The Makefile's setup: what is said on the way, and where it fails, with a Python that only plays pip."""

import subprocess
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent
PYTHON = """\
#!/bin/sh
case "$*" in
--version) echo "Python 3.99" ;;
"-m venv "*) mkdir -p "$3/bin" && cp "$0" "$3/bin/python" ;;
"-m pip "*)
    echo "Looking in indexes: file:///nowhere"
    echo "Collecting aiohttp>=3.10 (from turnbridge)"
    echo "WARNING: the index nowhere is ignored" >&2
    [ "$PIP_CODE" = 0 ] || echo "ERROR: no aiohttp could be found" >&2
    echo "Installing collected packages: aiohttp"
    exit "$PIP_CODE" ;;
esac
"""


@pytest.fixture
def python(tmp_path: Path) -> Path:
    path = tmp_path / "python"
    path.write_text(PYTHON)
    path.chmod(0o700)
    return path


def make(python: Path, code: int) -> subprocess.CompletedProcess[str]:
    venv = python.parent / "venv"
    command = ["make", "venv", f"VENV={venv}", f"PYTHON={python}"]
    environment = {"PATH": "/usr/local/bin:/usr/bin:/bin", "PIP_CODE": str(code)}
    return subprocess.run(command, cwd=ROOT, env=environment, capture_output=True, text=True, timeout=30)


def test_a_setup_that_succeeds_tells_what_it_takes_and_none_of_pip_s_warnings(python: Path) -> None:
    done = make(python, 0)
    assert done.returncode == 0
    assert done.stdout.splitlines()[1:] == ["  aiohttp>=3.10", "installing all of them ..."]
    assert done.stderr == ""
    assert (python.parent / "venv" / ".stamp").exists()


def test_a_setup_that_fails_says_why_and_is_repeated(python: Path) -> None:
    done = make(python, 1)
    assert done.returncode == 2
    assert "ERROR: no aiohttp could be found" in done.stderr
    assert not (python.parent / "venv" / ".stamp").exists()
