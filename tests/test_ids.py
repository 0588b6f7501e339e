"""Ids that nobody guesses."""

import re
import uuid

import pytest

from bridge.ids import new_hex, new_uuid


def test_a_uuid_is_random_and_in_its_usual_form() -> None:
    first, second = new_uuid(), new_uuid()
    assert first != second
    assert (str(uuid.UUID(first)), uuid.UUID(first).version) == (first, 4)


@pytest.mark.parametrize("digits", [2, 12, 32])
def test_hex_ids_have_as_many_digits_as_asked_for(digits: int) -> None:
    assert re.fullmatch(f"[0-9a-f]{{{digits}}}", new_hex(digits))
    assert len(new_hex()) == 12
    assert new_hex(32) != new_hex(32)
