import sys
from collections.abc import Callable, Iterator
from importlib.metadata import EntryPoint
from pathlib import Path

import pytest

from bridge.errors import ConfigError
from bridge.registry import Registry, agents, channels, kits, tools

Install = Callable[[str, str, str], None]
SPEC = """
from bridge.channel import ChannelCredentials, ChannelSettings, ChannelSpec, Limit
SPEC = ChannelSpec(
    name={name!r}, title=lambda s: "x", settings=ChannelSettings, credentials=ChannelCredentials,
    create=lambda *a: None, identity=lambda s, c: (), text_limit=Limit(100),
)
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

    before = set(sys.modules)
    yield put
    for name in set(sys.modules) - before:
        if name.startswith("reg_"):
            del sys.modules[name]


def test_our_own_are_found_like_any_others() -> None:
    assert {"feishu", "webhook"} <= set(channels().names())
    assert channels().load("webhook").name == "webhook"
    assert "echo" in agents().names()
    assert callable(kits().load("webhook"))


def test_naming_and_loading_one_imports_no_other(install: Install) -> None:
    install("reg_good", SPEC.format(name="good"), "[turnbridge.channels]\ngood = reg_good:SPEC\n")
    install("reg_bomb", "raise RuntimeError('boom')", "[turnbridge.channels]\nbomb = reg_bomb:SPEC\n")
    found = channels()
    assert {"good", "bomb"} <= set(found.names())
    assert not {"reg_good", "reg_bomb"} & set(sys.modules)
    assert found.load("good").name == "good"
    assert "reg_bomb" not in sys.modules


@pytest.mark.parametrize(
    ("source", "complaint"),
    [
        ("raise RuntimeError('holds a SECRET')", r"'bad' of reg_bad cannot be loaded: RuntimeError$"),
        (
            "import not_there_at_all",
            r"'bad' of reg_bad cannot be loaded: ModuleNotFoundError: No module named",
        ),
        ("", r"'bad' of reg_bad cannot be loaded: AttributeError$"),
        ("SPEC = 3", r"'bad' of reg_bad cannot be used: it is no ChannelSpec but int"),
        (SPEC.format(name="other"), r"called 'bad', and it calls itself 'other'"),
    ],
)
def test_a_broken_one_is_an_error_that_names_it(install: Install, source: str, complaint: str) -> None:
    install("reg_bad", source, "[turnbridge.channels]\nbad = reg_bad:SPEC\n")
    with pytest.raises(ConfigError, match=complaint):
        channels().load("bad")
    assert channels().load("webhook").name == "webhook"


TOOL = """
from bridge.tools.contract import ToolSpec
SPEC = ToolSpec(name="reg_tool", create=lambda place: None)
"""


def test_tools_of_other_packages_are_found_with_their_origin(install: Install) -> None:
    install("reg_good", TOOL, "[turnbridge.tools]\nreg_tool = reg_good:SPEC\nreg_odd = reg_good:ToolSpec\n")
    assert tools().load("reg_tool").name == "reg_tool"
    assert tools().origin("reg_tool") == "reg_good"
    assert tools().origin("reg_none") == ""
    with pytest.raises(ConfigError, match="it is no ToolSpec but type"):
        tools().load("reg_odd")
    install("reg_more", TOOL, "[turnbridge.tools]\nreg_tool = reg_more:SPEC\n")
    assert set(tools().origin("reg_tool").split(" and ")) == {"reg_good", "reg_more"}
    with pytest.raises(ConfigError, match="uninstall all but one"):
        tools().load("reg_tool")


def test_what_is_no_agent_or_no_kit_is_refused(install: Install) -> None:
    entries = "[turnbridge.agents]\nreg_a = reg_odd:A\n[turnbridge.kits]\nreg_k = reg_odd:A\n"
    install("reg_odd", "A = 3", entries)
    with pytest.raises(ConfigError, match="it is no AgentSpec but int"):
        agents().load("reg_a")
    with pytest.raises(ConfigError, match="it is no function or class but int"):
        kits().load("reg_k")


def test_a_name_that_two_packages_bring_is_refused_with_both_named(install: Install) -> None:
    install("reg_one", SPEC.format(name="twin"), "[turnbridge.channels]\ntwin = reg_one:SPEC\n")
    install("reg_two", SPEC.format(name="twin"), "[turnbridge.channels]\ntwin = reg_two:SPEC\n")
    with pytest.raises(ConfigError, match="reg_one") as failed:
        channels().load("twin")
    assert "reg_two" in str(failed.value)
    assert "twin" in channels().names()


def test_the_same_entry_seen_twice_is_one() -> None:
    point = EntryPoint("x", "math:pi", "g")
    assert Registry("thing", [point, EntryPoint("x", "math:pi", "g")], lambda name, value: value).load("x")


def test_an_unknown_name_lists_what_there_is() -> None:
    with pytest.raises(ConfigError, match=r"no channel called 'nothing'; installed: .*webhook"):
        channels().load("nothing")
    with pytest.raises(ConfigError, match="installed: none"):
        Registry("thing", [], lambda name, value: value).load("x")


def test_an_entry_without_a_distribution_is_named_by_its_module() -> None:
    points = [EntryPoint("x", "no_such_module_here:X", "g")]
    with pytest.raises(ConfigError, match="of no_such_module_here cannot be loaded"):
        Registry("thing", points, lambda name, value: value).load("x")


def test_an_agent_under_another_name_is_refused(install: Install) -> None:
    source = """
from bridge.agents.contract import AgentSettings, AgentSpec
A = AgentSpec("b", AgentSettings, lambda settings, place: None)
"""
    install("reg_agent", source, "[turnbridge.agents]\na = reg_agent:A\nb = reg_agent:A\n")
    assert agents().load("b").name == "b"
    with pytest.raises(ConfigError, match="called 'a', and it calls itself 'b'"):
        agents().load("a")
