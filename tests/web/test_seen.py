"""What a text of /metrics is made of is a value."""

import pytest

from bridge.channel.testing.clock import FakeClock
from bridge.meter import Meter
from bridge.web.seen import Seen


def test_it_is_a_value_that_nobody_changes() -> None:
    seen = Seen("1.2.3", Meter(FakeClock()), (), 0, 1, 2)
    with pytest.raises(AttributeError):
        seen.backlog = 1  # type: ignore[misc]  # that is the point
    assert (seen.database_bytes, seen.wal_bytes) == (1, 2)
