"""What is typed, as messages and as keys."""

from hypothesis import given
from hypothesis import strategies as st

from bridge.cli.chat_typing import Ended, Entered, Interrupted, Keys, Lines


def messages(*typed: str) -> list[str]:
    lines = Lines()
    return [text for line in typed if (text := lines.feed(line)) is not None]


def test_a_line_is_a_message() -> None:
    assert messages("hi", "", "  there ") == ["hi", "", "  there "]


def test_a_backslash_at_the_end_goes_on_and_two_do_not() -> None:
    assert messages("a \\", "b\\", "c") == ["a \nb\nc"]
    assert messages("C:\\\\") == ["C:\\\\"]


def test_quotes_around_make_one_message_of_several_lines() -> None:
    assert messages('"""', "a", "", "b\\", '"""', "c") == ["a\n\nb\\", "c"]
    assert messages('"""a', 'b"""') == ["a\nb"]
    assert messages('"""one line"""') == ["one line"]


def test_what_is_unfinished_can_be_given_up_or_taken() -> None:
    lines = Lines()
    assert (lines.feed("a\\"), lines.unfinished) == (None, True)
    assert (lines.take(), lines.unfinished) == ("a", False)
    assert lines.feed("next") == "next"


def test_a_paste_that_the_editor_gives_as_one_is_one_message() -> None:
    assert messages("a\nb\nc") == ["a\nb\nc"]


def test_keys_make_a_line_and_enter_ends_it() -> None:
    keys = Keys("be")
    assert keys.feed("gun 好x\x7f\b") == []
    assert keys.text == "begun "
    assert keys.feed("!\rnext") == [Entered("begun !")]
    assert keys.text == "next"
    assert keys.feed("\x15") == []
    assert keys.text == ""


def test_control_keys_are_told_and_others_have_no_effect() -> None:
    keys = Keys()
    assert keys.feed("\x03") == [Interrupted()]
    assert keys.feed("\x04") == [Ended()]
    assert keys.feed("a\x04\x01\t\x1b[A\x1bOB\x1b[1;5C\x1bx") == []
    assert keys.text == "a"


def test_an_escape_sequence_may_come_in_pieces() -> None:
    keys = Keys()
    for piece in ("\x1b", "[", "1;", "5", "Cx"):
        assert keys.feed(piece) == []
    assert keys.text == "x"


def test_lines_that_are_pasted_are_one_message() -> None:
    keys = Keys()
    assert keys.feed("\x1b[200~a\r\tb\n\x1b[201~") == []
    assert keys.text == "a\n\tb\n"
    assert keys.feed("\r") == [Entered("a\n\tb\n")]


@given(st.text(max_size=40), st.integers(1, 5))
def test_keys_do_not_depend_on_how_they_arrive(typed: str, step: int) -> None:
    whole, pieces = Keys(), Keys()
    told = [each for at in range(0, len(typed), step) for each in pieces.feed(typed[at : at + step])]
    assert (whole.feed(typed), whole.text) == (told, pieces.text)
