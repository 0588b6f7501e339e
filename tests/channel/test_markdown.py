"""Markdown as plain text."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from bridge.channel.fences import find_fences
from bridge.channel.markdown import heading_of, plain


@pytest.mark.parametrize(
    ("markdown", "text"),
    [
        ("# Title", "Title"),
        ("### A **b** ###", "A b"),
        ("#hashtag", "#hashtag"),
        ("Title\n===", "Title\n———"),
        ("a\n\n---\n* * *\n___", "a\n\n———\n———\n———"),
        ("- a\n* b\n  + c", "• a\n• b\n  • c"),
        ("> - a", "> • a"),
        ("- [ ] a\n- [x] b\n- [X] c", "• ☐ a\n• ☑ b\n• ☑ c"),
        ("1. a\n2) b", "1. a\n2) b"),
        ("**a** __b c__ *d* _e_ ~~f~~ ***g***", "a b c d e f g"),
        ("**a *b* c** **粗体**字", "a b c 粗体字"),
        ("2 * 3 * 4 snake_case_name a*b*c **", "2 * 3 * 4 snake_case_name a*b*c **"),
        ("__init__.py", "__init__.py"),
        ("[t](https://e.example/a_b_c)", "t (https://e.example/a_b_c)"),
        ('[t](https://e.example/w(x) "title")', "t (https://e.example/w(x))"),
        ("[https://e.example](https://e.example) [](u)", "https://e.example u"),
        ("![alt](u.png) **[b](u)**", "alt (u.png) b (u)"),
        ("<https://e.example/_a_> https://e.example/_a_?*", "https://e.example/_a_ https://e.example/_a_?*"),
        ("`*a*` ``b`*c*`` `open *d*", "`*a*` ``b`*c*`` `open d"),
        (r"\*a\* \_b\_ 1\. \\ C:\dir", r"*a* _b_ 1. \ C:\dir"),
        ("&lt;at&gt; &amp; <b>x</b>", "&lt;at&gt; &amp; <b>x</b>"),
        ("| a | b |\n|---|:-:|\n| **1** | |\nend", "a | b\n1 | \nend"),
        ("a|b\n-|-\n1\\|2|3", "a | b\n1|2 | 3"),
        ("a | b", "a | b"),
        ("a\0b", "ab"),
    ],
)
def test_what_each_mark_becomes(markdown: str, text: str) -> None:
    assert plain(markdown) == text


def test_code_blocks_are_untouched() -> None:
    block = "```py\n# not *a* heading\n- | x | y |\n```\n"
    assert plain(f"# a\n{block}# b") == f"a\n{block}b"
    assert plain("~~~\n*a*") == "~~~\n*a*"


@given(st.text(alphabet="a *_`~[]()|-#>!\\\n\0h:/.中"))
def test_any_text_comes_through(text: str) -> None:
    shown = plain(text)
    assert "\0" not in shown
    without = text.replace("\0", "")
    assert len(list(find_fences(shown))) >= len(list(find_fences(without)))


@pytest.mark.parametrize(
    "unit",
    [
        "*a ",
        "_",
        "`a``",
        "[",
        "[a](",
        "![](",
        "|",
        "~~",
        "\\",
        "- ",
        "> ",
        "https://",
        "<https://",
        "*",
        "# ",
    ],
)
def test_64_kib_of_the_worst_kind_are_read_to_the_end(unit: str) -> None:
    text = (unit * 65536)[:65536]
    plain(text)
    plain(text + "\n" + text)


@pytest.mark.parametrize(
    "line", ["# x{}y", "# {}", "# x{}# y", "a|b\n{}y|-", "a|b\n|-{}y", "a|b\n-|-\n{}|-|x"]
)
@pytest.mark.parametrize("blank", [" ", "\t"])
def test_a_long_run_of_blanks_is_read_to_its_end(line: str, blank: str) -> None:
    plain(line.format(blank * 60_000))


@pytest.mark.parametrize(
    ("line", "words"),
    [
        ("# a", "a"), ("   ###### a b ## ", "a b"), ("# a#", "a#"), ("# #", ""), ("## a # b", "a # b"),
        ("# ", ""), ("#a", None), ("    # a", None), ("####### a", None), ("#\ta\t#\t", "a"),
        ("# a # #", "a #"),
    ],
)  # fmt: skip
def test_a_heading_is_its_words(line: str, words: str | None) -> None:
    assert heading_of(line) == words
