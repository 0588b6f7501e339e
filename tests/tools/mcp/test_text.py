"""What servers write, made harmless."""

from bridge.tools.mcp.text import line, plain, safe


def test_what_nobody_sees_is_taken_away_and_lines_stay() -> None:
    assert plain(" a\tb\n\u202e\u200b\x1b[31mc\ud800\ue000 ", 99) == "a b\n[31mc"
    assert line(" a\tb\r\n  c ", 99) == "a b c"


def test_a_text_is_cut_between_characters() -> None:
    assert plain("äöü", 6) == "äöü"
    assert plain("äöüß", 7) == "äö…"
    assert plain("\u200b" * 50, 9) == "…"


def test_a_name_has_the_characters_that_models_take() -> None:
    assert safe("a.b/ü-_9") == "a_b__-_9"
