"""Tables in a text, and the lines that they are made of."""

import pytest

from bridge.channel.tables import TableSpan, cells_of, find_tables, is_separator


@pytest.mark.parametrize(
    ("line", "expected"),
    [
        ("|-|", True), ("a|-", False), ("---", False), (" :-: | --: \r", True), ("||", False), ("-|-", True),
        ("|:--|--:|", True), ("|-||", False), ("|-|-|  ", True), ("| |-|", False), ("-|", True),
    ],
)  # fmt: skip
def test_a_separator_has_nothing_but_its_marks(line: str, expected: bool) -> None:
    assert is_separator(line) is expected


def test_a_row_has_cells_in_which_a_bar_may_stand() -> None:
    assert cells_of(" | a | b\\|c |  | ") == ["a", "b\\|c", ""]
    assert cells_of("a|b") == ["a", "b"]
    assert cells_of("|") == [""]


def found(text: str) -> list[tuple[str, list[str]]]:
    return [
        (text[one.start : one.rows[0]], [text[row : one.end].split("\n")[0] for row in one.rows])
        for one in find_tables(text, 0, len(text))
    ]


def test_a_table_is_its_heads_a_separator_and_the_rows_that_follow() -> None:
    text = "x | y\na|b\n-|-\n1|2\n3|4\n\n5|6\n|c|d|\n|-|-|\n|7|8|"
    assert found(text) == [("a|b\n-|-\n", ["1|2", "3|4"]), ("|c|d|\n|-|-|\n", ["|7|8|"])]


@pytest.mark.parametrize(
    "text", ["", "a|b", "a|b\n-|-", "a|b\n-|-\n", "a|b\n-|-\n\n1|2", "a\n-|-\n1|2", "a|b\n1|2\n-|-"]
)
def test_what_has_no_heads_no_separator_or_no_rows_is_no_table(text: str) -> None:
    assert found(text) == []


def test_only_the_given_stretch_is_searched() -> None:
    text = "a|b\n-|-\n1|2\n3|4\n"
    assert list(find_tables(text, 0, 11)) == [TableSpan(0, (8,), 11)]
    assert list(find_tables(text, 4, 16)) == []
    assert list(find_tables(text, 0, 16)) == [TableSpan(0, (8, 12), 16)]


@pytest.mark.parametrize(
    "line", ["a|-" + " " * 60_000 + "x", " " * 60_000 + "x|-", "|-" * 30_000 + "x", "-" * 60_000 + "|x"]
)
def test_a_long_line_is_read_to_its_end(line: str) -> None:
    assert not is_separator(line)
