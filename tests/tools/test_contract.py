import pytest
from pydantic import Field

from bridge.tools.contract import Arguments, ArgumentsError, read_arguments


class Given(Arguments):
    count: int = Field(ge=1)
    text: str = ""


def test_arguments_are_read_with_exact_types() -> None:
    assert read_arguments(Given, {"count": 2}) == Given(count=2)


@pytest.mark.parametrize(
    ("raw", "field"),
    [
        ({"count": "2"}, "count"),
        ({"count": True}, "count"),
        ({"count": 0}, "count"),
        ({}, "count"),
        ({"count": 1, "secretly": 1}, "secretly"),
        ("no object", "the arguments"),
        (None, "the arguments"),
    ],
)
def test_a_refusal_names_the_field(raw: object, field: str) -> None:
    with pytest.raises(ArgumentsError, match=field):
        read_arguments(Given, raw)


def test_a_refusal_shows_no_value_and_stays_short() -> None:
    with pytest.raises(ArgumentsError) as error:
        read_arguments(Given, {"count": "hunter2", **{f"k{n}": "hunter2" for n in range(100)}})
    assert "hunter2" not in str(error.value)
    assert len(str(error.value)) < 1000
    assert error.value.__suppress_context__
