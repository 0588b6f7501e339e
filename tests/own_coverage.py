"""Whether each module is covered to 95 % of its branches by its own tests: ``python -m tests.own_coverage``.

All tests run once, with each line's and branch's test noted. For ``bridge/x/y.py`` only the tests of
``tests/x/test_y.py`` count, for ``channels/y.py`` those of ``tests/channels/test_y.py``, and for a package's
``__init__.py`` those of ``tests/x/test_x.py``; what runs at import counts too. A module without branches is
judged by its lines. Exit 1 when any module is under the mark, unless ``--report`` is given.
"""

import argparse
import json
import os
import re
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import coverage

ROOT = Path(__file__).parent.parent
MARK_PERCENT = 95.0


@dataclass(frozen=True)
class Covered:
    module: str
    test: str
    percent: float


def test_file(module: str) -> str:
    """The test file that must cover ``module``, both relative to the root.

    >>> test_file("bridge/x/y.py"), test_file("channels/z.py"), test_file("bridge/x/__init__.py")
    ('tests/x/test_y.py', 'tests/channels/test_z.py', 'tests/x/test_x.py')
    """
    path = Path(module)
    folder = path.parent if path.parts[0] == "channels" else path.parent.relative_to("bridge")
    name = path.parent.name if path.name == "__init__.py" else path.stem
    return (Path("tests") / folder / f"test_{name}.py").as_posix()


test_file.__test__ = False  # type: ignore[attr-defined]  # its name misleads pytest


def percent(summary: dict[str, float]) -> float:
    """The share of branches that were taken; of lines, where there are no branches."""
    kind = "branches" if summary["num_branches"] else "lines"
    everything = summary["num_branches"] or summary["num_statements"]
    return 100.0 * summary[f"covered_{kind}"] / everything if everything else 100.0


def run_tests(data: Path, arguments: list[str]) -> int:
    command = [
        *(
            sys.executable,
            "-m",
            "pytest",
            "-q",
            "-n",
            "auto",
            "--cov",
            "--cov-branch",
            "--cov-context=test",
            "--cov-report=",
        ),
        *("-m", "not slow and not check", *arguments),
    ]
    # The core that knows contexts, on every Python.
    environment = os.environ | {"COVERAGE_FILE": str(data), "COVERAGE_CORE": "ctrace"}
    return subprocess.run(command, cwd=ROOT, env=environment).returncode


def judge(data: Path, root: Path = ROOT) -> Iterator[Covered]:
    """What the own test file of each module under ``root`` covers, by the coverage ``data``."""
    read = coverage.Coverage(data_file=str(data), config_file=str(root / "pyproject.toml"))
    read.load()
    measured = {Path(path).relative_to(root).as_posix() for path in read.get_data().measured_files()}
    with tempfile.TemporaryDirectory() as folder:
        report = Path(folder) / "report.json"
        for module in sorted(measured):
            own = test_file(module)
            contexts = ["^$", f"^{re.escape(own)}::"]
            read.json_report(morfs=[str(root / module)], outfile=str(report), contexts=contexts)
            summary = json.loads(report.read_text(encoding="utf-8"))["totals"]
            yield Covered(module, own, percent(summary))


def main() -> int:
    parser = argparse.ArgumentParser(description=str(__doc__).splitlines()[0])
    parser.add_argument("--report", action="store_true", help="print, but exit 0 also when a module is under")
    parser.add_argument("arguments", nargs="*", help="given to pytest; place them after --")
    args = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        data = Path(folder) / "coverage"
        failed = run_tests(data, args.arguments)
        if not data.exists():
            return failed or 1
        under = [found for found in judge(data) if found.percent < MARK_PERCENT]
    for found in under:
        print(f"{found.percent:5.1f} %  {found.module}  by {found.test}")
    print(f"{len(under)} modules are under {MARK_PERCENT:g} % of their branches by their own tests")
    return 0 if args.report else int(bool(under) or failed != 0)


if __name__ == "__main__":
    sys.exit(main())
