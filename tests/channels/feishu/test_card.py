import json
import time
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from channels.feishu.card import read_card
from tests.channels.feishu.support import GOLDEN

ROWS = json.loads((GOLDEN / "contents.json").read_text())["rows"]
CARDS = [row for row in ROWS if row["type"] == "interactive"]

KEYS = [
    "tag", "text", "content", "header", "title", "elements", "columns", "rows", "property", "data", "type",
    "body", "i18n_elements", "json_card", "alt", "options", "name", "display_name",
]  # fmt: skip


def below(*elements: Any) -> list[str]:
    return read_card({"elements": list(elements)}).split("\n")[1:]


@pytest.mark.parametrize("row", CARDS, ids=lambda row: row["name"])
def test_whole_cards_of_either_version_are_read(row: dict[str, Any]) -> None:
    assert read_card(json.loads(row["content"])) == row["line"]


def test_a_row_of_pieces_is_one_line_and_each_other_part_its_own() -> None:
    pieces = [{"tag": "text", "text": "a"}, {"tag": "at", "user_name": "Ann"}, {"tag": "at"}]
    assert below(pieces, {"tag": "markdown", "content": "b"}, "c") == ["a @Ann @someone", "b", "c"]


def test_links_keep_their_address_once() -> None:
    both = {"tag": "a", "text": "docs", "href": "https://x.example"}
    assert below([both], [{"tag": "a", "text": "", "href": "https://y.example"}]) == [
        "[docs](https://x.example)",
        "https://y.example",
    ]


def test_buttons_stand_in_brackets_and_without_words_not_at_all() -> None:
    assert below({"tag": "button", "text": {"content": "Yes"}}, {"tag": "button"}) == ["[Yes]"]


def test_of_several_languages_the_first_is_read() -> None:
    card = {"i18n_elements": {"zh_cn": [{"tag": "markdown", "content": "你好"}], "en_us": []}}
    assert read_card(card) == "[Card]\n你好"


def test_a_table_is_rows_of_cells_of_any_type() -> None:
    columns = [{"name": "n", "display_name": "Name"}, {"name": "v"}, 5]
    rows = [{"n": [{"text": "tag"}], "v": 0.5}, {"n": "x", "v": None}, {"v": True}, "odd"]
    table = {"tag": "table", "columns": columns, "rows": rows}
    assert below(table) == ["Name | v", "tag | 0.5", "x | ", " | True"]
    assert below({"tag": "table", "columns": "x", "rows": None}) == []


def test_a_card_within_text_that_is_no_card_is_read_as_it_stands() -> None:
    assert read_card({"json_card": "{", "title": "T"}) == "[Card: T]"


def test_an_endless_card_and_an_endless_line_are_cut() -> None:
    lines = below(*({"tag": "markdown", "content": f"line {n}"} for n in range(300)))
    assert (len(lines), lines[-1]) == (201, "…")
    assert len(below({"tag": "markdown", "content": "x" * 9000})[0]) == 4000


def test_what_lies_too_deep_is_left_out_and_what_repeats_is_said_once() -> None:
    deep: Any = {"tag": "markdown", "content": "treasure"}
    for _ in range(60):
        deep = {"tag": "div", "elements": [deep]}
    assert below(deep, "seen", "seen") == ["seen"]


@given(
    st.recursive(
        st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=6),
        lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.sampled_from(KEYS), inner, max_size=4),
        max_leaves=20,
    )
)
def test_no_card_at_all_makes_it_fail(value: Any) -> None:
    assert read_card(value if isinstance(value, dict) else {"elements": value}).startswith("[Card")


def test_a_table_of_thousands_of_rows_and_columns_takes_no_time() -> None:
    started = time.process_time()
    table = {"tag": "table", "columns": [{"name": "a"}] * 3000, "rows": [{}] * 18_000}
    assert len(below(table)) == 2
    assert time.process_time() - started < 0.2
