"""A long answer as a whole is tests/golden/feishu/answer.md, and answer.json what is made of it.

The JSON changes only when its look was judged anew: it is what a person sees.
"""

import json
import time
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from bridge.channel.testing.fakes.feishu.rules import check_message
from bridge.channel.testing.fakes.feishu.world import World, content_text
from channels.feishu.rich import gains, rows
from tests.channels.feishu.support import GOLDEN


def lines(markdown: str) -> list[str]:
    """The rows as a person reads them."""
    post = json.dumps({"zh_cn": {"content": rows(markdown)}})
    return content_text("post", post).split("\n")


def test_a_long_answer_in_two_languages_looks_as_it_was_judged() -> None:
    assert rows((GOLDEN / "answer.md").read_text()) == json.loads((GOLDEN / "answer.json").read_text())


@pytest.mark.parametrize(
    "markdown",
    [
        "**b**",
        "# h",
        "[t](https://x.example)",
        "```\nx\n```",
        "a\n\n---",
        "| a | b |\n|---|---|\n| 1 | 2 |",
        "~~x~~",
    ],
)
def test_what_has_a_look_of_its_own_is_worth_rich_text(markdown: str) -> None:
    assert gains(rows(markdown))


@pytest.mark.parametrize(
    "markdown",
    ["", "hello", "- a\n- b", "see https://x.example.", "`code`", "[t](file:///x)", "> q", "2 * 3 * 4"],
)
def test_what_a_plain_text_shows_as_well_is_not(markdown: str) -> None:
    assert not gains(rows(markdown))


def test_headings_are_bold_and_keep_what_is_in_them() -> None:
    assert rows("## The *way* #")[0] == [
        {"tag": "text", "text": "The ", "style": ["bold"]},
        {"tag": "text", "text": "way", "style": ["bold", "italic"]},
    ]
    assert lines("# \nx") == ["x"]


@pytest.mark.parametrize("step", ["  ", "    ", "\t"])
def test_lists_are_indented_by_their_depth_however_they_are_written(step: str) -> None:
    text = f"- a\n{step}- b\n{step}{step}* c\n{step}{step}{step}+ d\n{step}1) e\n- [ ] f\n- [X] g"
    assert lines(text) == ["• a", "    ◦ b", "        ▪ c", "            ▪ d", "    1) e", "☐ f", "☑ g"]


def test_a_paragraph_ends_a_list_and_an_indented_line_does_not() -> None:
    assert lines("- a\n  - b\n  more\n  - c") == ["• a", "    ◦ b", "  more", "    ◦ c"]
    assert lines("- a\nnew\n  - b") == ["• a", "new", "• b"]


def test_quotes_have_a_line_at_their_side() -> None:
    assert lines("> a\n>> **b**\n> - c\n> ---\n>") == ["│ a", "│ │ b", "│ • c", "│ ———", "│ "]
    assert lines(">" * 20 + "x")[0].count("│") == 8


def test_code_keeps_its_language_where_the_platform_knows_it_and_its_own_indent() -> None:
    assert rows("```py\nx\n  y\n```") == [[{"tag": "code_block", "text": "x\n  y", "language": "PYTHON"}]]
    assert rows("~~~klingon\nx\n~~~") == [[{"tag": "code_block", "text": "x"}]]
    assert rows("   ```\n   x\n  y\n   ```") == [[{"tag": "code_block", "text": "x\n  y"}]]
    assert rows("```\n```") == [[{"tag": "code_block", "text": " "}]]
    assert rows("```json\n{") == [[{"tag": "code_block", "text": "{", "language": "JSON"}]]


def test_marks_in_code_are_code() -> None:
    (row,) = rows("```\n**x** [a](https://b) | # h\n---\n```")
    assert row[0]["text"] == "**x** [a](https://b) | # h\n---"


def test_a_table_is_lined_up_and_one_too_wide_is_told_in_rows() -> None:
    (row,) = rows("a | b\n--|--:\n1 | 22\n333 |")
    assert row[0]["text"] == "a   |  b\n----+---\n1   | 22\n333 |"
    wide = rows("| a | **b** |\n|---|---|\n| " + "x" * 80 + " | y |\n| |")
    assert wide[0] == [{"tag": "text", "text": "a | b", "style": ["bold"]}]
    assert wide[1][0]["text"] == "x" * 80 + " | y"


def test_blank_rows_stand_only_where_they_part_something() -> None:
    assert lines("\n\na\n\n\n\nb\n\n---\n\nc\n\n```\nd\n```\n\ne\n\n") == ["a", "", "b", "———", "c", "d", "e"]
    assert rows("\n \n") == []


def test_lines_may_end_as_on_windows() -> None:
    assert lines("# a\r\n\r\n- b\r\n| c | d |\r\n|---|---|\r\n| 1 | 2 |\r\n") == [
        "a", "", "• b", "c | d", "--+--", "1 | 2",
    ]  # fmt: skip


PIECES = [
    "**", "*", "_", "~~", "`", "```\n", "\n", "- ", "  ", "> ", "# ", "|", "---", "[", "](https://x.y)",
    "](z)", "<at user_id=all>", "https://a.b", "好", "a ", "1. ", "\\", "\0", "!",
]  # fmt: skip


@given(st.lists(st.sampled_from(PIECES), max_size=30).map("".join))
def test_the_platform_takes_whatever_is_made(markdown: str) -> None:
    found = rows(markdown)
    content = json.dumps({"zh_cn": {"title": "", "content": found}})
    check_message(World(), {"msg_type": "post", "content": content}, len(content), reply=True)
    assert gains(found) in (True, False)


HOSTILE: list[Any] = [
    "*a " * 6000, "`a " * 6000, "**a " * 4000, "_" * 16_000, "|" * 16_000, ">" * 16_000, "[a" * 8000,
    "- " * 8000, "~~a " * 4000, "![a](b" * 2500, "https://" * 2000, "``" * 8000, "|a\n|-\n" * 3000,
]  # fmt: skip


@pytest.mark.parametrize("text", HOSTILE, ids=lambda text: text[:4].encode().hex())
def test_no_text_takes_long(text: str) -> None:
    before = time.process_time()
    rows(text)
    assert time.process_time() - before < 2
