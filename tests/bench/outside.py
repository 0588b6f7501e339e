"""Others' packages, in a virtual environment that is thrown away: what is measured against is never ours."""

import os
import subprocess
import sysconfig
import tempfile
import venv
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path

ROOT = Path(__file__).parents[2]
INSTALL_SECONDS = 900.0


class NotInstalledError(Exception):
    """pip could not bring the packages: no network, or none for this Python."""


@contextmanager
def environment(*arguments: str) -> Iterator[Path]:
    """A new environment in which ``pip install`` took ``arguments``; yields its Python.

    Raises:
        NotInstalledError: it cannot be had here.
    """
    with tempfile.TemporaryDirectory(prefix="tb-bench-") as folder:
        python = Path(folder) / "bin" / "python"
        try:
            venv.create(folder, with_pip=True)
            quiet = ["-m", "pip", "install", "--quiet", "--disable-pip-version-check"]
            subprocess.run(
                [str(python), *quiet, *arguments],
                cwd=ROOT, check=True, capture_output=True, timeout=INSTALL_SECONDS,
            )  # fmt: skip
        except (OSError, subprocess.SubprocessError):
            raise NotInstalledError(f"pip cannot install {' '.join(arguments)} here") from None
        yield python


def with_ours() -> Mapping[str, str]:
    """Variables with which such a Python also finds what is installed for us."""
    return {**os.environ, "PYTHONPATH": f"{sysconfig.get_path('purelib')}"}


def printed(python: Path, *arguments: str, variables: Mapping[str, str]) -> str:
    """What a module of this folder prints under ``python``."""
    done: subprocess.CompletedProcess[str] = subprocess.run(
        [str(python), "-m", *arguments],
        cwd=ROOT, env=dict(variables), check=True, stdout=subprocess.PIPE, text=True,
    )  # fmt: skip
    return done.stdout
