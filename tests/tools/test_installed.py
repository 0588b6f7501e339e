import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from bridge.channel.testing.clock import FakeClock
from bridge.paths import Home
from bridge.tools.contract import ToolPlace, read_arguments
from bridge.tools.installed import installed
from tests.tools.place import Shown

Install = Callable[[str, str, str], None]
GOOD = """
from bridge.tools.contract import Arguments, Risk, ToolResult, ToolSpec

class Good:
    name, description, risk, arguments = "good", "Does good.", Risk.READ_ONLY, Arguments

    def __init__(self, place):
        self.place = place

    def summary(self, arguments):
        return "Do good"

    async def run(self, arguments, place):
        return ToolResult(True, "done")

SPEC = ToolSpec(name="good", create=Good)
"""


@pytest.fixture
def install(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Install]:
    """Puts a distribution on the path as pip would: its module, and its entry points beside it."""

    def put(module: str, source: str, entries: str) -> None:
        folder = tmp_path / module
        meta = folder / f"{module}-0.1.dist-info"
        meta.mkdir(parents=True)
        (meta / "METADATA").write_text(f"Metadata-Version: 2.1\nName: {module}\nVersion: 0.1\n")
        (meta / "entry_points.txt").write_text(entries)
        (folder / f"{module}.py").write_text(source)
        monkeypatch.syspath_prepend(folder)

    yield put
    for name in [name for name in sys.modules if name.startswith("inst_")]:
        del sys.modules[name]


@pytest.fixture
def place(tmp_path: Path) -> ToolPlace:
    return ToolPlace(Home(tmp_path), FakeClock())


def test_a_package_brings_a_tool_by_its_entry_point(install: Install, place: ToolPlace) -> None:
    install("inst_good", GOOD, "[turnbridge.tools]\ngood = inst_good:SPEC\n")
    found = installed(place, ("shell",), ())
    assert found.tools["good"].description == "Does good."
    assert found.tools["good"].place is place  # type: ignore[attr-defined] # as its author wrote it
    assert found.origins == {"good": "inst_good"}
    assert found.lacking == ()


def test_what_is_disabled_is_not_even_imported(install: Install, place: ToolPlace) -> None:
    install("inst_good", GOOD, "[turnbridge.tools]\ngood = inst_good:SPEC\n")
    assert installed(place, (), ("good",)).tools == {}
    assert "inst_good" not in sys.modules


@pytest.mark.parametrize(
    ("entry", "source", "why"),
    [
        ("shell", GOOD, "'shell' of inst_bad is called like one of ours"),
        ("web__good", GOOD, "has a name that no tool may have"),
        ("a.b", GOOD, "has a name that no tool may have"),
        ("bad", "SPEC = 3", "it is no ToolSpec but int"),
        ("bad", GOOD, "its entry point is called 'bad', and it calls itself 'good'"),
        ("bad", GOOD.replace('name="good"', 'name="bad"'), "'bad' of inst_bad calls itself 'good'"),
        ("bad", "raise RuntimeError", "cannot be loaded: RuntimeError"),
    ],
)
def test_what_cannot_be_used_is_left_out_and_told(
    entry: str, source: str, why: str, install: Install, place: ToolPlace
) -> None:
    install("inst_bad", source, f"[turnbridge.tools]\n{entry} = inst_bad:SPEC\n")
    found = installed(place, ("shell",), ())
    assert found.tools == {}
    (line,) = found.lacking
    assert why in line


async def test_the_tool_that_the_guide_shows_works(
    install: Install, place: ToolPlace, tmp_path: Path
) -> None:
    guide = (Path(__file__).parents[2] / "docs" / "tools.md").read_text(encoding="utf-8")
    source = guide.partition("```python\n")[2].partition("```")[0]
    install("inst_dice", source, "[turnbridge.tools]\ndice = inst_dice:SPEC\n")
    found = installed(place, (), ())
    assert found.lacking == ()
    tool, shown = found.tools["dice"], Shown(tmp_path)
    arguments = read_arguments(tool.arguments, {"sides": 2})
    assert tool.summary(arguments) == "Throw a die of 2 sides"
    assert (await tool.run(arguments, shown.place)).output in ("1", "2")
    assert shown.lines == ["it rolls"]
