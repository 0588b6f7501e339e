"""Runs every account, restarts it when its run ends, parks it when the operator must act. Nothing else does.

Each account has one task at a time, which is its run or the wait for the next one, so there is never a second
instance. An account's crash ends its run and nothing more.
"""

from __future__ import annotations

import asyncio
import random
from collections.abc import AsyncIterator, Callable, Coroutine, Iterable
from contextlib import asynccontextmanager
from dataclasses import dataclass
from datetime import datetime
from typing import Any, Protocol

from bridge.clock import Clock
from bridge.errors import (
    BridgeError,
    ChannelError,
    ConfigError,
    CredentialsError,
    MuteError,
    SessionError,
    StoreError,
    UnreachableError,
)
from bridge.health import Health, Snapshot, State
from bridge.ids import AccountId
from bridge.logs import clean, get_logger
from bridge.retry import Backoff, Breaker, Randomness
from bridge.store.contract import BindingError

STOP_SECONDS = 5.0  # for a run to end once it was cancelled
PROVEN_SECONDS = 60.0  # of contact, after which the waits begin anew; the long ones after MUTE_SECONDS
FIRST_CONTACT_SECONDS = 60.0  # after the start of a run; silence is no good sign for longer
MUTE_TIMES, MUTE_SECONDS = 10, 3600.0  # so many losses of contact within these park an account
PARKED_SECONDS = (60.0, 300.0, 900.0, 3600.0)  # between the tries of what a platform refuses: it may err
TOLD_CHARACTERS = 300  # of what an adapter says of a refusal
STUCK = "it does not stop when told to: restart the daemon, unless it soon does"
NO_CONTACT = "no contact since it started: it goes on trying"
PARKING = (ConfigError, BindingError)  # for good, until the operator acts
REFUSED = (CredentialsError, MuteError)  # parked, and tried again after long waits

log = get_logger(__name__)


class Component(Protocol):
    @property
    def name(self) -> str: ...

    async def run(self, health: Health) -> None:
        """Work until cancelled, and report to ``health``. Returning counts as a failure, as raising does."""
        ...


class EndedError(Exception):
    """A run returned, which none should: a bug."""


async def isolated(work: Coroutine[Any, Any, None], name: str, stop_seconds: float) -> BaseException:
    """Do ``work`` in a task of its own and return the error that ended it.

    In its own, because a TaskGroup that fails inside leaves the task around it marked as cancelled (CPython
    3.11 and 3.12). Cancelling the caller cancels the work and waits for it, ``stop_seconds`` at most: work
    that goes on is a bug, logged and left behind.
    """
    run = asyncio.create_task(work, name=name)  # noqa: TID251 - awaited below
    try:
        await asyncio.wait([run])
    finally:
        run.cancel()
        await asyncio.wait([run], timeout=stop_seconds)
        if not run.done():
            log.error("task.stuck", task=name)
            run.add_done_callback(_ending)  # or its error would be missed
    return _ending(run)


def _ending(run: asyncio.Task[None]) -> BaseException:
    """What ended ``run``; of a group, what an operator must mend comes first, so that it is not drowned."""
    if run.cancelled():
        return EndedError()
    error = run.exception() or EndedError()
    leaves = list(_leaves(error))
    mending = [leaf for kinds in (PARKING, REFUSED) for leaf in leaves if isinstance(leaf, kinds)]
    return (mending or leaves)[0]


def _leaves(error: BaseException) -> Iterable[BaseException]:
    if not isinstance(error, BaseExceptionGroup):
        return [error]
    return [leaf for inner in error.exceptions for leaf in _leaves(inner)]


def sentence(error: BaseException) -> str:
    """What the status says of ``error``: a fixed sentence, with our own error's text where that helps to act.

    A ConfigError's text, and a CredentialsError's, which an adapter may have written: it is cleaned and cut.
    """
    match error:
        case ConfigError():
            return clean(str(error))
        case BindingError():
            return "its stored messages belong to another bot: restore its credentials, or remove its state"
        case CredentialsError():
            told = clean(str(error))[:TOLD_CHARACTERS] or "the log says why"
            return f"the platform refused the account: correct its settings or credentials ({told})"
        case MuteError():
            return "it connects and falls silent again and again: look at the platform and the network"
        case UnreachableError():
            return "the platform cannot be reached"
        case ChannelError():
            return "the platform gave no usable answer"
        case StoreError():
            return "the store takes no writes: look at the disk"
        case SessionError():
            return "the session server ended the connection"
        case _:
            return "it crashed: the log says where"


class Troubles:
    """How long one account is left alone after its runs have ended."""

    def __init__(self, clock: Clock, rng: Randomness) -> None:
        self.waits = Backoff(clock, rng, floor_seconds=1.0)
        self.parked = Backoff(clock, rng, bounds=PARKED_SECONDS, floor_seconds=PARKED_SECONDS[0])
        self._losses = Breaker(clock, MUTE_TIMES, MUTE_SECONDS)

    def judged(self, error: BaseException, contact_seconds: float) -> BaseException:
        """What ended a run that had so long a contact: whatever it was, once too often is mute."""
        if contact_seconds >= PROVEN_SECONDS:
            self.waits.reset()
        if contact_seconds >= MUTE_SECONDS:
            self.parked.reset()
        is_mute = isinstance(error, ChannelError) and contact_seconds and self._losses.trips()
        return MuteError() if is_mute else error


class Supervised:
    """Runs ``component`` for ever, or until the operator must act: a run, a wait in ``tasks``, the next run.

    A run has a task of its own, as in ``isolated``, and nothing waits for it: its end is what makes more of
    it. ``begun`` is told of each. Nobody starts it twice, or after its stop.
    """

    __slots__ = (
        "_begun", "_clock", "_is_stopping", "_rng", "_task", "_tasks", "_troubles", "component", "health"
    )  # fmt: skip

    def __init__(
        self,
        component: Component,
        health: Health,
        clock: Clock,
        rng: Randomness,
        tasks: asyncio.TaskGroup,
        begun: Callable[[Health], None] = lambda _: None,
    ) -> None:
        self.component, self.health = component, health
        self._clock, self._rng, self._tasks, self._begun = clock, rng, tasks, begun
        self._task: asyncio.Task[None] | None = None  # the run, or the wait for the next one
        self._troubles: Troubles | None = None  # None: no run has ended yet
        self._is_stopping = False

    def start(self) -> None:
        """A run begins."""
        self.health.starting()
        self._begun(self.health)
        run = _contained(self.component, self.health)
        self._task = asyncio.create_task(run, name=self.component.name)  # noqa: TID251 - stop waits for it
        self._task.add_done_callback(self._ended)

    def _ended(self, run: asyncio.Task[None]) -> None:
        error = _ending(run)  # read in any case, so that none is lost
        if self._is_stopping:
            self.health.stopped()
        else:
            self._task = self._tasks.create_task(self._go_on(error), name=f"{self.component.name}/wait")

    async def _go_on(self, error: BaseException) -> None:
        """After ``error`` ended a run."""
        if isinstance(error, PARKING):
            _log_parked(self.component, self.health, error)
            self.health.failed(sentence(error))
            return
        troubles = self._troubles = self._troubles or Troubles(self._clock, self._rng)
        error = troubles.judged(error, self.health.contact_seconds())
        if isinstance(error, REFUSED):
            seconds = _park(self.component, self.health, error, troubles.parked)
        else:
            seconds = _back_off(self.component, self.health, error, troubles.waits)
        await self._clock.sleep(seconds)
        self.start()

    async def stop(self) -> None:
        """Cancel the run, and wait for its end. One that goes on is a bug: it is failed until it ends."""
        again, self._is_stopping = self._is_stopping, True  # also of a run that has just ended by itself
        if self._task is None or self._task.done() or self.is_stuck:
            return
        if not again:
            self.health.stopping()
            self._task.cancel()
        await asyncio.wait([self._task], timeout=STOP_SECONDS)
        if self._task.done():
            self.health.stopped()
        else:
            log.error("task.stuck", task=self.component.name)
            self.health.failed(STUCK)

    @property
    def is_stuck(self) -> bool:
        """Its run goes on although it was told to stop: there must not be a second one beside it."""
        return self.health.snapshot.reason == STUCK


async def _contained(component: Component, health: Health) -> None:
    try:
        await component.run(health)
    except SystemExit as error:  # it would end the daemon
        raise EndedError from error


def _park(component: Component, health: Health, error: BaseException, waits: Backoff) -> float:
    """Leave it alone for so many seconds. It is tried again, since a platform may also refuse by mistake."""
    _log_parked(component, health, error)
    wait_seconds = waits.next_seconds()
    health.failed(sentence(error), wait_seconds)
    return wait_seconds


def _log_parked(component: Component, health: Health, error: BaseException) -> None:
    if health.snapshot.reason != sentence(error):
        log.error("component.parked", account=component.name, error=error)


def _back_off(component: Component, health: Health, error: BaseException, waits: Backoff) -> float:
    wait_seconds = waits.next_seconds(getattr(error, "retry_after_seconds", 0.0))
    if waits.failures == 1 or not isinstance(error, ChannelError):
        log.warning("component.ended", account=component.name, error=error)
    health.backoff(sentence(error), wait_seconds)
    return wait_seconds


@dataclass(frozen=True, slots=True)
class Plan:
    """An account as the settings want it. Equal ``key``: nothing changed, so a running one is left alone.

    ``build`` makes its component; None: it does not run, and ``first`` says why (disabled, or failed).
    """

    first: Snapshot
    key: object
    build: Callable[[], Component] | None


@dataclass(slots=True)
class _Account:
    """Of its plan only what is compared is kept: what builds a component holds all that it is made of."""

    key: object
    is_wanted: bool
    health: Health
    supervised: Supervised | None = None

    @property
    def is_parked(self) -> bool:
        return self.health.snapshot.state is State.FAILED

    @property
    def was_stopped(self) -> bool:
        """It was told to stop for a successor that never came: whoever asked for it went away."""
        return self.health.snapshot.state in (State.STOPPING, State.STOPPED)


class Supervisor:
    """All accounts, each ``Supervised`` while ``running``."""

    def __init__(self, clock: Clock, rng: Randomness | None = None) -> None:
        self._clock, self._rng = clock, rng or random.SystemRandom()
        self._accounts: dict[AccountId, _Account] = {}
        self._tasks: asyncio.TaskGroup | None = None
        self._changing = asyncio.Lock()
        self._changed = asyncio.Event()
        self._begun: asyncio.Queue[tuple[float, Health, datetime]] = asyncio.Queue()

    @asynccontextmanager
    async def running(self) -> AsyncIterator[None]:
        """Accounts may be started in this block, and are stopped at its end, all at once."""
        async with asyncio.TaskGroup() as tasks:
            self._tasks = tasks
            expecting = tasks.create_task(self._expect_contact(), name="first contact")
            try:
                yield
            finally:
                self._tasks = None
                await self._stop(list(self._accounts))
                self._accounts.clear()
                expecting.cancel()

    def _note_begun(self, health: Health) -> None:
        due = self._clock.monotonic() + FIRST_CONTACT_SECONDS
        self._begun.put_nowait((due, health, health.snapshot.since))

    async def _expect_contact(self) -> None:
        """What has not been heard of is not healthy, also where nobody reports anything."""
        while True:
            due, health, since = await self._begun.get()
            await self._clock.sleep(due - self._clock.monotonic())
            if (health.snapshot.state, health.snapshot.since) == (State.STARTING, since):
                health.lost(NO_CONTACT)

    def healths(self) -> list[Health]:
        """Of every account, sorted by id."""
        return [self._accounts[key].health for key in sorted(self._accounts)]

    def snapshots(self) -> list[Snapshot]:
        return [health.snapshot for health in self.healths()]

    async def settled(self) -> None:
        """Return once no account is ``starting`` any more: each has contact, or is known to have none."""
        while any(snapshot.state is State.STARTING for snapshot in self.snapshots()):
            self._changed.clear()
            await self._changed.wait()

    def component(self, account: str) -> object | None:
        """The account's component, also between its runs and when it is parked; None: there is none."""
        found = self._accounts.get(AccountId(account))
        return found.supervised.component if found and found.supervised else None

    def is_wanted(self, account: str) -> bool:
        """Whether it is planned and not switched off, however broken."""
        found = self._accounts.get(AccountId(account))
        return found is not None and found.is_wanted

    def left_behind(self) -> bool:
        """Whether an account was stopped for a successor that never came: ``reconcile`` starts it."""
        return any(account.was_stopped for account in self._accounts.values())

    async def reconcile(self, plans: Iterable[Plan], *, revive: bool | AccountId = False) -> None:
        """Make it as planned, account by account: one that is slow to stop delays no other's start.

        What is not wanted any more stops first, as its successor may have another name. With ``revive``, what
        is parked is tried again, too: all of it, or that account.
        """
        wanted = {plan.first.id: plan for plan in plans}
        async with self._changing:
            gone = [id_ for id_ in self._accounts if id_ not in wanted]
            await self._stop(gone)
            async with asyncio.TaskGroup() as tasks:
                for id_, plan in wanted.items():
                    if id_ not in self._accounts:
                        self._start(id_, plan)
                    elif self._is_due(self._accounts[id_], plan, revive=revive):
                        tasks.create_task(self._replace(id_, plan), name=f"{id_}/replace")

    def _is_due(self, account: _Account, plan: Plan, *, revive: bool | AccountId) -> bool:
        is_tried = plan.build is not None and revive in (True, plan.first.id) and account.is_parked
        return plan.key != account.key or account.was_stopped or is_tried

    async def _replace(self, id_: AccountId, plan: Plan) -> None:
        await self._stop([id_])
        if id_ not in self._accounts:
            self._start(id_, plan)

    def _start(self, id_: AccountId, plan: Plan) -> None:
        if self._tasks is None:
            return  # all of it is being stopped
        health = Health(plan.first, self._clock, self._changed.set)
        is_wanted = plan.first.state is not State.DISABLED
        account = self._accounts[id_] = _Account(plan.key, is_wanted, health)
        if plan.build is None:
            return
        try:
            component = plan.build()
        except BridgeError as error:
            health.failed(sentence(error))
            return
        account.supervised = Supervised(
            component, health, self._clock, self._rng, self._tasks, self._note_begun
        )
        account.supervised.start()

    async def _stop(self, ids: Iterable[AccountId]) -> None:
        """Stop these, all at once, and forget them, but for one whose run will not end."""
        accounts = {id_: self._accounts[id_] for id_ in ids if id_ in self._accounts}
        async with asyncio.TaskGroup() as tasks:
            for id_, account in accounts.items():
                if account.supervised is not None:
                    tasks.create_task(account.supervised.stop(), name=f"{id_}/stop")
        for id_, account in accounts.items():
            is_stuck = account.supervised is not None and account.supervised.is_stuck
            if not is_stuck and self._accounts.get(id_) is account:
                del self._accounts[id_]
