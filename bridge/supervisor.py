"""Runs every account, restarts it when its run ends, parks it when the operator must act. Nothing else does.

Each account has one task that loops over its runs; the task is the account's from start to stop, so there is
never a second instance. An account's crash ends its run and nothing more.
"""

from __future__ import annotations

import asyncio
import random
from collections.abc import AsyncIterator, Callable, Coroutine, Iterable
from contextlib import asynccontextmanager
from dataclasses import dataclass
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


async def run_once(component: Component, health: Health, clock: Clock) -> BaseException:
    """Run ``component`` in a task of its own and return the error that ended it; as ``isolated``.

    A run that does not stop when it is cancelled makes ``health`` failed, until it does.
    """

    def stuck(run: asyncio.Task[None]) -> None:
        health.failed(STUCK)
        run.add_done_callback(lambda _: health.stopped())

    return await isolated(_run(component, health, clock), component.name, STOP_SECONDS, stuck)


async def _run(component: Component, health: Health, clock: Clock) -> None:
    async with asyncio.TaskGroup() as tasks:
        deadline = tasks.create_task(_expect_contact(health, clock), name=f"{component.name}/first contact")
        try:
            await component.run(health)
        except SystemExit as error:  # it would end the daemon
            raise EndedError from error
        finally:
            deadline.cancel()


async def _expect_contact(health: Health, clock: Clock) -> None:
    """What has not been heard of is not healthy, also where nobody reports anything."""
    await clock.sleep(FIRST_CONTACT_SECONDS)
    if health.snapshot.state is State.STARTING:
        health.lost(NO_CONTACT)


async def isolated(
    work: Coroutine[Any, Any, None],
    name: str,
    stop_seconds: float,
    stuck: Callable[[asyncio.Task[None]], None] = lambda _: None,
) -> BaseException:
    """Do ``work`` in a task of its own and return the error that ended it.

    In its own, because a TaskGroup that fails inside leaves the task around it marked as cancelled (CPython
    3.11 and 3.12). Cancelling the caller cancels the work and waits for it, ``stop_seconds`` at most: work
    that goes on is a bug, logged and told to ``stuck``, and left behind.
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
            stuck(run)
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


async def supervise(component: Component, health: Health, clock: Clock, rng: Randomness) -> None:
    """Run ``component`` for ever, or until the operator must act. Cancelling stops it."""
    waits = Backoff(clock, rng, floor_seconds=1.0)
    parked = Backoff(clock, rng, bounds=PARKED_SECONDS, floor_seconds=PARKED_SECONDS[0])
    losses = Breaker(clock, MUTE_TIMES, MUTE_SECONDS)
    try:
        while True:
            health.starting()
            error = await run_once(component, health, clock)
            if isinstance(error, PARKING):
                _log_parked(component, health, error)
                health.failed(sentence(error))
                return
            if health.contact_seconds() >= PROVEN_SECONDS:
                waits.reset()
            if health.contact_seconds() >= MUTE_SECONDS:
                parked.reset()
            if isinstance(error, ChannelError) and health.contact_seconds() and losses.trips():
                error = MuteError()
            if isinstance(error, REFUSED):
                await _park(component, health, error, parked, clock)
            else:
                await _back_off(component, health, error, waits, clock)
    except asyncio.CancelledError:
        if health.snapshot.reason != STUCK:  # its run goes on
            health.stopped()
        raise


async def _park(
    component: Component, health: Health, error: BaseException, waits: Backoff, clock: Clock
) -> None:
    """Leave it alone for long. It is tried again, since a platform may also refuse by mistake."""
    _log_parked(component, health, error)
    wait_seconds = waits.next_seconds()
    health.failed(sentence(error), wait_seconds)
    await clock.sleep(wait_seconds)


def _log_parked(component: Component, health: Health, error: BaseException) -> None:
    if health.snapshot.reason != sentence(error):
        log.error("component.parked", account=component.name, error=error)


async def _back_off(
    component: Component, health: Health, error: BaseException, waits: Backoff, clock: Clock
) -> None:
    wait_seconds = waits.next_seconds(getattr(error, "retry_after_seconds", 0.0))
    if waits.failures == 1 or not isinstance(error, ChannelError):
        log.warning("component.ended", account=component.name, error=error)
    health.backoff(sentence(error), wait_seconds)
    await clock.sleep(wait_seconds)


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
    plan: Plan
    health: Health
    component: Component | None = None
    task: asyncio.Task[None] | None = None

    @property
    def is_parked(self) -> bool:
        return self.health.snapshot.state is State.FAILED

    @property
    def was_stopped(self) -> bool:
        """It was told to stop for a successor that never came: whoever asked for it went away."""
        return self.health.snapshot.state in (State.STOPPING, State.STOPPED)

    @property
    def is_stuck(self) -> bool:
        """Its run goes on although it was told to stop: there must not be a second one beside it."""
        return self.health.snapshot.reason == STUCK

    def cancel(self) -> asyncio.Task[None] | None:
        """Tell it to stop; None: it does not run."""
        if self.task is None or self.task.done():
            return None
        self.health.stopping()
        self.task.cancel()
        return self.task


class Supervisor:
    """All accounts, each under ``supervise`` while ``running``."""

    def __init__(self, clock: Clock, rng: Randomness | None = None) -> None:
        self._clock, self._rng = clock, rng or random.SystemRandom()
        self._accounts: dict[AccountId, _Account] = {}
        self._tasks: asyncio.TaskGroup | None = None
        self._changing = asyncio.Lock()
        self._changed = asyncio.Event()

    @asynccontextmanager
    async def running(self) -> AsyncIterator[None]:
        """Accounts may be started in this block, and are stopped at its end, all at once."""
        async with asyncio.TaskGroup() as tasks:
            self._tasks = tasks
            try:
                yield
            finally:
                self._tasks = None
                await self._stop(list(self._accounts))
                self._accounts.clear()

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
        return found.component if found else None

    def is_wanted(self, account: str) -> bool:
        """Whether it is planned and not switched off, however broken."""
        found = self._accounts.get(AccountId(account))
        return found is not None and found.plan.first.state is not State.DISABLED

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
                    if self._is_due(id_, plan, revive=revive):
                        tasks.create_task(self._replace(id_, plan), name=f"{id_}/replace")

    def _is_due(self, id_: AccountId, plan: Plan, *, revive: bool | AccountId) -> bool:
        account = self._accounts.get(id_)
        if account is None or plan.key != account.plan.key:
            return True
        is_tried = plan.build is not None and revive in (True, id_) and account.is_parked
        return account.was_stopped or is_tried

    async def _replace(self, id_: AccountId, plan: Plan) -> None:
        await self._stop([id_])
        if id_ not in self._accounts:
            self._start(id_, plan)

    def _start(self, id_: AccountId, plan: Plan) -> None:
        if self._tasks is None:
            return  # all of it is being stopped
        account = self._accounts[id_] = _Account(plan, Health(plan.first, self._clock, self._changed.set))
        if plan.build is None:
            return
        try:
            account.component = plan.build()
        except BridgeError as error:
            account.health.failed(sentence(error))
            return
        run = supervise(account.component, account.health, self._clock, self._rng)
        account.task = self._tasks.create_task(run, name=f"{id_}/supervise")

    async def _stop(self, ids: Iterable[AccountId]) -> None:
        """Stop these, all at once, and forget them, but for one whose run will not end."""
        accounts = {id_: self._accounts[id_] for id_ in ids if id_ in self._accounts}
        tasks = [task for account in accounts.values() if (task := account.cancel())]
        if tasks:
            await asyncio.wait(tasks)
        for id_, account in accounts.items():
            if not account.is_stuck and self._accounts.get(id_) is account:
                del self._accounts[id_]
