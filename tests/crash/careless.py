"""A keeper that leaves all alone once the daemon is gone, in place of ``bridge/tools/keeper.py``."""

import os
import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[2]))  # it is started alone

from bridge.tools import keeper


class Careless(keeper.Keeper):
    def _end(self, grace_seconds: float) -> None:
        if grace_seconds == keeper.LOST_SECONDS:
            os._exit(0)
        super()._end(grace_seconds)


if __name__ == "__main__":
    keeper.Keeper = Careless  # type: ignore[misc]  # that is the fault
    keeper.main(int(sys.argv[1]), int(sys.argv[2]), sys.argv[3:])
