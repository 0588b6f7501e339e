"""What an account lets go of in time: idle sessions and received files."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import Protocol

from bridge.clock import Clock
from bridge.ids import ConversationKey

TEND_SECONDS = 30.0
SWEEP_SECONDS = 3600.0


class Idle(Protocol):
    @property
    def idle_seconds(self) -> float: ...


async def tend(
    conversations: Mapping[ConversationKey, Idle],
    retire: Callable[[ConversationKey], None],
    limit_seconds: float,
    clock: Clock,
) -> None:
    """Close the sessions of conversations that were idle for so long, for ever."""
    while True:
        for key in [key for key, one in conversations.items() if one.idle_seconds >= limit_seconds]:
            retire(key)
        await clock.sleep(TEND_SECONDS)


class Sweeps(Protocol):
    async def sweep(self) -> None:
        """Remove what it received and need not keep any longer."""
        ...


async def sweep_all(accounts: Callable[[], Iterable[Sweeps]], clock: Clock) -> None:
    """Sweep the received files of all accounts, at the start and hourly, for ever."""
    while True:
        for account in list(accounts()):
            await account.sweep()
        await clock.sleep(SWEEP_SECONDS)
