from hypothesis import given
from hypothesis import strategies as st

from bridge.tools.texts import cut, cut_text, from_terminal, one_line


@given(st.text(), st.integers(4, 40))
def test_a_cut_lies_between_characters_and_near_the_limit(text: str, most: int) -> None:
    data = text.encode()
    head = cut(data, most)
    assert text.startswith(head.decode())
    assert head == data if len(data) <= most else most - 4 < len(head) <= most


@given(st.binary(), st.integers(4, 40))
def test_bytes_that_are_no_text_are_cut_too(data: bytes, most: int) -> None:
    assert data.startswith(cut(data, most))


def test_text_is_cut_by_its_bytes_and_holds_what_utf_8_can() -> None:
    assert cut_text("é\ud800é", 4) == "é?"


def test_what_a_program_wrote_becomes_plain_text() -> None:
    assert from_terminal(b"\x1b[1;31mred\x1b[0m\x1b]0;title\x07 \x1b]8;;x\x1b\\link\x1b(B\r\n10%\r20%\n") == (
        "red link\n10%\n20%\n"
    )
    assert from_terminal(b"a\0b\tc\xff\x07") == "a\ufffdb\tc\ufffd\ufffd"


def test_a_title_is_one_line() -> None:
    assert one_line(" a\n b\x00\tc ") == "a b c"
