"""A broken rule's reason can be read, whatever the server sent."""

from tests.conformance.faults import MOST_CHARACTERS, brief


def test_what_came_is_shown_as_json_on_one_line_and_cut() -> None:
    assert brief({"type": "error", "n": None}) == '{"type": "error", "n": null}'
    assert brief(b"a\xff\x1b[31m\n") == r'"a\\xff\u001b[31m\n"'
    assert brief("你好\x9b\ud800") == r'"你好\x9b\ud800"'
    assert brief("x" * 500) == f'"{"x" * (MOST_CHARACTERS - 1)}… (502 characters)'
