"""A store around another, for what a test lets go wrong between a part and its store."""

from __future__ import annotations

from typing import TypeVar

from bridge.store.contract import Query, Step, Store

R = TypeVar("R")


class Around:
    """Does as the store inside, but for what a subclass does otherwise."""

    def __init__(self, store: Store) -> None:
        self._store = store

    async def do(self, step: Step[R]) -> R:
        return await self._store.do(step)

    async def get(self, query: Query[R]) -> R:
        return await self._store.get(query)

    def backlog(self) -> int:
        return self._store.backlog()
