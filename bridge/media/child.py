"""Strangers' bytes are decoded in a process of its own: with limits of time and memory, and nothing to reach.

``run_limited`` starts one of our modules, which calls ``limit`` first of all. Blocks.
"""

import os
import resource
import subprocess
import sys
from collections.abc import Sequence
from contextlib import suppress
from typing import Final

FAILED: Final = 1  # broken, or over a limit
LACKING: Final = 3  # the library is not installed
TOO_LONG: Final = 4
_PASSED = ("PATH", "LD_LIBRARY_PATH", "TMPDIR")
_MIB: Final = 1_048_576


def run_limited(module: str, arguments: Sequence[str], seconds: float) -> int:
    """The exit code of ``python -m module arguments``; FAILED for what is ended after ``seconds``."""
    env = {name: os.environ[name] for name in _PASSED if name in os.environ}
    try:
        done = subprocess.run(
            [sys.executable, "-I", "-m", module, *arguments],
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            env=env,
            timeout=seconds,
            check=False,
            start_new_session=True,
        )
    except (OSError, subprocess.TimeoutExpired):
        return FAILED
    return done.returncode if done.returncode in (0, LACKING, TOO_LONG) else FAILED


def limit(cpu_seconds: int, memory_mib: int, file_mib: int) -> None:
    """Bound this process, also where whoever started it is gone. Some systems bound no memory."""
    limits = {
        resource.RLIMIT_CPU: cpu_seconds,
        resource.RLIMIT_AS: memory_mib * _MIB,
        resource.RLIMIT_FSIZE: file_mib * _MIB,
        resource.RLIMIT_CORE: 0,
    }
    for kind, value in limits.items():
        with suppress(ValueError, OSError):
            resource.setrlimit(kind, (value, value))
