"""P15: how many packages the default install brings, and how large it is, against given figures of a peer."""

import json
import subprocess
from collections.abc import Callable
from pathlib import Path

from tests.bench.figures import Figure
from tests.bench.outside import ROOT, NotInstalledError, environment

PEER_PACKAGES, PEER_MIB = 92, 302  # nanobot's default install, taken as given
OF_PIP = ("pip", "setuptools")
MIB = 1_048_576


def measure(rounds: int, say: Callable[[str], None]) -> list[Figure]:
    """Once, however many rounds: nothing in it varies."""
    try:
        with environment("--constraint", "constraints.txt", str(ROOT)) as python:
            packages, size = _packages(python), _bytes(python)
    except NotInstalledError as error:
        say(f"P15 is left out: {error}")
        return []
    say(f"P15 {len(packages)} packages, {size / MIB:.0f} MiB: {', '.join(packages)}")
    return [
        _figure("packages", len(packages), PEER_PACKAGES, 0.5, 0.4, f"{len(packages)} packages, theirs 92"),
        _figure("size", size / MIB, PEER_MIB, 0.4, 0.3, f"{size / MIB:.0f} MiB, theirs 302 MiB"),
    ]


def _packages(python: Path) -> list[str]:
    listed = subprocess.run(
        [str(python), "-m", "pip", "list", "--format", "json", "--disable-pip-version-check"],
        capture_output=True, text=True, check=True,
    )  # fmt: skip
    return sorted(one["name"] for one in json.loads(listed.stdout) if one["name"] not in OF_PIP)


def _bytes(python: Path) -> int:
    """All that was installed, without pip itself and without what Python compiles anew anyway."""
    (folder,) = python.parents[1].glob("lib/python*/site-packages")
    files = [path for path in folder.rglob("*") if path.is_file() and path.suffix != ".pyc"]
    return sum(path.stat().st_size for path in files if not _is_pips(path.relative_to(folder)))


def _is_pips(path: Path) -> bool:
    return path.parts[0].partition("-")[0] in (*OF_PIP, "_distutils_hack", "pkg_resources")


def _figure(what: str, ours: float, theirs: float, must: float, aim: float, absolute: str) -> Figure:
    return Figure(
        name="P15",
        what=f"{what} of the default install, against nanobot's",
        ratios=(ours / theirs,),
        must=must,
        aim=aim,
        most=True,
        absolute=absolute,
    )
