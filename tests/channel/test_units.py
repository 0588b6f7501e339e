"""What platforms count."""

from bridge.channel.units import Unit, measure


def test_units_count_what_platforms_count() -> None:
    assert [measure("a中😀", unit) for unit in (Unit.BYTES, Unit.CODEPOINTS, Unit.UTF16)] == [8, 3, 4]
