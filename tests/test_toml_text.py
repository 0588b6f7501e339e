"""Edits of TOML texts: the value changes and nothing beside it."""

import tomllib
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from bridge.toml_text import UneditableError, with_values, without_table

MAIN = ("channels", "feishu", "main")

SETTINGS = """\
# Mine.
[web]   # where it listens
port = 8470

# the bot of the team
[channels.feishu.main]
owner = "ou_1"  # Ada
app_id = "cli_1"

# remote_tools = "owner"

# others
[channels.webhook.demo]
secretive = [
  "[x]", # a [bracket]
]
"""


def test_a_value_is_replaced_where_it_stands_with_its_comment() -> None:
    edited = with_values(SETTINGS, MAIN, {"owner": "ou_2"})
    assert edited == SETTINGS.replace('"ou_1"', '"ou_2"')


def test_a_new_key_comes_after_the_last_of_its_table_and_before_its_comments() -> None:
    edited = with_values(SETTINGS, MAIN, {"enabled": False, "senders": ("a", "b")})
    new = 'enabled = false\nsenders = ["a", "b"]\n'
    assert edited == SETTINGS.replace('app_id = "cli_1"\n', 'app_id = "cli_1"\n' + new)


def test_none_removes_a_key_and_nothing_when_it_is_not_there() -> None:
    edited = with_values(SETTINGS, MAIN, {"owner": None, "media.keep_days": None})
    assert edited == SETTINGS.replace('owner = "ou_1"  # Ada\n', "")


def test_a_table_that_is_not_there_comes_last() -> None:
    edited = with_values(SETTINGS, ("channels", "feishu", "two"), {"app_id": "cli_2"})
    assert edited == SETTINGS + '\n[channels.feishu.two]\napp_id = "cli_2"\n'
    assert with_values("", MAIN, {"enabled": True}) == "[channels.feishu.main]\nenabled = true\n"
    assert with_values("a = 1", MAIN, {"b": 1}) == "a = 1\n\n[channels.feishu.main]\nb = 1\n"
    assert with_values("a = 1\n\n", MAIN, {"b": 1}) == "a = 1\n\n[channels.feishu.main]\nb = 1\n"


def test_removing_a_table_keeps_all_comments_beside_it() -> None:
    edited = without_table(SETTINGS, MAIN)
    assert edited == SETTINGS.replace('[channels.feishu.main]\nowner = "ou_1"  # Ada\napp_id = "cli_1"\n', "")


def test_removing_takes_the_inner_tables_and_the_emptied_ones_above_along() -> None:
    text = """\
[web]
port = 1

[channels]

[channels.feishu]

[channels.feishu.main]
owner = "x"

[channels.feishu.main.media]
keep_days = 3

[[other]]
x = 1
"""
    assert without_table(text, MAIN) == "[web]\nport = 1\n\n[[other]]\nx = 1\n"
    kept = text + "[channels.feishu.two]\n"
    assert "[channels.feishu]\n" in without_table(kept, MAIN)


def test_what_was_never_there_is_removed_without_a_change() -> None:
    assert without_table(SETTINGS, ("channels", "feishu", "none")) == SETTINGS
    assert without_table(SETTINGS, ("a", "b", "c")) == SETTINGS


@pytest.mark.parametrize(
    ("text", "edited"),
    [
        (
            "[channels.feishu]\nmain = { owner = 'a' } # x\n",
            '[channels.feishu]\nmain = { owner = "b" } # x\n',
        ),
        ("[channels.feishu]\nmain.owner = 'a' # x\n", '[channels.feishu]\nmain.owner = "b" # x\n'),
        ("channels.feishu.main.owner = 'a'\n[web]\n", 'channels.feishu.main.owner = "b"\n[web]\n'),
        ('["channels"."feishu".main]\nowner="a"\n', '["channels"."feishu".main]\nowner="b"\n'),
        ("[channels.feishu.main]\r\nowner = 'a'\r\n", '[channels.feishu.main]\r\nowner = "b"\r\n'),
    ],
)
def test_every_way_of_writing_a_table_is_edited_in_its_way(text: str, edited: str) -> None:
    assert with_values(text, MAIN, {"owner": "b"}) == edited


@pytest.mark.parametrize(
    ("text", "edited"),
    [
        ("[channels.feishu.main.media]\nkeep_days=1\n", "[channels.feishu.main.media]\nkeep_days=3\n"),
        ("[channels.feishu.main]\n", "[channels.feishu.main]\nmedia.keep_days = 3\n"),
        ("[channels.feishu.main]", "[channels.feishu.main]\nmedia.keep_days = 3\n"),
        ("[channels.feishu.main]\na = 1", "[channels.feishu.main]\na = 1\nmedia.keep_days = 3\n"),
        (
            "[channels.feishu.main]\nmedia.owner_max_mib = 1\n",
            "[channels.feishu.main]\nmedia.owner_max_mib = 1\nmedia.keep_days = 3\n",
        ),
        (
            "[channels.feishu.main]\nmedia = {owner_max_mib = 1}\n",
            "[channels.feishu.main]\nmedia = {owner_max_mib = 1,keep_days = 3}\n",
        ),
        (
            "[channels.feishu]\nmain = {a = 1}\n",
            "[channels.feishu]\nmain = {a = 1,media = {keep_days = 3}}\n",
        ),
        ("[channels.feishu.main]\r\na = 1\r\n", "[channels.feishu.main]\r\na = 1\r\nmedia.keep_days = 3\r\n"),
    ],
)
def test_a_key_further_down_is_set_in_its_own_table(text: str, edited: str) -> None:
    assert with_values(text, MAIN, {"media.keep_days": 3}) == edited


@pytest.mark.parametrize(
    "text",
    [
        "[channels.feishu]\nmain = { owner = 'a' }\n",
        "[channels]\nfeishu.main.owner = 'a'\nfeishu.main.b = 1\n",
        "channels.feishu.main.owner = 'a'\n",
        "[channels.feishu.main]\nx = 1\n[web]\n[channels.feishu.main.media]\nkeep_days = 1\n",
    ],
)
def test_every_way_of_writing_a_table_is_removed(text: str) -> None:
    assert "channels" not in tomllib.loads(without_table(text, MAIN))


def test_a_header_inside_a_value_is_no_header() -> None:
    text = '[a]\nx = """\n[channels.feishu.main]\n# y"""\n# end\n[channels.feishu.main]\nz = 1\n'
    edited = with_values(text, MAIN, {"z": 2})
    assert edited == text.replace("z = 1", "z = 2")
    assert with_values(text, ("a",), {"b": 1}) == text.replace('# y"""\n', '# y"""\nb = 1\n')


@pytest.mark.parametrize(
    "text",
    [
        "channels = 3\n",
        "[channels]\nfeishu = []\n",
        "[[channels.feishu.main]]\nowner = 'a'\n",
        "[channels]\nfeishu = { two = {} }\n",
    ],
)
def test_what_cannot_be_edited_safely_is_refused(text: str) -> None:
    with pytest.raises(UneditableError):
        with_values(text, MAIN, {"owner": "b"})


def test_a_table_inside_an_inline_one_is_removed_alone() -> None:
    text = "[channels]\nfeishu = { main = { a = 1 }, two = { a = 2 } }\n"
    assert tomllib.loads(without_table(text, MAIN)) == {"channels": {"feishu": {"two": {"a": 2}}}}


VALUES = st.one_of(
    st.booleans(),
    st.integers(-(2**62), 2**62),
    st.text(st.characters(blacklist_categories=["Cs"])),
    st.lists(st.text(st.characters(blacklist_categories=["Cs"]), max_size=5), max_size=3),
)
NAMES = st.text("abcXYZ019_-", min_size=1, max_size=4)


@given(
    st.dictionaries(NAMES, st.dictionaries(NAMES, VALUES, max_size=3), max_size=4),
    NAMES,
    NAMES,
    VALUES,
    st.sampled_from(["", "# note\n", "\n"]),
)
def test_whatever_is_written_elsewhere_stays_byte_for_byte(
    tables: dict[str, dict[str, Any]], name: str, key: str, value: Any, between: str
) -> None:
    text = ""
    for account, values in tables.items():
        text = with_values(text + between, ("channels", "webhook", account), {"e": True, **values})
    edited = with_values(text, ("channels", "webhook", name), {key: value})
    read = tomllib.loads(edited)["channels"]["webhook"]
    assert read[name][key] == value
    removed = without_table(edited, ("channels", "webhook", name))
    for line in without_table(text, ("channels", "webhook", name)).splitlines():
        assert not line.strip() or line in removed.splitlines()
