"""The crash runs in their short form, and that they catch what they are for. ``make crash`` is the long one.

Each is a process of its own with deadlines of its own; see ``tests/crash/main.py``.
"""

import re
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
SECONDS = 110  # on a busy machine; about ten on an idle one


def crash(*args: str, seed: int = 7) -> tuple[int, str]:
    ended = subprocess.run(
        [sys.executable, "-m", "tests.crash.main", "--seed", f"{seed}", *args],
        cwd=ROOT,
        capture_output=True,
        text=True,
        timeout=SECONDS,
    )
    return ended.returncode, ended.stdout + ended.stderr[-2000:]


def test_a_killed_daemon_loses_and_doubles_nothing() -> None:
    code, told = crash("--short")
    assert code == 0, told
    assert "breaches: 0" in told


@pytest.mark.parametrize(
    ("variant", "kills", "breach"),
    [
        ("ack-first", 3, "acknowledged and not stored"),
        ("no-unique-key", 3, "stored twice"),
        ("lost-recalls", 1, "not over|answered after its recall|ran although it was recalled"),
    ],
)
def test_a_daemon_that_is_wrong_on_purpose_is_caught(variant: str, kills: int, breach: str) -> None:
    """A few kills on a busy machine may miss the moment, so another seed has its turn then."""
    code, told = 0, ""
    for seed in (7, 8, 9):
        code, told = crash("--variant", variant, "--kills", str(kills), seed=seed)
        if code == 1 and re.search(breach, told):
            return
    pytest.fail(f"exit code {code}: {told}")


@pytest.mark.parametrize(
    ("variants", "kills", "breaches"),
    [
        (
            "lost-reasons+said-twice+runs-refused+runs-twice",
            1,
            {
                "no turn and no reason|no answer and no report",
                "a command was answered twice",
                "a call ran without a yes",
                "a call ran twice",
            },
        ),
        (
            "stops-nothing+answered-again",
            1,
            {"answered although it was stopped", "answered by two replies|not over"},
        ),
        (
            "leaves-behind+lost-choices",
            3,
            {"processes outlived their daemon", "what was chosen is not in effect"},
        ),
    ],
)
def test_each_wrong_of_a_daemon_that_is_wrong_in_many_ways_is_caught(
    variants: str, kills: int, breaches: set[str]
) -> None:
    """As above; a life that is long enough for people to be asked, and to answer."""
    missing, told = set(breaches), ""
    for seed in (7, 8, 9, 10):
        _, told = crash("--variant", variants, "--kills", f"{kills}", "--life", "3", seed=seed)
        missing -= {breach for breach in missing if re.search(breach, told)}
        if not missing:
            return
    pytest.fail(f"not caught: {missing}: {told}")
