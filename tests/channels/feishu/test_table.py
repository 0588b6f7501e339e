import time

from channels.feishu.table import MAX_WIDTH, read_table, width


def aligned(markdown: str) -> list[str]:
    return read_table(markdown.split("\n"), 0).aligned().split("\n")


def test_columns_line_up_and_numbers_at_their_end() -> None:
    assert aligned("| Name | n |\n|:--|--:|\n| a | 1 |\n| bcd | 100 |") == [
        "Name |   n",
        "-----+----",
        "a    |   1",
        "bcd  | 100",
    ]


def test_wide_letters_count_twice_and_joined_ones_not_again() -> None:
    assert (width("苹果"), width("ｆ"), width("e\u0301"), width("👩\u200d👧")) == (4, 2, 1, 4)
    assert aligned("名 | b\n-|-\n苹果 | x\nab | y") == ["名   | b", "-----+--", "苹果 | x", "ab   | y"]


def test_cells_are_shown_without_marks_and_may_hold_a_bar() -> None:
    assert aligned(r"**a** | b" + "\n-|-\n" + r"`x` | y\|z") == ["a   | b", "----+----", "`x` | y|z"]


def test_rows_may_be_short_or_long() -> None:
    assert aligned("a|b\n-|-\n1\\|\n1|2|3") == ["a  | b |", "---+---+--", "1| |   |", "1  | 2 | 3"]


def test_a_table_ends_with_its_last_line_and_may_have_no_rows() -> None:
    table = read_table(["x", "a | b", "-|-", "1|2", "", "3|4"], 1)
    assert (table.cells, table.end) == ([["a", "b"], ["1", "2"]], 4)
    assert read_table(["a|b", "-|-"], 0).aligned() == "a | b\n--+--"


def test_what_is_wider_than_a_screen_is_not_lined_up() -> None:
    assert read_table([f"a|{'b' * (MAX_WIDTH - 4)}", "-|-"], 0).aligned()
    assert read_table([f"a|{'b' * (MAX_WIDTH - 3)}", "-|-"], 0).aligned() == ""


def test_a_table_of_thousands_of_columns_is_not_lined_up_at_all() -> None:
    started = time.process_time()
    assert read_table(["|" * 4000, "-|-", *["|"] * 2900], 0).aligned() == ""
    assert time.process_time() - started < 0.2
