"""Code blocks of markdown."""

import pytest

from bridge.channel.fences import code_spans, find_fences
from bridge.channel.split import split_text
from bridge.channel.units import Limit


def test_an_opening_line_without_line_end_or_with_backticks_is_text() -> None:
    assert list(find_fences("```" + "x" * 50)) == []
    assert list(find_fences("```a```\ntext")) == []
    text = "```" + "x" * 500
    assert "".join(split_text(text, Limit(60))) == text


def test_a_block_ends_at_its_own_fence_or_at_the_end() -> None:
    inner = "````md\n```\na\n```\n````\nb"
    assert [inner[f.inner : f.outer] for f in find_fences(inner)] == ["```\na\n```\n"]
    assert [(f.outer, f.end) for f in find_fences("~~~\na")] == [(5, 5)]
    assert [f.end for f in find_fences("~~~\n")] == [4]


@pytest.mark.parametrize("mark", ["- ", "* ", "+ ", "1. ", "12) ", "  - ", "- 1. "])
def test_a_block_may_start_behind_a_list_s_mark(mark: str) -> None:
    indent = " " * len(mark)
    text = f"{mark}```py\n{indent}code\n{indent}```\nprose ```\n"
    (fence,) = find_fences(text)
    assert text[fence.inner : fence.outer] == f"{indent}code\n"
    assert (fence.opener, fence.closer) == (f"{indent}```py", f"{indent}```")
    first, second, *_ = split_text(f"{mark}```py\n" + f"{indent}code\n" * 9 + f"{indent}```\n", Limit(60))
    assert first.startswith(f"{mark}```py\n")
    assert second.startswith(f"{indent}```py\n")


@pytest.mark.parametrize(
    ("text", "spans"),
    [
        ("a `b` c", ["`b`"]),
        ("``a`b`` `c`", ["``a`b``", "`c`"]),
        ("`a\nb `c`", ["`c`"]),
        ("```one line```", ["```one line```"]),
        ("`a ``b", []),
        ("none", []),
    ],
)
def test_code_in_a_line_ends_with_as_many_backticks_on_that_line(text: str, spans: list[str]) -> None:
    assert [text[start:end] for start, end in code_spans(text)] == spans
