"""What a reader does not see is written as its code."""

import pytest

from bridge.relay.unseen import visible


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("a b\n\u56fe\u3002\U0001f600", "a b\n\u56fe\u3002\U0001f600"),
        ("a\u3164\u2800\u00a0\u3000", "a\\u3164\\u2800\\u00a0\\u3000"),
        ("\ud800\U000e0100", "\ufffd\\U000e0100"),
    ],
)
def test_what_shows_stays_and_the_rest_becomes_codes(text: str, shown: str) -> None:
    assert visible(text) == shown
