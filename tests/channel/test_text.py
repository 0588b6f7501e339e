"""Shortening, cleaning and defusing of texts."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from bridge.channel.text import Limit, clean, defuse_mentions, split_text, truncate

FAMILY = "👨‍👩‍👧‍👦"


@given(st.text(), st.integers(-2, 40), st.text(max_size=5))
def test_a_shortened_text_is_within_its_bytes(text: str, size: int, note: str) -> None:
    short = truncate(text, size, note)
    assert len(short.encode()) <= max(size, 0)


def test_a_short_text_is_only_cleaned_and_a_long_one_ends_with_the_note() -> None:
    assert truncate("a\x00b", 5) == "ab"
    assert truncate("abcdefgh", 6) == "abc…"
    assert truncate(f"ab{FAMILY}{FAMILY}", 40, "!") == f"ab{FAMILY}!"
    assert truncate("e" + "\u0301" * 90, 150, "") == "e" + "\u0301" * 74


@given(st.text(st.characters()))
def test_a_clean_text_can_be_encoded(text: str) -> None:
    once = clean(text)
    once.encode()
    assert clean(once) == once


def test_cleaning_joins_halves_and_drops_controls() -> None:
    assert clean("\ud83d\ude00 \ud83d \x00\x1b\t\r\n") == "😀 \ufffd \t\r\n"


MENTIONS = [
    "<!channel>", "<!here>", "<!everyone>", "<!subteam^S1>", "@everyone", "@ALL", "@here", "@all大家",
    "@所有人", '<at user_id="all">', "<AT id=all></AT>", "<@U1>", "@channel", "@room",
]  # fmt: skip


@pytest.mark.parametrize("mention", MENTIONS)
@given(st.integers(4, 12))
def test_no_mention_survives_whole_or_in_a_part(mention: str, size: int) -> None:
    safe = defuse_mentions(f"a {mention} b")
    assert defuse_mentions(safe) == safe
    for part in [safe, *split_text(safe, Limit(size))]:
        assert defuse_mentions(part) == part


@pytest.mark.parametrize(
    "text", ["<attribute>", "@allison", "a < b", "<!-- c -->", "<!DOCTYPE html>", "x@y.example"]
)
def test_what_notifies_nobody_stays(text: str) -> None:
    assert defuse_mentions(text) == text
