"""The project's own files agree with each other, and the guards of conftest.py guard."""

import asyncio
import doctest
import importlib
import json
import os
import re
import shutil
import socket
import subprocess
import sys
import time
import tomllib
from pathlib import Path

import pytest

from tests.conftest import IS_HOOKED, Guard, GuardError, guard, is_loopback, run
from tests.own_coverage import Covered, judge, percent, test_file

ROOT = Path(__file__).parent.parent
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))


def text(path: str) -> str:
    return (ROOT / path).read_text(encoding="utf-8")


def names(requirements: list[str]) -> list[str]:
    return [re.split(r"[<>=!~;\[ ]", requirement)[0] for requirement in requirements]


def requirements() -> list[str]:
    extras = PROJECT["project"]["optional-dependencies"].values()
    return names([*PROJECT["project"]["dependencies"], *(line for extra in extras for line in extra)])


def sources() -> list[Path]:
    return [path for top in ("bridge", "channels") for path in sorted((ROOT / top).rglob("*.py"))]


@pytest.mark.parametrize("name", sorted(set(requirements())))
def test_each_library_has_its_reason(name: str) -> None:
    assert re.search(rf"\b{re.escape(name)}\b", text("docs/dependencies.md"))


@pytest.mark.parametrize(
    "name",
    sorted(
        {
            *names(PROJECT["project"]["dependencies"]),
            *names(PROJECT["project"]["optional-dependencies"]["dev"]),
        }
    ),
)
def test_each_library_that_make_installs_has_one_version(name: str) -> None:
    pinned = [
        line.partition("==")[0].lower().replace("_", "-") for line in text("constraints.txt").splitlines()
    ]
    assert pinned.count(name) == 1


def test_constraints_name_versions_and_nothing_else() -> None:
    lines = [line for line in text("constraints.txt").splitlines() if not line.startswith("#")]
    assert [line for line in lines if not re.fullmatch(r"[A-Za-z0-9_.-]+==[0-9][0-9a-z.]*", line)] == []


def test_fragments_of_changes_have_a_kind_and_a_text() -> None:
    fragments = [path for path in (ROOT / "changes").iterdir() if path.name != "README.md"]
    assert [
        path.name
        for path in fragments
        if not re.fullmatch(r"[a-z0-9-]+\.(added|changed|fixed|removed)\.md", path.name)
    ] == []
    assert [path.name for path in fragments if not path.read_text(encoding="utf-8").strip()] == []


def test_a_build_takes_nothing_that_an_earlier_version_left(tmp_path: Path) -> None:
    shutil.copy(ROOT / "setup.py", tmp_path)
    (tmp_path / "setuptools.py").write_text("def setup(): print('built')")
    left = tmp_path / "build" / "lib" / "bridge" / "store" / "migrations" / "0005_gone.sql"
    left.parent.mkdir(parents=True)
    left.touch()
    for _ in range(2):
        done = subprocess.run([sys.executable, "setup.py"], cwd=tmp_path, capture_output=True, text=True)
        assert (done.stdout, left.exists()) == ("built\n", False), done.stderr


def test_importing_a_part_s_package_root_loads_nothing() -> None:
    assert (text("bridge/__init__.py").strip(), text("channels/__init__.py").strip()) == ("", "")


def test_links_between_the_documents_lead_somewhere() -> None:
    dead = []
    for page in [*ROOT.glob("docs/**/*.md"), *ROOT.glob("*.md"), *ROOT.glob("changes/*.md")]:
        for target in re.findall(r"\]\((?!\w+:|#)([^)#\s]+)", page.read_text(encoding="utf-8")):
            if not (page.parent / target).exists():
                dead.append(f"{page.relative_to(ROOT)}: {target}")
    assert dead == []


def test_no_statement_numbers_its_values() -> None:
    """From Python 3.14 on those take a mapping alone: a value that is needed twice has a name."""
    numbered = [
        path for path in sources() if "store" in path.parts and re.search(r"\?[1-9]", path.read_text())
    ]
    assert numbered == []


def test_the_document_lists_the_store_s_steps() -> None:
    contracts = "".join(path.read_text(encoding="utf-8") for path in (ROOT / "bridge" / "store").glob("*.py"))
    steps = set(re.findall(r"^class (\w+)\(Step\[", contracts, re.MULTILINE))
    section = text("docs/architecture.md").partition("## The store's steps")[2]
    assert set(re.findall(r"`([A-Z]\w+)`", section)) == steps


@pytest.mark.parametrize(
    "path",
    [path.relative_to(ROOT).as_posix() for path in sources() if ">>> " in path.read_text(encoding="utf-8")]
    + ["tests/layers.py", "tests/own_coverage.py"],
)
def test_examples_in_docstrings_are_true(path: str) -> None:
    name = path.removesuffix(".py").removesuffix("/__init__").replace("/", ".")
    assert doctest.testmod(importlib.import_module(name)).failed == 0


# --- the guards


@pytest.mark.parametrize(
    ("address", "inside"),
    [
        (("127.0.0.1", 80), True),
        (("127.9.9.9", 80), True),
        (("::1", 80, 0, 0), True),
        (("localhost", 80), True),
        ((b"localhost", 80), True),
        ((None, 0), True),
        ("/run/server.sock", True),
        ((0, 0), True),
        (("10.0.0.1", 80), False),
        (("2001:db8::1", 80, 0, 0), False),
        (("fe80::1%eth0", 80, 0, 0), False),
        (("example.org", 80), False),
    ],
)
def test_only_this_machine_is_loopback(address: object, inside: bool) -> None:
    assert is_loopback(address) is inside


def test_the_guard_stops_what_leaves_loopback_looks_up_a_name_or_sleeps() -> None:
    breaches = [
        ("socket.connect", (None, ("192.0.2.1", 80))),
        ("socket.sendto", (None, ("192.0.2.1", 80))),
        ("socket.getaddrinfo", ("example.org", 80, 0, 0, 0)),
    ]
    watch = Guard()
    for event, args in breaches:
        watch.audit(event, args)
    assert watch.breaches == []
    watch.active = True
    for event, args in breaches:
        with pytest.raises(GuardError):
            watch.audit(event, args)
    with pytest.raises(GuardError):
        watch.sleep(0.06)
    assert len(watch.breaches) == len(breaches) + 1
    watch.audit("socket.connect", (None, ("127.0.0.1", 80)))
    watch.sleep(0.001)
    watch.audit("open", ("x", "r", 0))
    assert len(watch.breaches) == len(breaches) + 1


@pytest.mark.skipif(not IS_HOOKED, reason="coverage is traced, without the guard's hook")
def test_the_guard_is_on_while_a_test_runs() -> None:
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as sending, pytest.raises(GuardError):
        sending.connect(("192.0.2.1", 9))
    with pytest.raises(GuardError):
        time.sleep(0.06)
    assert len(guard.breaches) == 2
    guard.breaches.clear()


async def test_a_coroutine_is_run_as_a_test() -> None:
    await asyncio.sleep(0)
    assert asyncio.get_running_loop().is_running()


def test_a_coroutine_s_failure_is_the_test_s() -> None:
    async def failing(value: int) -> None:
        await asyncio.sleep(0)
        assert value == 2

    run(failing)(2)
    with pytest.raises(AssertionError):
        run(failing)(3)


# --- own_coverage


def test_each_module_has_one_test_file() -> None:
    assert test_file("bridge/retry.py") == "tests/test_retry.py"
    assert test_file("bridge/relay/intake.py") == "tests/relay/test_intake.py"
    assert test_file("channels/feishu/wire.py") == "tests/channels/feishu/test_wire.py"


def test_a_module_is_judged_by_branches_or_else_by_lines() -> None:
    lines = {"num_statements": 4, "covered_lines": 1}
    assert percent({"num_branches": 4, "covered_branches": 3, **lines}) == 75.0
    assert percent({"num_branches": 0, "covered_branches": 0, **lines}) == 25.0
    assert (
        percent({"num_branches": 0, "covered_branches": 0, "num_statements": 0, "covered_lines": 0}) == 100.0
    )


def test_only_the_own_test_file_covers_a_module(tmp_path: Path) -> None:
    files = {
        "pyproject.toml": "[tool.coverage.run]\nbranch = true\n",
        "bridge/__init__.py": "",
        "bridge/half.py": "def f(x):\n    if x:\n        return 1\n    return 2\n",
        "tests/__init__.py": "",
        "tests/test_half.py": "from bridge.half import f\ndef test_f():\n    assert f(1) == 1\n",
        "tests/test_other.py": "from bridge.half import f\ndef test_f():\n    assert f(0) == 2\n",
    }
    for path, source in files.items():
        (tmp_path / path).parent.mkdir(exist_ok=True)
        (tmp_path / path).write_text(source, encoding="utf-8")
    command = "-m pytest -q --cov=bridge --cov-branch --cov-context=test --cov-report= -p no:cacheprovider"
    own = {key: value for key, value in os.environ.items() if not key.startswith(("COV", "PYTEST"))}
    subprocess.run(
        [sys.executable, *command.split()], cwd=tmp_path, env=own, check=True, capture_output=True, timeout=60
    )
    found = [
        covered for covered in judge(tmp_path / ".coverage", tmp_path) if covered.module == "bridge/half.py"
    ]
    assert found == [Covered("bridge/half.py", "tests/test_half.py", 50.0)], json.dumps(str(found))
