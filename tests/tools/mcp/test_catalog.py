"""What of a server's list is offered."""

from typing import Any

from bridge.config import McpTable
from bridge.tools.contract import Risk
from bridge.tools.mcp import catalog as catalogs
from bridge.tools.mcp.catalog import Listed, catalog, tool_name
from bridge.tools.mcp.text import safe

STDIO, HTTP = {"command": ("x",)}, {"url": "http://127.0.0.1/mcp"}


def table(**settings: Any) -> McpTable:
    return McpTable.model_validate(settings)


def listed(name: str, description: str = "", **schema: Any) -> Listed:
    return Listed(name, description, schema)


def test_a_tool_is_named_after_its_server_and_risky_as_its_kind_is() -> None:
    (one,) = catalog("web", table(**HTTP), [listed("search", "Find it.", type="object")]).tools
    assert (one.name, one.own, one.description, one.risk) == (
        "web__search",
        "search",
        "Find it.",
        Risk.NETWORK,
    )
    (one,) = catalog("files", table(**STDIO), [listed("search")]).tools
    assert (one.risk, one.description) == (Risk.PROCESS, "search, of files")


def test_only_the_operator_says_that_a_tool_changes_nothing() -> None:
    found = catalog("a", table(**HTTP, read_only=("get",)), [listed("get"), listed("put")]).tools
    assert [one.risk for one in found] == [Risk.READ_ONLY, Risk.NETWORK]


def test_the_settings_choose_among_the_tools_and_name_only_those_there_are() -> None:
    tools = [listed("a"), listed("b"), listed("c")]
    found = catalog("s", table(**STDIO, tools=("a", "b", "z"), disabled=("b", "y"), read_only=("x",)), tools)
    assert [one.own for one in found.tools] == ["a"]
    assert found.notes == (
        "tools: the server has no z: correct it",
        "disabled: the server has no y: correct it",
        "read_only: the server has no x: correct it",
    )


def test_names_that_collide_or_that_models_do_not_take_stay_apart() -> None:
    names = ["a.b", "a_b", "a b", "a_b", "n" * 100, "a\u202eb", "x" * 500, ""]
    found = catalog("s", table(**STDIO), [listed(name) for name in names])
    made = [one.name for one in found.tools]
    assert len(set(made)) == len(made) == 5
    assert made[1] == "s__a_b"
    assert all(len(name) <= 64 and safe(name) == name for name in made)
    assert found.notes == (
        "not offered: a_b: another one has its name",
        f"not offered: {'x' * 37}…, : its name is too long, or none",
    )


def test_a_name_that_stays_as_it_is_has_no_digest() -> None:
    assert tool_name("s", "read-file_2") == "s__read-file_2"
    assert tool_name("s", "n" * 61) == "s__" + "n" * 61
    assert tool_name("s", "n" * 62) == "s__" + "n" * 52 + "_" + tool_name("s", "n" * 62)[-8:]


def test_a_list_without_end_is_cut_and_told() -> None:
    found = catalog("s", table(**STDIO), [listed(f"t{number}") for number in range(5000)])
    assert len(found.tools) == catalogs.MOST_TOOLS
    assert found.notes[0].startswith("4872 more tools are left out")


def test_definitions_together_are_bounded_and_a_small_one_still_fits() -> None:
    large = {"a": {"enum": ["x" * 30_000]}}
    tools = [listed(f"t{number}", properties=large) for number in range(9)]
    found = catalog("s", table(**STDIO), [*tools, listed("small")])
    assert [one.own for one in found.tools] == ["t0", "t1", "t2", "t3", "small"]
    assert found.notes[0].startswith("5 more tools are left out")


def test_what_cannot_be_offered_is_told_with_the_first_names() -> None:
    found = catalog("s", table(**STDIO), [listed(f"t{n}\x1b", type="string") for n in range(7)])
    assert found.tools == ()
    assert found.notes == ("not offered: t0, t1, t2, t3, t4 and 2 more: its schema is no object's",)


def test_a_description_is_harmless_and_bounded() -> None:
    (one,) = catalog("s", table(**STDIO), [listed("a", "one\ntwo\x1b[2J\u202e\U000e0041" + "x" * 9000)]).tools
    assert one.description.startswith("one\ntwo[2Jx")
    assert len(one.description.encode()) == catalogs.DESCRIPTION_BYTES
