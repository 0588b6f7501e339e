"""Code blocks of markdown."""

from bridge.channel.fences import find_fences
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
