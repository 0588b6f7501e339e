"""The floor of free space."""

from collections import namedtuple
from pathlib import Path

import pytest

from bridge.media.disk import Disk

Space = namedtuple("Space", "total used free")


class Filling:
    """A disk of which a test says how much is free, in percent of what may be used."""

    def __init__(self, free: float) -> None:
        self.free = free
        self.broken = False

    def __call__(self, folder: Path) -> Space:
        if self.broken:
            raise OSError
        free = int(self.free * 10)
        return Space(2000, 1000 - free, free)  # half of it is kept for the system


def test_below_the_floor_it_is_full_until_two_points_above_it() -> None:
    filling = Filling(50)
    disk = Disk(Path("/x"), 20, filling)
    told = []
    for filling.free in (20, 19.9, 20, 21.9, 22, 20, 19):
        told.append(disk.is_full())
    assert told == [False, True, True, True, False, False, True]


def test_a_disk_that_cannot_be_looked_at_is_as_it_was() -> None:
    filling = Filling(10)
    disk = Disk(Path("/x"), 20, filling)
    assert disk.is_full()
    filling.broken = True
    assert disk.is_full()


def test_without_a_floor_it_is_never_full() -> None:
    disk = Disk(Path("/x"), 20, Filling(0))
    assert disk.is_full()
    disk.min_free_percent = 0
    assert not disk.is_full()


def test_a_real_disk_is_measured(tmp_path: Path) -> None:
    assert Disk(tmp_path, 0.000001).is_full() in (True, False)
    assert not Disk(tmp_path, 20, lambda folder: Space(0, 0, 1)).is_full()


@pytest.mark.parametrize("free", [0, 100])
def test_the_ends_of_the_scale(free: float) -> None:
    assert Disk(Path("/x"), 90, Filling(free)).is_full() is (free == 0)
