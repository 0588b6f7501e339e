"""Each account's state. One frozen snapshot feeds the command line, JSON, HTTP and whatever else shows it.

Only the supervisor and the account's own run write here; ``contact`` counts only while a run is alive, so
nothing shows ``connected`` on the word of a run that is over.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, replace
from datetime import datetime, timedelta

from bridge.clock import Clock, unix_seconds
from bridge.ids import AccountId
from bridge.logs import get_logger
from bridge.protocol import ours
from bridge.protocol.shared import ComponentState as State
from bridge.protocol.shared import RemoteTools

__all__ = ["Health", "RemoteTools", "Snapshot", "State", "to_wire"]

TOLD_AGAIN_SECONDS = 600.0  # what anybody can cause fills no log
SET_SECONDS = 1.0  # a clock that differs by less was not set, it drifts

log = get_logger(__name__)


@dataclass(frozen=True, slots=True)
class Snapshot:
    """One account at one instant. ``reason`` is a fixed sentence, "" in a good state.

    ``last_success`` is the last proven exchange, over all runs. ``queue_depth`` counts messages that wait or
    run, ``dead_letters`` parts that were given up. ``tools_configured`` is what is wished for,
    ``remote_tools`` what is in effect. ``clock_skew_seconds`` is how far the platform's clock is ahead of
    ours, None while the platform has told no time. ``senders`` is None while the settings cannot be read.
    ``unproven_requests`` counts those that were refused as not the platform's since the last accepted one.
    """

    id: AccountId
    channel: str
    account: str
    state: State
    since: datetime
    enabled: bool = True
    reason: str = ""
    last_success: datetime | None = None
    next_try: datetime | None = None
    restarts: int = 0
    tools_configured: RemoteTools = RemoteTools.NONE
    bot_id: str = ""
    user_id: str = ""
    senders: ours.Senders | None = ours.Senders.OWNER
    queue_depth: int = 0
    oldest_waiting: datetime | None = None
    dead_letters: int = 0
    clock_skew_seconds: float | None = None
    unproven_requests: int = 0
    last_unproven: datetime | None = None

    @property
    def remote_tools(self) -> RemoteTools:
        """Nobody has tools while the owner is unknown."""
        return self.tools_configured if self.user_id else RemoteTools.NONE


class Refusals:
    """Requests refused as unproven since the last accepted one. Anybody can send such, so no state changes.

    ``note`` is told of each: how many they are, and when.
    """

    __slots__ = ("_account", "_clock", "_count", "_note", "_silent_until")

    def __init__(
        self, account: AccountId, clock: Clock, note: Callable[[int, datetime | None], None]
    ) -> None:
        self._account, self._clock, self._note = account, clock, note
        self._count = 0
        self._silent_until = -math.inf

    def refused(self, status: int) -> None:
        """A request was answered with ``status`` as one that proves nothing."""
        self._count += 1
        self._note(self._count, self._clock.now())
        now = self._clock.monotonic()
        if now >= self._silent_until:
            self._silent_until = now + TOLD_AGAIN_SECONDS
            log.warning("push.refused", account=self._account, status=status, count=self._count)

    def accepted(self) -> None:
        """A request was proven, and accepted."""
        if self._count:
            self._count = 0
            self._note(0, None)


class Health:
    """The writing side of one account's snapshot. ``changed`` is called when the state may be another."""

    __slots__ = (
        "_alive", "_changed", "_clock", "_contact_from", "_logged", "_longest_contact", "_now",
        "_skew_told_at", "refusals",
    )  # fmt: skip

    def __init__(self, first: Snapshot, clock: Clock, changed: Callable[[], None] = lambda: None) -> None:
        self._now = first
        self._clock, self._changed = clock, changed
        self._skew_told_at = 0.0  # by `_wall_seconds`
        self._alive = first.state is State.STARTING  # until its run ends: nothing else has contact
        self._contact_from: float | None = None
        self._longest_contact = 0.0
        self._logged: tuple[tuple[State, str], ...] = ()  # since the last good state
        self.refusals = Refusals(first.id, clock, self._unproven)
        if first.state is not State.DISABLED:  # as it is wished, so nothing to tell
            self._log()

    @property
    def snapshot(self) -> Snapshot:
        """As it is now: where our clock was set since the platform told its time, with what that changes."""
        told = self._now.clock_skew_seconds
        if told is None or abs(set_by := self._wall_seconds() - self._skew_told_at) < SET_SECONDS:
            return self._now
        return replace(self._now, clock_skew_seconds=told - set_by)

    def contact(self) -> None:
        """Contact was proven: an answered poll, a probe, a request that verified."""
        if not self._alive:
            return
        self._now = replace(self._now, last_success=self._clock.now())
        if self._contact_from is None:
            self._enter(State.CONNECTED)
            self._contact_from = self._clock.monotonic()

    def lost(self, reason: str) -> None:
        """Receiving or sending failed while the run goes on. ``reason`` is a fixed sentence.

        What is parked stays ``failed``, and says why, until its new try has contact.
        """
        if self._alive and self._now.state is not State.FAILED:
            self._enter(State.DISCONNECTED, reason)

    def repeated(self) -> None:
        """The run connects anew by itself, which counts as a restart."""
        self._now = replace(self._now, restarts=self._now.restarts + 1)

    def known(self, *, bot_id: str) -> None:
        """Who the bot is on the platform."""
        self._now = replace(self._now, bot_id=bot_id)

    def measured(self, queue_depth: int, oldest_waiting: datetime | None, dead_letters: int) -> None:
        self._now = replace(
            self._now, queue_depth=queue_depth, oldest_waiting=oldest_waiting, dead_letters=dead_letters
        )

    def skewed(self, seconds: float) -> None:
        """The platform's clock is so far ahead of ours."""
        self._skew_told_at = self._wall_seconds()
        self._now = replace(self._now, clock_skew_seconds=seconds)

    def _wall_seconds(self) -> float:
        """How far our wall clock is ahead of the one that never jumps: what setting it changes."""
        return self._clock.now().timestamp() - self._clock.monotonic()

    def contact_seconds(self) -> float:
        """The longest unbroken contact since ``starting``."""
        if self._contact_from is None:
            return self._longest_contact
        return max(self._longest_contact, self._clock.monotonic() - self._contact_from)

    def starting(self) -> None:
        """A run begins. One of what is parked shows ``failed`` until it has contact."""
        self._longest_contact = 0.0
        if self._now.state is State.FAILED:
            self._now = replace(self._now, next_try=None)
        else:
            self._enter(State.STARTING, self._now.reason if self._now.restarts else "")
        self._alive = True

    def backoff(self, reason: str, wait_seconds: float) -> None:
        """The run ended and is repeated after ``wait_seconds``."""
        self._end(State.BACKOFF, reason)
        self._again_after(wait_seconds)

    def stopping(self) -> None:
        self._end(State.STOPPING)

    def stopped(self) -> None:
        self._end(State.STOPPED)

    def failed(self, reason: str, wait_seconds: float | None = None) -> None:
        """The operator must act. It is tried again only after ``wait_seconds``, or never unless asked for."""
        self._end(State.FAILED, reason)
        if wait_seconds is not None:
            self._again_after(wait_seconds)

    def _unproven(self, count: int, last: datetime | None) -> None:
        self._now = replace(self._now, unproven_requests=count, last_unproven=last)

    def _end(self, state: State, reason: str = "") -> None:
        self._alive = False
        self._enter(state, reason)

    def _again_after(self, seconds: float) -> None:
        next_try = self._clock.now() + timedelta(seconds=seconds)
        self._now = replace(self._now, next_try=next_try, restarts=self._now.restarts + 1)

    def _enter(self, state: State, reason: str = "") -> None:
        self._longest_contact = self.contact_seconds()
        self._contact_from = None
        since = self._now.since if state is self._now.state else self._clock.now()
        self._now = replace(self._now, state=state, since=since, reason=reason, next_try=None)
        self._log()
        self._changed()

    def _log(self) -> None:
        """Say a change once: neither a retry nor its start is one, nor are troubles that take turns."""
        now = (self._now.state, self._now.reason)
        if self._now.state is State.STARTING or now in self._logged:
            return
        troubles = [told for told in self._logged if told[1]] if self._now.reason else []
        self._logged = (*troubles, now)
        if reason := self._now.reason:
            log.warning("health.changed", account=self._now.id, state=self._now.state, reason=reason)
        else:
            log.info("health.changed", account=self._now.id, state=self._now.state)


def to_wire(snapshot: Snapshot) -> ours.ComponentHealth:
    """The snapshot as ``daemon.status`` shows it."""
    return ours.ComponentHealth(
        id=snapshot.id,
        channel=snapshot.channel,
        account=snapshot.account,
        bot_id=snapshot.bot_id or None,
        user_id=snapshot.user_id or None,
        enabled=snapshot.enabled,
        state=snapshot.state,
        last_success_unix_seconds=_seconds(snapshot.last_success),
        error=snapshot.reason or None,
        restarts=snapshot.restarts,
        remote_tools=snapshot.remote_tools,
        reason=snapshot.reason or None,
        since_unix_seconds=_seconds(snapshot.since),
        next_try_unix_seconds=_seconds(snapshot.next_try),
        queue_depth=snapshot.queue_depth,
        oldest_waiting_unix_seconds=_seconds(snapshot.oldest_waiting),
        dead_letters=snapshot.dead_letters,
        senders=snapshot.senders,
        clock_skew_seconds=_rounded(snapshot.clock_skew_seconds),
        unproven_requests=snapshot.unproven_requests,
        last_unproven_unix_seconds=_seconds(snapshot.last_unproven),
    )


def _seconds(instant: datetime | None) -> int | None:
    return None if instant is None else unix_seconds(instant)


def _rounded(seconds: float | None) -> float | None:
    """To milliseconds; never a negative zero, which the wire does not take."""
    return None if seconds is None else round(seconds, 3) or 0.0
