"""The head of a Markdown file."""

import pytest

from bridge.tools.front_matter import FrontMatterError, split


def test_fields_are_read_in_each_of_their_forms() -> None:
    text = """\ufeff---
# a comment
name: plain   # said
description: >-
  two
  lines

literal: |
  a
  b
quoted: "with: \\"marks\\""
single: 'it''s'
long: goes
  on
empty:
list:
  - one
metadata:
  nested: x
---

Body
"""
    fields, body = split(text)
    assert fields["name"] == "plain"
    assert fields["description"] == "two\nlines"
    assert fields["literal"] == "a\nb"
    assert (fields["quoted"], fields["single"], fields["long"]) == ('with: "marks"', "it's", "goes on")
    assert fields["empty"] == ""
    assert {"list", "metadata"} <= fields.keys()
    assert body == "Body"


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("", "does not begin"),
        ("name: x", "does not begin"),
        ("---\nname: x", "has no end"),
        ("---\n" + "a: b\n" * 500 + "---", "has no end"),
        ("---\nno field\n---", "no key: value"),
        ("---\n  indented\n---", "no key: value"),
        ("---\na: 1\na: 2\n---", "a key twice"),
        ('---\na: "x\n---', "not closed"),
        ("---\na: 'x\n---", "not closed"),
        ("---\na: '\n---", "not closed"),
    ],
)
def test_what_cannot_be_read_is_told_without_being_quoted(text: str, reason: str) -> None:
    with pytest.raises(FrontMatterError, match=reason):
        split(text)


def test_a_blank_line_before_the_first_field_is_none() -> None:
    assert split("---\n\na: b\n---\n") == ({"a": "b"}, "")
