"""What an account has going on in one run."""

from __future__ import annotations

import asyncio
from collections.abc import Coroutine
from typing import Any, TypeVar

R = TypeVar("R")


class Tasks:
    """Starts tasks in a run's group, named after the account."""

    def __init__(self, group: asyncio.TaskGroup, account: str) -> None:
        self._group, self._account = group, account

    def spawn(self, work: Coroutine[Any, Any, R], name: str) -> asyncio.Task[R] | None:
        """Start ``work``. None where the run is ending: the next run takes it up from the store."""
        try:
            return self._group.create_task(work, name=f"{self._account}/{name}")
        except RuntimeError:  # the group takes no more; it has no other way to tell
            work.close()
            return None
