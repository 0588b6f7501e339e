"""What one text of ``/metrics`` is made of."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from bridge.health import Snapshot
from bridge.meter import Meter


@dataclass(frozen=True, slots=True)
class Seen:
    """``backlog`` counts the steps that wait; the sizes are of the database and of its log."""

    version: str
    meter: Meter
    snapshots: Sequence[Snapshot]
    backlog: int
    database_bytes: int
    wal_bytes: int
