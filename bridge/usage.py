"""What turns used, as the command line asks for it."""

from __future__ import annotations

from datetime import timedelta

from bridge.clock import Clock, unix_ms
from bridge.protocol import ours
from bridge.sessions.contract import ControlError, unknown_account
from bridge.store.contract import (
    Store,
)
from bridge.store.usage_steps import Usage, UsageBy, UsageOf
from bridge.supervisor import Supervisor

DAYS = 7  # unless it is said
MOST_DAYS = 3660


class Usages:
    """Sums up usage over days of UTC, today included."""

    def __init__(self, supervisor: Supervisor, store: Store, clock: Clock) -> None:
        self._supervisor, self._store, self._clock = supervisor, store, clock

    async def handle(self, command: ours.UsageList) -> tuple[ours.UsageLine, ...]:
        """Raises ControlError: there is no such account, and nothing was ever used by it; or no such time."""
        days = DAYS if command.days is None else command.days
        if not 0 < days <= MOST_DAYS:
            raise ControlError("usage_error", f"give a number of days, 1 to {MOST_DAYS}: 1 is today")
        today = self._clock.now().replace(hour=0, minute=0, second=0, microsecond=0)
        since_ms = unix_ms(today - timedelta(days=days - 1))
        found = await self._store.get(UsageOf(UsageBy(command.by), since_ms, command.account))
        if command.account and not found and not self._knows(command.account):
            raise unknown_account(command.account)
        return tuple(_line(one) for one in found)

    def _knows(self, account: str) -> bool:
        return any(one.id == account for one in self._supervisor.snapshots())


def _line(one: Usage) -> ours.UsageLine:
    return ours.UsageLine(
        account=one.account,
        name=one.name,
        turns=one.turns,
        input_tokens=one.input_tokens,
        output_tokens=one.output_tokens,
        cost_micros=one.cost_micros,
        uncounted=one.uncounted,
        unpriced=one.unpriced,
    )
