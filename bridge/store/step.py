"""What all durable steps and reads are, and what takes them."""

from __future__ import annotations

from typing import Generic, Protocol, TypeVar

R = TypeVar("R", covariant=True)


class Step(Generic[R]):
    """Base of all steps; ``R`` is what taking it returns."""

    __slots__ = ()


class Query(Generic[R]):
    """Base of all reads."""

    __slots__ = ()


class Store(Protocol):
    async def do(self, step: Step[R]) -> R:
        """Take ``step``: return once it is committed and synced.

        Raises:
            StoreError: it was not taken and changed nothing (refused, disk full, read-only).
        """
        ...

    async def get(self, query: Query[R]) -> R:
        """Read."""
        ...

    def backlog(self) -> int:
        """How many steps wait for the writer now."""
        ...
