"""Every backend that the contract holds for, each opened on a fresh place."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import AbstractAsyncContextManager
from pathlib import Path

from bridge.store.contract import Store
from bridge.store.sqlite import open_store
from bridge.store.workers import InlineWorker

Open = Callable[[], AbstractAsyncContextManager[Store]]
"""Opens the same store each time, one after the other."""

BACKENDS: dict[str, Callable[[Path], AbstractAsyncContextManager[Store]]] = {
    "sqlite": lambda folder: open_store(folder / "state" / "turnbridge.db"),
    "sqlite-inline": lambda folder: open_store(folder / "state" / "turnbridge.db", workers=InlineWorker),
}
