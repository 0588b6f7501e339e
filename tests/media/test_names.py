"""Names that others chose."""

import re
import unicodedata

import pytest
from hypothesis import given
from hypothesis import strategies as st

from bridge.media.names import MAX_NAME_BYTES, prefix_of, safe_name, unique_name

LONG = "长" * 60


@pytest.mark.parametrize(
    ("name", "safe"),
    [
        ("报告—详情（2026）.md", "报告—详情（2026）.md"),
        ("../../escape.txt", "escape.txt"),
        ("a/../../b", "b"),
        ("C:\\x", "x"),
        ("..%2f..", "%2f"),
        ("..", "file"),
        (".bashrc", "bashrc"),
        ("a.", "a"),
        (" a . ", "a"),
        ("a/", "file"),
        ("", "file"),
        ('a:b*c?d"e<f>g|h\x00\r\n.txt', "a_b_c_d_e_f_g_h___.txt"),
        ("a\u202egnp.exe", "agnp.exe"),
        ("\ufeffa\u200bb\u2066.txt", "ab.txt"),
        ("e\u0301.txt", "é.txt"),
        ("\ud800.txt", "_.txt"),
        ("a\u2028b", "a_b"),
        ("CON", "_CON"),
        ("nul.txt", "_nul.txt"),
        ("com1 .tar.gz", "_com1 .tar.gz"),
        ("lpt².x", "_lpt².x"),
        ("console.txt", "console.txt"),
        ("😀.png", "😀.png"),
        ("👨\u200d👩\u200d👧 ❤\ufe0f\u200d🔥.jpg", "👨\u200d👩\u200d👧 ❤\ufe0f\u200d🔥.jpg"),
        ("👩🏽\u200d💻.png", "👩🏽\u200d💻.png"),
        ("می\u200cخواهم.pdf", "می\u200cخواهم.pdf"),
        ("क्\u200dष.txt", "क्\u200dष.txt"),
        ("\u0600۱۲.txt", "\u0600۱۲.txt"),
        ("a\u200db\u200c.txt", "ab.txt"),
        ("😀\u200d.png", "😀.png"),
        ("😀\u200d\u200d😀.png", "😀😀.png"),
        ("خ\u202eم.txt", "خم.txt"),
    ],
)
def test_a_name_becomes_harmless(name: str, safe: str) -> None:
    assert safe_name(name) == safe


def test_a_missing_name_is_its_kind() -> None:
    assert safe_name("", "image") == "image"
    assert safe_name("/", "audio") == "audio"


def test_a_long_name_keeps_its_extension_and_whole_characters() -> None:
    short = safe_name(f"{LONG}.pdf")
    assert short == "长" * 30 + ".pdf"
    assert safe_name(LONG) == "长" * 32
    assert safe_name(f"{LONG}.{'x' * 20}") == "长" * 32
    assert safe_name("a" * 91 + " b.txt" + "c") == "a" * 91 + ".txtc"


JOINING = st.text("😀👩🏽\ufe0f\u200d\u200cمیक्षa\u0600.", max_size=60)


@given(st.text(st.characters(codec=None), max_size=120) | JOINING)
def test_any_name_is_short_visible_and_stable(name: str) -> None:
    safe = safe_name(name)
    assert 0 < len(safe.encode()) <= MAX_NAME_BYTES + 1
    assert not re.search(r'[/\\:*?"<>|\x00-\x1f]', safe)
    assert safe[0] != "."
    assert safe[-1] not in ". "
    assert not re.search(
        "[\u00ad\u200b\u200e\u200f\u202a-\u202e\u2060-\u206f\ufeff\U000e0000-\U000e007f]", safe
    )
    assert not re.search("[a-z0-9._ ][\u200c\u200d]|[\u200c\u200d]([a-z0-9._ ]|$)", safe)
    assert safe_name(safe) == safe
    assert unicodedata.is_normalized("NFC", safe)


def test_unique_names_differ_and_end_with_the_safe_one() -> None:
    first, second = unique_name("../a b.png"), unique_name("../a b.png")
    assert re.fullmatch(r"[0-9a-f]{12}-a b\.png", first)
    assert first != second


def test_what_a_platform_keeps_under_one_key_has_names_that_begin_alike() -> None:
    assert re.fullmatch(r"[0-9a-f]{12}-", prefix_of("key"))
    assert prefix_of("key") == prefix_of("key") != prefix_of("Key")
    assert prefix_of("half a pair: \ud800")
