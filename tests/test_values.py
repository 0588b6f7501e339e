"""Values of each message's way: what a dataclass gives, without the cost of freezing it."""

from dataclasses import fields, replace

import pytest

from bridge.values import value


@value
class Point:
    x: int
    y: int = 0


def test_a_value_is_built_compared_hashed_and_replaced_as_a_frozen_dataclass_is() -> None:
    assert Point(1) == Point(1, 0)
    assert len({Point(1), Point(1, 0), Point(2)}) == 2
    assert replace(Point(1), y=3) == Point(1, 3)
    assert [field.name for field in fields(Point)] == ["x", "y"]


def test_a_value_has_no_room_for_other_names() -> None:
    with pytest.raises(AttributeError):
        Point(1).z = 2  # type: ignore[attr-defined] # that is what is tried
