"""The code keeps to docs/architecture.md, and each rule is seen to refuse a tree that breaks it."""

from pathlib import Path

import pytest

from tests.layers import Project, is_excused, read_layers

ROOT = Path(__file__).parent.parent

LIST = """
```layers
bridge/__init__.py channels/__init__.py   empty
bridge/base.py             base                | structlog
bridge/channel/            for adapters        | aiohttp
bridge/store/              steps               |           | never bridge/channel/
bridge/relay/              way (later)         | python-magic
bridge/cli/                commands            | rich      | light
channels/                  platforms           | aiohttp   | alone; up to bridge/channel/
```
"""

SOUND = {
    "bridge/__init__.py": "",
    "bridge/base.py": "import json\nimport structlog\n",
    "bridge/channel/__init__.py": "from bridge.channel.http import Http\n",
    "bridge/channel/http.py": "import aiohttp\nfrom bridge import base\n",
    "bridge/store/__init__.py": "",
    "bridge/store/steps.py": "from bridge.base import x\n",
    "bridge/store/sqlite.py": "from bridge.store import steps\n",
    "bridge/cli/__init__.py": "",
    "bridge/cli/status.py": "import argparse\ndef run():\n    import rich\n    import bridge.store.sqlite\n",
    "channels/__init__.py": "",
    "channels/pigeon.py": "from bridge.channel import Http\nfrom bridge import base\n",
    "channels/raven/__init__.py": "from channels.raven import wire\n",
    "channels/raven/wire.py": "import aiohttp.web\n",
}


def breaches(root: Path, **changes: str) -> list[str]:
    """What is found in the sound tree with ``changes``: a path (its ``/`` as ``__``) and its source."""
    files = SOUND | {path.replace("__", "/") + ".py": source for path, source in changes.items()}
    for path, source in files.items():
        (root / path).parent.mkdir(parents=True, exist_ok=True)
        (root / path).write_text(source, encoding="utf-8")
    return Project(root, read_layers(LIST)).breaches()


def test_the_project_keeps_to_its_architecture() -> None:
    layers = read_layers((ROOT / "docs" / "architecture.md").read_text(encoding="utf-8"))
    found = Project(ROOT, layers).breaches()
    assert not found, "\n" + "\n".join(found)


def test_a_sound_tree_has_no_breach(tmp_path: Path) -> None:
    assert breaches(tmp_path) == []


@pytest.mark.parametrize(
    "source",
    [
        "import bridge.store.steps",
        "from bridge.store import steps",
        "from bridge.store.steps import Claim",
        "def late():\n    from bridge.store import steps",
        "from typing import TYPE_CHECKING\nif TYPE_CHECKING:\n    from bridge.store import steps",
        "try:\n    import bridge.store\nexcept ImportError:\n    pass",
    ],
)
def test_an_import_from_a_line_below_is_refused_wherever_it_stands(tmp_path: Path, source: str) -> None:
    (found,) = breaches(tmp_path, bridge__base=source)
    assert found.startswith("bridge/base.py:")
    assert found.endswith("its line is below")


@pytest.mark.parametrize(
    ("path", "source", "reason"),
    [
        ("bridge__store__steps", "import aiohttp", "a library that its line does not list"),
        (
            "bridge__store__steps",
            "def f():\n    from aiohttp import web",
            "a library that its line does not list",
        ),
        ("bridge__store__steps", "from . import sqlite", "write the whole name"),
        ("bridge__store__steps", "from tests import fakes", "a library that its line does not list"),
        ("bridge__store__steps", "import bridge.nothing.at.all", "no such module"),
        ("bridge__store__steps", "from bridge.channel import Http", "never allowed here"),
        (
            "channels__pigeon",
            "from bridge.store import steps",
            "only what is up to bridge/channel/ is allowed here",
        ),
        ("channels__pigeon", "from channels.raven import wire", "these never import each other"),
    ],
)
def test_an_import_that_its_line_does_not_allow_is_refused(
    tmp_path: Path, path: str, source: str, reason: str
) -> None:
    (found,) = breaches(tmp_path, **{path: source})
    assert found.endswith(reason)


def test_a_library_may_have_another_name_than_its_module(tmp_path: Path) -> None:
    assert breaches(tmp_path, bridge__relay__files="import magic\n") == []


def test_a_ring_within_a_line_is_found_once(tmp_path: Path) -> None:
    found = breaches(
        tmp_path,
        bridge__store__a="from bridge.store import b",
        bridge__store__b="def f():\n    import bridge.store.c",
        bridge__store__c="from bridge.store.a import x",
    )
    ring = "bridge.store.a > bridge.store.b > bridge.store.c > bridge.store.a"
    assert found == [f"bridge/store/a.py: imports itself through {ring}"]


def test_a_package_that_its_own_module_imports_is_a_ring(tmp_path: Path) -> None:
    (found,) = breaches(tmp_path, bridge__channel__http="from bridge.channel import Http")
    assert "bridge.channel > bridge.channel.http > bridge.channel" in found


def test_a_command_that_loads_a_library_on_import_is_found_also_at_one_remove(tmp_path: Path) -> None:
    assert breaches(tmp_path, bridge__cli__status="import rich") == [
        "bridge/cli/status.py:1: rich loads rich: import it inside a function"
    ]
    assert breaches(tmp_path, bridge__cli__status="from bridge.channel import http") == [
        "bridge/cli/status.py:1: bridge.channel.http loads aiohttp: import it inside a function"
    ]
    assert breaches(tmp_path, bridge__cli__status="import bridge.store.steps\nimport bridge.base") == [
        "bridge/cli/status.py:1: bridge.store.steps loads structlog: import it inside a function",
        "bridge/cli/status.py:2: bridge.base loads structlog: import it inside a function",
    ]
    assert (
        breaches(
            tmp_path, bridge__cli__status="from bridge.cli import status_help", bridge__cli__status_help=""
        )
        == []
    )


def test_a_command_may_name_types_that_it_does_not_load(tmp_path: Path) -> None:
    source = "from typing import TYPE_CHECKING\nif TYPE_CHECKING:\n    from rich import console\n"
    assert breaches(tmp_path, bridge__cli__status=source) == []


def test_a_file_that_no_line_names_and_a_line_that_names_no_file_are_found(tmp_path: Path) -> None:
    assert breaches(tmp_path, bridge__stray="") == ["bridge/stray.py: no line of the list names it"]
    (tmp_path / "bridge" / "stray.py").unlink()
    (tmp_path / "bridge" / "base.py").unlink()
    found = Project(tmp_path, read_layers(LIST)).missing()
    assert list(found) == ["bridge/base.py: listed, but missing: mark its line (later)"]


def test_a_module_over_500_lines_is_found(tmp_path: Path) -> None:
    assert breaches(tmp_path, bridge__store__steps="\n" * 500) == []
    assert breaches(tmp_path, bridge__store__steps="\n" * 501) == [
        "bridge/store/steps.py: 501 lines are over 500"
    ]


def test_a_class_with_over_12_public_methods_is_found(tmp_path: Path) -> None:
    def source(public: int) -> str:
        methods = [f"    def m{number}(self): ..." for number in range(public)]
        others = ["    def _own(self): ...", "    @property", "    def seen(self): ..."]
        return "\n".join(["class Wide:", *methods, *others])

    assert breaches(tmp_path, bridge__store__steps=source(12)) == []
    assert breaches(tmp_path, bridge__store__steps=source(13)) == [
        "bridge/store/steps.py:1: Wide has 13 public methods"
    ]


SILENCED = "# no" + "qa"  # in two, so that this file has no such comment
UNTYPED = "# type" + ": ignore"


@pytest.mark.parametrize(
    "comment",
    [
        SILENCED,
        f"{SILENCED}: TID251",
        f"{SILENCED}: TID251 -",
        f"{SILENCED} because of its length",
        UNTYPED,
        f"{UNTYPED}[arg-type]",
        f"{UNTYPED}  # its stubs are wrong",
        f"{UNTYPED}[arg-type]  {SILENCED}",
        "# ruff" + ": noqa: E501",
        "# mypy" + ": ignore-errors",
    ],
)
def test_silencing_a_check_without_a_code_and_a_reason_is_found(tmp_path: Path, comment: str) -> None:
    assert not is_excused(comment)
    assert breaches(tmp_path, bridge__store__steps=f"import json  {comment}\n") == [
        f"bridge/store/steps.py:1: {comment}: name a code and a reason"
    ]
    assert breaches(tmp_path, bridge__store__steps="", tests__test_x=f"x = 1\ny = 2  {comment}\n") == [
        f"tests/test_x.py:2: {comment}: name a code and a reason"
    ]


@pytest.mark.parametrize(
    "comment",
    [
        f"{SILENCED}: TID251 - awaited below",
        f"{SILENCED}: S101, E501 - a table of the platform's",
        f"{UNTYPED}[arg-type]  # its stubs are wrong",
        "# nothing is silenced here",
    ],
)
def test_a_code_with_a_reason_is_an_excuse(comment: str) -> None:
    assert is_excused(comment)


@pytest.mark.parametrize(
    ("document", "reason"),
    [
        ("no block", "no block"),
        ("```layers\na  b | c | | d\n```\n", "too many columns"),
        ("```layers\na  b | | sometimes\n```\n", "unknown limit"),
    ],
)
def test_a_list_that_cannot_be_read_is_an_error(document: str, reason: str) -> None:
    with pytest.raises(ValueError, match=reason):
        read_layers(document)
