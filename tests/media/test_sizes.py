"""Sizes in words."""

import pytest

from bridge.media.sizes import shown_size


@pytest.mark.parametrize(
    ("count", "shown"),
    [
        (0, "0 bytes"),
        (1, "1 byte"),
        (1023, "1023 bytes"),
        (1024, "1.0 KiB"),
        (1_048_524, "1023.9 KiB"),
        (1_048_525, "1.0 MiB"),
        (3_500_000, "3.3 MiB"),
    ],
)
def test_a_size_is_shown_as_people_read_it(count: int, shown: str) -> None:
    assert shown_size(count) == shown
