"""Cutting texts into messages."""

import re

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from bridge.channel.clusters import inside_clusters
from bridge.channel.fences import find_fences
from bridge.channel.markdown import plain
from bridge.channel.split import pieces, split_text
from bridge.channel.tables import find_tables
from bridge.channel.units import Limit, Unit, measure

MIB = 1 << 20
FAMILY = "👨‍👩‍👧‍👦"
FLAG = "🇨🇳"
units = st.sampled_from(Unit)
words = st.text(alphabet="ab .\n。😀é中`~-*[](&;", max_size=120)
lines = st.lists(
    st.sampled_from(
        ["```", "```py", "````", "~~~", "  ```js x", "    ```", "code = 1", "", "text.", "x" * 70, "中" * 30]
    ),
    max_size=25,
).map("\n".join)


WHOLE = [
    "[a link](https://e.example/x)", "https://e.example/a?d=1&e=(f)", "`a b`", "``a`b c``", "&nbsp;",
    '[x [y] z](https://e.example/p_(q) "a t")', "![i](<a b>)",
]  # fmt: skip
CLUSTERS = [FAMILY, FLAG, "e\u0301", "👍🏽", "\u1112\u1161\u11ab", "\r\n"]
FILLING = ["word ", "字", "。", ". ", "\n", "\n\n", "x" * 25, " "]
prose = st.lists(st.sampled_from([*(f"{each} " for each in WHOLE), *CLUSTERS, *FILLING]), max_size=25).map(
    "".join
)
CODE = ["code = 1", "x" * 90, "", "    deeper", "字" * 20]


@st.composite
def blocks(draw: st.DrawFn) -> str:
    """A code block, at times in a list or without its end."""
    start, marks = (
        draw(st.sampled_from(["", "  ", "    ", "- ", "12. ", "  * "])),
        draw(st.sampled_from(["```", "````", "~~~", "~~~~~"])),
    )
    indent, language = " " * len(start), draw(st.sampled_from(["", "py", "js x"]))
    code = "".join(f"{indent}{line}\n" for line in draw(st.lists(st.sampled_from(CODE), max_size=8)))
    end = draw(st.sampled_from([f"{indent}{marks}\n"] * 4 + [""]))
    return f"\n{start}{marks}{language}\n{code}{end}"


answers = st.lists(prose | blocks(), max_size=5).map("".join)


def escaped(text: str) -> str:
    return "".join("\\" + char if char in "!.-`" else char for char in text)


@given(words, st.integers(4, 60), units)
def test_parts_joined_are_the_text_and_each_is_within_the_limit(text: str, size: int, unit: Unit) -> None:
    prose = text.replace("```", "").replace("~~~", "")
    parts = split_text(prose, Limit(size, unit))
    assert "".join(parts) == prose
    assert all(0 < measure(part, unit) <= size for part in parts)


@given(lines, st.integers(4, 90), units)
@example("```py\n" + "x" * 500, 40, Unit.BYTES)
@example("```\n```", 4, Unit.BYTES)
def test_pieces_cover_a_text_with_code_and_stay_within_the_limit(text: str, size: int, unit: Unit) -> None:
    limit = Limit(size, unit)
    cut = pieces(text, limit)
    assert [piece.start for piece in cut] == [0, *(piece.end for piece in cut)][: len(cut)]
    assert not text or cut[-1].end == len(text)
    assert all(0 < measure(part, unit) <= size for part in split_text(text, limit))


@given(answers, st.sampled_from([60, 80, 120, 200]), units)
def test_no_cut_tears_a_character_a_link_an_address_or_code_in_a_line(
    text: str, size: int, unit: Unit
) -> None:
    limit = Limit(size, unit)
    cuts = {piece.end for piece in pieces(text, limit)} - {len(text)}
    torn = inside_clusters(text)
    assert not any(torn[cut] for cut in cuts)
    for whole in WHOLE:
        for found in re.finditer(re.escape(whole), text):
            assert cuts.isdisjoint(range(found.start() + 1, found.end()))


@given(answers, st.sampled_from([60, 80, 120, 200]), units)
@example("\n```\n\n" + "x" * 90 + "\n```\n", 60, Unit.BYTES)
@example("- ```py\n  code\n  ```\n" + "word " * 30, 60, Unit.BYTES)
def test_code_stays_code_in_closed_blocks_and_prose_stays_prose(text: str, size: int, unit: Unit) -> None:
    cut, blocks = pieces(text, Limit(size, unit)), list(find_fences(text))
    code = {at for block in blocks for at in range(block.inner, block.outer) if text[at].strip()}
    ends = bool(blocks) and blocks[-1].outer == blocks[-1].end  # without its own last line
    for number, piece in enumerate(cut):
        part = piece.before + text[piece.start : piece.end] + piece.after
        inner = list(find_fences(part))
        shift = piece.start - len(piece.before)
        shown = {
            at + shift for block in inner for at in range(block.inner, block.outer) if part[at].strip()
        } & set(range(piece.start, piece.end))
        assert shown == code & set(range(piece.start, piece.end))
        last = number == len(cut) - 1
        assert all(block.outer < block.end for block in inner[: -1 if last and ends else None])


TABLES = ["| a | b |\n|---|--:|\n", "x|y\n-|-\n", "| 名 |\n| - |\n"]
ROWS = ["| 1 | 2 |\n", "| `a b` | [c](d) |\n", "x|" + "y" * 30 + "\n", "| 字 |\n"]
tables = st.builds(
    lambda before, heads, rows, after: f"{before}\n{heads}{''.join(rows)}\n{after}",
    prose | blocks(), st.sampled_from(TABLES), st.lists(st.sampled_from(ROWS), max_size=20), prose,
)  # fmt: skip


def rows_of(text: str) -> list[tuple[str, str]]:
    """Each row of the tables outside code, with its heads."""
    found, at = [], 0
    for start, end in [*((block.start, block.end) for block in find_fences(text)), (len(text), 0)]:
        for table in find_tables(text, at, start):
            heads = text[table.start : table.rows[0]]
            found += [(heads, text[row:].split("\n")[0]) for row in table.rows]
        at = end
    return found


@given(tables, st.sampled_from([100, 150, 300]), units)
def test_each_row_of_a_table_stays_whole_under_its_heads(text: str, size: int, unit: Unit) -> None:
    parts = split_text(text, Limit(size, unit))
    assert [row for part in parts for row in rows_of(part)] == rows_of(text)
    assert all(0 < measure(part, unit) <= size for part in parts)


def test_a_table_that_goes_on_in_another_part_has_its_heads_there() -> None:
    rows = [f"| row {number} | cell |\n" for number in range(20)]
    heads = "| name | value |\n|---|---|\n"
    parts = split_text("Look:\n\n" + heads + "".join(rows), Limit(120))
    assert len(parts) > 3
    assert all(part.startswith(heads) for part in parts[1:])
    assert "".join(part.replace(heads, "") for part in parts) == "Look:\n\n" + "".join(rows)
    assert "|--" not in "".join(plain(part) for part in parts)


def test_heads_that_take_half_of_a_part_are_not_repeated() -> None:
    text = "| " + "head " * 12 + "|\n|---|\n" + "| 1 |\n" * 20
    assert "".join(split_text(text, Limit(100))) == text


def test_a_row_over_the_limit_is_cut() -> None:
    text = "a|b\n-|-\n1|" + "word " * 40 + "\n2|3\n"
    parts = split_text(text, Limit(60))
    assert "".join(part.removeprefix("a|b\n-|-\n") for part in parts) == text.removeprefix("a|b\n-|-\n")


@given(lines, st.integers(80, 200))
def test_a_rendered_part_is_within_the_limit(text: str, size: int) -> None:
    for part in split_text(text, Limit(size), escaped):
        assert measure(escaped(part), Unit.BYTES) <= size


def test_case_43_the_rendered_length_counts() -> None:
    parts = split_text("!" * 4096, Limit(4096, Unit.UTF16), escaped)
    assert [len(part) for part in parts] == [2048, 2048]


def test_case_43_a_table_is_measured_as_it_is_padded() -> None:
    def padded(text: str) -> str:
        lines = [f"<tr><td>{line.strip('| '):<200}</td></tr>" for line in text.split("\n")]
        return f"<table>{''.join(lines)}</table>"

    table = "\n".join(f"| row {n} | cell |" for n in range(200))[:3900]
    parts = split_text(table, Limit(4096, Unit.UTF16), padded)
    assert "".join(parts) == table
    assert all(measure(padded(part), Unit.UTF16) <= 4096 for part in parts)
    assert len(parts) > 5


def test_a_character_that_renders_over_the_limit_is_an_error() -> None:
    with pytest.raises(ValueError, match="one character"):
        split_text("a", Limit(4), lambda text: text * 5)


def test_a_good_end_that_renders_too_long_is_passed_over() -> None:
    text = "one two. " * 200

    def render(part: str) -> str:
        return part + "!" * 500 if part.endswith(". ") else part

    parts = split_text(text, Limit(400), render)
    assert "".join(parts) == text
    assert all(len(render(part)) <= 400 for part in parts[:-1])
    assert all(not part.endswith(". ") for part in parts[:-1])


def test_a_limit_that_cannot_hold_a_character_is_an_error() -> None:
    with pytest.raises(ValueError, match="cannot hold"):
        split_text("a", Limit(3))


def test_an_empty_text_has_no_parts() -> None:
    assert split_text("", Limit(10)) == []


@pytest.mark.parametrize(
    "whole", ["😀", FAMILY, FLAG, "e\u0301", "👍🏽", "한", "\u1112\u1161\u11ab", "\r\n", "🏴󠁧󠁢󠁥󠁮󠁧󠁿"]
)
@pytest.mark.parametrize("unit", Unit)
def test_no_cut_tears_what_is_seen_as_one_character(whole: str, unit: Unit) -> None:
    size = measure(whole, unit) + 7
    for shift in range(12):
        text = "a" * shift + whole * 9
        parts = split_text(text, Limit(size, unit))
        assert "".join(parts) == text
        assert all(not part.replace(whole, "").strip("a") for part in parts)


def test_a_cluster_over_the_limit_is_cut_between_code_points() -> None:
    text = "e" + "\u0301" * 50
    parts = split_text(text, Limit(10))
    assert "".join(parts) == text
    assert max(measure(part, Unit.BYTES) for part in parts) <= 10


def test_case_42_a_surrogate_pair_is_never_cut() -> None:
    assert split_text("a" * 4095 + "😀tail", Limit(4096, Unit.UTF16)) == ["a" * 4095, "😀tail"]


@pytest.mark.parametrize(
    "whole", ["😀", "&amp;", "&#128512;", "&#x1f600;", "&quot;", FAMILY, FLAG, "👍🏽", "e\u0301"]
)
def test_case_42_what_stands_at_the_cut_is_whole_in_one_of_the_parts(whole: str) -> None:
    for before in range(4096 - 2 * len(whole.encode("utf-16-le")), 4098):
        text = "a" * before + whole + "tail" + whole * 3
        parts = split_text(text, Limit(4096, Unit.UTF16))
        assert "".join(parts) == text
        assert all(measure(part, Unit.UTF16) <= 4096 and part.encode() for part in parts)
        assert sum(part.count(whole) for part in parts) == 4


@pytest.mark.parametrize(
    ("text", "first"),
    [
        ("one two three.\n\nfour five six seven", "one two three.\n\n"),
        ("one two three.\nfour. five six seven", "one two three.\n"),
        ("one two three. four five six seven", "one two three. "),
        ("今天天气很好。我们去公园散步吧", "今天天气很好。"),
        ("onetwothree fourfive six seven eight", "onetwothree fourfive "),
    ],
)
def test_a_cut_is_at_the_best_end_in_reach(text: str, first: str) -> None:
    assert split_text(text, Limit(24))[0] == first


@pytest.mark.parametrize(
    "whole", [*WHOLE[:-2], "`" + "code " * 7 + "`", "[" + "w" * 18 + "](https://e.example)"]
)
def test_what_belongs_together_is_not_cut_where_it_fits(whole: str) -> None:
    for shift in range(40):
        parts = split_text("y" * shift + whole + " tail " * 9, Limit(40))
        assert any(whole in part for part in parts)


def test_an_address_over_the_limit_is_cut() -> None:
    url = "https://e.example/" + "a" * 100
    assert "".join(split_text(url, Limit(40))) == url


@pytest.mark.parametrize(
    "text", ["word " * 8 + "\n\n", "\n\n" + "word " * 30, "a" * 40 + "\n", "a b" + " " * 36 + "c"]
)
def test_no_part_is_blank(text: str) -> None:
    parts = split_text(text, Limit(40))
    assert "".join(parts) == text
    assert all(part.strip() for part in parts)


def test_a_run_of_blanks_longer_than_a_part_is_kept() -> None:
    text = "a" + " " * 100 + "b"
    assert "".join(split_text(text, Limit(10))) == text


def test_code_is_closed_and_opened_again_with_its_language() -> None:
    parts = split_text("```py\n" + "x = 1\n" * 9 + "```\nend", Limit(40))
    assert parts[0] == "```py\n" + "x = 1\n" * 5 + "```"
    assert parts[1] == "```py\n" + "x = 1\n" * 4 + "```\nend"


@pytest.mark.parametrize("fence", ["````", "~~~", "  ```", "~~~~~"])
def test_case_44_any_fence_is_closed_with_its_own_kind(fence: str) -> None:
    parts = split_text(f"{fence}sh\n" + "echo ``` 1\n" * 20 + f"{fence}\n", Limit(60))
    assert all(part.startswith(f"{fence}sh\n") for part in parts)
    assert all(part.rstrip("\n").endswith(f"\n{fence}") for part in parts)


def test_case_44_one_long_line_of_code_goes_on_in_blocks() -> None:
    parts = split_text("```js\n" + "x" * 500 + "\n```", Limit(100))
    assert all(part.startswith("```js\nx") and part.endswith("x\n```") for part in parts)
    assert sum(part.count("x") for part in parts) == 500


def test_no_cut_leaves_an_empty_block() -> None:
    for shift in range(60):
        for part in split_text("p" * shift + "\n```py\na\nbb\nccc\ndddd\n```\n" + "q " * 20, Limit(48)):
            for fence in find_fences(part):
                assert part[fence.inner : fence.outer].strip()


def test_a_fence_that_takes_half_of_a_part_is_text() -> None:
    text = "```" + "language " * 5 + "\n" + "x" * 100
    assert "".join(split_text(text, Limit(60))) == text


@pytest.mark.parametrize(
    "text",
    [
        "x" * 65536,
        "a b " * 16384,
        "```\n" * 16384,
        "[" * 65536,
        "中" * 21845,
        "`" * 65536,
        "http://" * 9000,
        "\n" * 65536,
        "[a](b" * 13000,
        "``a`b`` " * 8000,
        "a|b\n-|-\n" + "|\n" * 32000,
        "a|b\n-|-\n1|2\n\n" * 4500,
    ],
)
def test_64_kib_of_the_worst_kind_are_cut_to_the_end(text: str) -> None:
    split_text(text, Limit(4000))
    split_text(text, Limit(2000), plain)


@pytest.mark.parametrize("text", ["x" * MIB, "https://e.example/" + "a" * MIB, f"```js\n{'x' * MIB}\n```"])
def test_case_44_a_line_of_a_megabyte_is_cut_to_the_end(text: str) -> None:
    parts = split_text(text, Limit(4096, Unit.UTF16), plain)
    assert "".join(parts).count(text[-5]) >= MIB
    assert all(part.strip() for part in parts)
