"""What owners must hear of: accounts that are out of contact for long, or parked; a daemon that crashed."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from datetime import datetime

from bridge.clock import Clock
from bridge.errors import StoreError
from bridge.health import Snapshot, State
from bridge.ids import AccountId
from bridge.logs import Logger
from bridge.relay.notices import Notices
from bridge.relay.texts import Text

LOOK_SECONDS = 30.0
DEAF_SECONDS = 600.0  # out of contact, however its run fares
PARKED_SECONDS = 60.0  # a mistake that its operator is just mending is no news
CRASH_SECONDS = 5.0  # between two tries to tell of a crash: the accounts have only just started
FEW = 3  # accounts that are told of one by one
WELL, DEAF, PARKED = "", "deaf", "parked"

_OFF = frozenset({State.DISABLED, State.STOPPING, State.STOPPED})
_TEXTS = {
    PARKED: (Text.PARKED, Text.PARKED_MANY),
    DEAF: (Text.DEAF, Text.DEAF_MANY),
    WELL: (Text.CONTACT_AGAIN, Text.CONTACT_AGAIN_MANY),
}


@dataclass(slots=True)
class _Out:
    """An account without contact ``since`` then, by the monotonic clock; ``last`` is when it had some."""

    since: float
    last: datetime | None


class Outages:
    """Told by looks at the snapshots: what is between two looks shows by the time of the last contact."""

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._out: dict[AccountId, _Out] = {}

    def look(self, snapshots: Sequence[Snapshot]) -> dict[AccountId, str]:
        """The accounts of which it is known how they are: ``WELL``, ``DEAF`` or ``PARKED``."""
        self._out = {one.id: self._out[one.id] for one in snapshots if one.id in self._out}
        states = {one.id: self._state(one) for one in snapshots}
        return {id_: state for id_, state in states.items() if state is not None}

    def _state(self, one: Snapshot) -> str | None:
        if one.state is State.CONNECTED or one.state in _OFF or not one.enabled:
            self._out.pop(one.id, None)
            return WELL if one.state is State.CONNECTED else None
        now = self._clock.monotonic()
        out = self._out.get(one.id)
        if out is None or out.last != one.last_success:
            out = self._out[one.id] = _Out(now, one.last_success)
        seconds = now - out.since
        if one.state is State.FAILED and seconds >= PARKED_SECONDS:
            return PARKED
        return DEAF if seconds >= DEAF_SECONDS else None


async def watch_accounts(
    snapshots: Callable[[], Sequence[Snapshot]], notices: Notices, clock: Clock, log: Logger
) -> None:
    """Tell of each outage once, and of its end; for ever."""
    outages = Outages(clock)
    while True:
        states = outages.look(snapshots())
        try:
            for state in _TEXTS:
                await _tell(notices, state, [account for account in states if states[account] == state])
        except StoreError as error:
            log.warning("notice.failed", error=error)
        await clock.sleep(LOOK_SECONDS)


async def _tell(notices: Notices, state: str, accounts: Sequence[AccountId]) -> None:
    """Tell of each account, or of many at once together, as when their platform is away."""
    news = [account for account in accounts if await notices.is_news(_topic(account), state)]
    few, many = _TEXTS[state]
    for account in accounts:
        if len(news) <= FEW or account not in news:
            await notices.tell(_topic(account), state, few, [account], account=account)
    if len(news) <= FEW:
        return
    first, *others = map(_topic, news)
    await notices.tell(first, state, many, news, count=len(news), names=", ".join(news[:FEW]))
    if not await notices.is_news(first, state):
        await notices.follow(first, others)


def _topic(account: AccountId) -> str:
    return f"contact {account}"


async def tell_of_crash(crash: str, notices: Notices, clock: Clock, log: Logger) -> None:
    """Tell once that the daemon ended without being stopped. ``crash`` names it, "" for none. Never ends."""
    while crash:
        try:
            await notices.tell("crash", crash, Text.CRASHED)
            if not await notices.is_news("crash", crash):
                break
        except StoreError as error:
            log.warning("notice.failed", error=error)
        await clock.sleep(CRASH_SECONDS)
    await asyncio.get_running_loop().create_future()
