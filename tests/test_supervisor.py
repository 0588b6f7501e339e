"""Accounts are run, restarted with patience, parked, and stopped; an account's end is never the daemon's."""

import asyncio
from collections.abc import Awaitable, Callable
from contextlib import suppress
from dataclasses import replace
from datetime import timedelta

import pytest

from bridge import supervisor
from bridge.channel.testing.clock import START, FakeClock, settle, until
from bridge.errors import (
    BridgeError,
    ChannelError,
    ConfigError,
    CredentialsError,
    MuteError,
    OutcomeUnknownError,
    SessionError,
    StoreError,
    UnreachableError,
)
from bridge.health import Health, Snapshot, State
from bridge.ids import AccountId
from bridge.retry import Randomness
from bridge.store.contract import BindingError
from bridge.supervisor import (
    EndedError,
    Plan,
    Supervised,
    Supervisor,
    isolated,
    sentence,
)

Work = Callable[[Health], Awaitable[None]]


class Highest:
    """Randomness that always waits the whole bound."""

    def uniform(self, a: float, b: float, /) -> float:
        return b


class Lowest:
    def uniform(self, a: float, b: float, /) -> float:
        return a


class Runs:
    """A component that does one thing after the other, then waits for ever."""

    def __init__(self, *works: Work, name: str = "pigeon:main") -> None:
        self._works = list(works)
        self._name = name
        self.started = 0
        self.alive = 0

    @property
    def name(self) -> str:
        return self._name

    async def run(self, health: Health) -> None:
        self.started += 1
        self.alive += 1
        try:
            if self._works:
                return await self._works.pop(0)(health)
            await asyncio.Event().wait()
        finally:
            self.alive -= 1


def fails(error: BaseException) -> Work:
    async def work(health: Health) -> None:
        raise error

    return work


async def connects(health: Health) -> None:
    health.contact()
    await asyncio.Event().wait()


def first(name: str = "main", state: State = State.STARTING) -> Snapshot:
    return Snapshot(id=AccountId(f"pigeon:{name}"), channel="pigeon", account=name, state=state, since=START)


def health_of(clock: FakeClock) -> Health:
    return Health(first(), clock)


class Group:
    """Supervises ``component`` beside a test, and stops it."""

    def __init__(self, component: Runs, clock: FakeClock, rng: Randomness | None = None) -> None:
        self.health = health_of(clock)
        self._tasks = asyncio.TaskGroup()
        self.supervised = Supervised(component, self.health, clock, rng or Highest(), self._tasks)

    async def __aenter__(self) -> "Group":
        await self._tasks.__aenter__()
        self.supervised.start()
        await settle()
        return self

    async def __aexit__(self, *exc: object) -> None:
        await self.supervised.stop()
        await self._tasks.__aexit__(None, None, None)

    @property
    def state(self) -> State:
        return self.health.snapshot.state


async def ended(work: Awaitable[None]) -> BaseException:
    """The error that ended it."""

    async def do() -> None:
        await work

    return await isolated(do(), "x", stop_seconds=1)


# --- one run ------------------------------------------------------------------------------------------------


async def test_the_error_that_ended_a_run_is_returned() -> None:
    error = ValueError()
    assert await ended(fails(error)(health_of(FakeClock()))) is error


async def test_work_that_returns_or_cancels_itself_is_an_error_of_its_own() -> None:
    async def returns(health: Health) -> None:
        return None

    for work in (returns, fails(asyncio.CancelledError())):
        assert isinstance(await ended(work(health_of(FakeClock()))), EndedError)


async def test_of_a_group_what_the_operator_must_mend_is_returned() -> None:
    parks = ConfigError("mend it")
    group = ExceptionGroup("x", [ValueError(), ExceptionGroup("y", [OSError(), parks])])
    assert await ended(fails(group)(health_of(FakeClock()))) is parks
    only = ValueError()
    assert await ended(fails(ExceptionGroup("x", [only]))(health_of(FakeClock()))) is only


async def test_a_failing_task_group_inside_does_not_cancel_the_caller() -> None:
    async def groups(health: Health) -> None:
        async with asyncio.TaskGroup() as tasks:
            tasks.create_task(fails(OSError())(health))  # type: ignore[arg-type]  # a coroutine, under a wider name
            await asyncio.Event().wait()

    clock = FakeClock()
    await ended(groups(health_of(clock)))
    await asyncio.sleep(0)  # would raise in a task that is marked as cancelled
    async with Group(Runs(groups, groups, connects), clock) as group:
        await clock.advance(3)
        assert (group.state, group.health.snapshot.restarts) == (State.CONNECTED, 2)


async def test_cancelling_waits_until_the_work_has_ended() -> None:
    over = []

    async def slowly() -> None:
        try:
            await asyncio.Event().wait()
        finally:
            await settle(5)
            over.append(True)

    async with asyncio.TaskGroup() as tasks:
        task = tasks.create_task(ended(slowly()))
        await settle()
        task.cancel()
    assert over
    assert task.cancelled()


async def test_work_that_will_not_stop_is_left_behind_as_a_bug() -> None:
    release = asyncio.Event()

    async def stubborn() -> None:
        while not release.is_set():
            with suppress(asyncio.CancelledError):
                await release.wait()

    errors: list[BaseException] = []

    async def caller() -> None:
        errors.append(await isolated(stubborn(), "x", stop_seconds=0.01))

    async with asyncio.TaskGroup() as tasks:
        task = tasks.create_task(caller())
        await settle()
        task.cancel()
    assert task.cancelled()
    release.set()
    await settle()
    assert errors == []


# --- what is said of an error ------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("error", "said"),
    [
        (ConfigError("settings.toml: web.port: wrong"), "settings.toml: web.port: wrong"),
        (BindingError("SECRET"), "its stored messages belong to another bot"),
        (MuteError("SECRET"), "it connects and falls silent again and again"),
        (UnreachableError("SECRET"), "the platform cannot be reached"),
        (OutcomeUnknownError("SECRET"), "the platform gave no usable answer"),
        (ChannelError("SECRET"), "the platform gave no usable answer"),
        (StoreError("SECRET"), "the store takes no writes"),
        (SessionError("SECRET"), "the session server ended the connection"),
        (BridgeError("SECRET"), "it crashed"),
        (ValueError("SECRET"), "it crashed"),
    ],
)
def test_the_status_says_a_fixed_sentence_and_never_what_the_component_said(
    error: BaseException, said: str
) -> None:
    assert sentence(error).startswith(said)
    assert "SECRET" not in sentence(error)


def test_the_status_says_why_the_platform_refused_the_account_without_secrets_and_cut() -> None:
    refused = "the platform refused the account: correct its settings or credentials"
    assert sentence(CredentialsError("code 40164\x1b")) == f"{refused} (code 40164 )"
    assert sentence(CredentialsError("")) == f"{refused} (the log says why)"
    told = sentence(CredentialsError("https://h.example/x?token=SECRET " + "x" * 999))
    assert "SECRET" not in told
    assert len(told) < 400
    assert "SECRET" not in sentence(as_cause(CredentialsError("no"), ValueError("SECRET")))


def as_cause(error: BridgeError, cause: Exception) -> BridgeError:
    error.__cause__ = cause
    return error


# --- runs, one after the other -----------------------------------------------------------------------------


async def test_a_crash_is_followed_by_a_restart_after_a_wait_that_doubles() -> None:
    clock = FakeClock()
    component = Runs(*[fails(ValueError())] * 8)
    waits = []
    async with Group(component, clock) as group:
        for _ in range(8):
            assert group.state is State.BACKOFF
            waits += clock.waits()
            await clock.advance(clock.waits()[0])
        assert group.state is State.STARTING
        assert group.health.snapshot.restarts == 8
    assert waits == [1, 2, 4, 8, 16, 32, 60, 60]
    assert component.started == 9


async def test_no_wait_is_shorter_than_a_second() -> None:
    clock = FakeClock()
    async with Group(Runs(*[fails(ValueError())] * 3), clock, Lowest()):
        assert clock.waits() == [1.0]


async def test_the_platforms_own_wish_is_waited_for() -> None:
    clock = FakeClock()
    async with Group(Runs(fails(UnreachableError("busy", retry_after_seconds=90))), clock) as group:
        assert clock.waits() == [91.0]
        assert group.health.snapshot.next_try is not None


@pytest.mark.parametrize(("contact_seconds", "wait"), [(59, 4), (60, 1)])
async def test_only_contact_that_lasted_a_minute_begins_the_waits_anew(
    contact_seconds: float, wait: float
) -> None:
    clock = FakeClock()

    async def good_for_a_while(health: Health) -> None:
        health.contact()
        await clock.sleep(contact_seconds)
        health.lost("gone")
        await clock.sleep(100)
        raise ValueError

    async with Group(Runs(fails(ValueError()), fails(ValueError()), good_for_a_while), clock):
        await clock.advance(1)
        await clock.advance(2)
        await clock.advance(contact_seconds + 100)
        assert clock.waits() == [wait]


async def test_a_run_that_hangs_without_contact_begins_nothing_anew() -> None:
    clock = FakeClock()

    async def hangs(health: Health) -> None:
        await clock.sleep(1000)
        raise ValueError

    async with Group(Runs(fails(ValueError()), hangs), clock):
        await clock.advance(1)
        await clock.advance(1000)
        assert clock.waits() == [2]


@pytest.mark.parametrize("error", [ConfigError("x"), BindingError("x")])
async def test_what_the_operator_must_mend_parks_the_account(error: BridgeError) -> None:
    clock = FakeClock()
    component = Runs(fails(error))
    async with Group(component, clock) as group:
        assert group.state is State.FAILED
        assert group.health.snapshot.reason == sentence(error)
    assert component.started == 1
    assert clock.waits() == []


async def test_case_86_a_refused_account_is_failed_since_the_first_refusal_and_tried_again_at_long_last() -> (
    None
):
    clock = FakeClock()
    component = Runs(*[fails(CredentialsError("x"))] * 5, connects)
    waits = []
    async with Group(component, clock) as group:
        for restarts in range(1, 6):
            snapshot = group.health.snapshot
            assert (snapshot.state, snapshot.since, snapshot.restarts) == (State.FAILED, START, restarts)
            assert snapshot.reason == sentence(CredentialsError("x"))
            waits += clock.waits()
            assert snapshot.next_try == clock.now() + timedelta(seconds=waits[-1])
            await clock.advance(waits[-1])
        assert (group.state, group.health.snapshot.reason) == (State.CONNECTED, "")
    assert waits == [60, 300, 900, 3600, 3600]


async def test_a_try_of_a_refused_account_shows_failed_until_there_is_contact() -> None:
    clock = FakeClock()

    async def out_of_reach(health: Health) -> None:
        health.lost("the platform does not answer")
        await asyncio.Event().wait()

    component = Runs(fails(CredentialsError("x")), out_of_reach)
    async with Group(component, clock) as group:
        await clock.advance(60 + supervisor.FIRST_CONTACT_SECONDS)
        snapshot = group.health.snapshot
        assert (component.alive, snapshot.state, snapshot.next_try) == (1, State.FAILED, None)
        assert snapshot.reason == sentence(CredentialsError("x"))
        group.health.contact()
        assert group.state is State.CONNECTED


async def test_a_parked_account_that_is_stopped_waits_for_nothing() -> None:
    async with Group(Runs(fails(CredentialsError("x"))), FakeClock()) as group:
        assert group.state is State.FAILED
    assert [group.state] == [State.STOPPED]


async def test_case_54_an_account_that_goes_mute_again_and_again_is_parked_with_a_reason() -> None:
    clock = FakeClock()

    async def mute_after_a_minute(health: Health) -> None:
        health.contact()
        await clock.sleep(60)
        raise UnreachableError("silent")

    async with Group(Runs(*[mute_after_a_minute] * 10, connects), clock) as group:
        for restarts in range(1, 10):
            await clock.advance(60)
            assert (group.state, group.health.snapshot.restarts) == (State.BACKOFF, restarts)
            await clock.advance(clock.waits()[0])
        await clock.advance(60)
        assert (group.state, group.health.snapshot.reason) == (State.FAILED, sentence(MuteError()))
        await clock.advance(60)
        assert group.state is State.CONNECTED  # it comes back unaided


async def test_case_54_what_goes_mute_for_hours_is_left_alone_ever_longer() -> None:
    clock = FakeClock()

    async def mute_after_a_minute(health: Health) -> None:
        health.contact()
        await clock.sleep(60)
        raise UnreachableError("silent")

    parked: list[float] = []
    async with Group(Runs(*[mute_after_a_minute] * 40), clock) as group:
        while len(parked) < 4:
            if group.state is State.FAILED:
                parked.append(clock.waits()[0])
            await clock.advance(clock.waits()[0])
    assert parked == [60, 300, 900, 3600]


@pytest.mark.parametrize(("contact_seconds", "wait"), [(3599, 300), (3600, 60)])
async def test_only_an_hour_of_contact_resets_the_long_waits(contact_seconds: float, wait: float) -> None:
    clock = FakeClock()

    async def good_for_a_while(health: Health) -> None:
        health.contact()
        await clock.sleep(contact_seconds)
        raise CredentialsError("revoked")

    async with Group(Runs(fails(CredentialsError("x")), good_for_a_while), clock) as group:
        await clock.advance(60)
        await clock.advance(contact_seconds)
        assert group.state is State.FAILED
        assert clock.waits() == [wait]


async def test_what_loses_contact_seldom_is_never_parked() -> None:
    clock = FakeClock()

    async def mute_after_ten_minutes(health: Health) -> None:
        health.contact()
        await clock.sleep(600)
        raise UnreachableError("silent")

    async with Group(Runs(*[mute_after_ten_minutes] * 30), clock) as group:
        for _ in range(30):
            await clock.advance(600)
            assert group.state is State.BACKOFF
            await clock.advance(1)


async def test_starts_are_0_1_3_7_15_31_63_and_123_seconds_after_the_first() -> None:
    clock = FakeClock()
    began, starts = clock.monotonic(), []

    async def fails_at_once(health: Health) -> None:
        starts.append(clock.monotonic() - began)
        raise ValueError

    async with Group(Runs(*[fails_at_once] * 8), clock) as group:
        await clock.advance(123)
        assert starts == [0, 1, 3, 7, 15, 31, 63, 123]
        assert group.health.snapshot.restarts == 8


async def test_case_7_a_run_that_never_reports_anything_is_disconnected_after_a_minute() -> None:
    clock = FakeClock()
    all_of_them = Supervisor(clock, Highest())
    async with all_of_them.running():
        await all_of_them.reconcile([plan(Runs(name="pigeon:a"))])
        await clock.advance(10)
        await all_of_them.reconcile([plan(Runs(name="pigeon:a")), plan(Runs(name="pigeon:b"))])
        await clock.advance(supervisor.FIRST_CONTACT_SECONDS - 11)
        assert states(all_of_them) == {"a": State.STARTING, "b": State.STARTING}
        await clock.advance(1)
        assert states(all_of_them) == {"a": State.DISCONNECTED, "b": State.STARTING}
        assert all_of_them.snapshots()[0].reason == supervisor.NO_CONTACT
        await clock.advance(10)
        assert states(all_of_them) == {"a": State.DISCONNECTED, "b": State.DISCONNECTED}
        for health in all_of_them.healths():
            health.contact()
        assert set(states(all_of_them).values()) == {State.CONNECTED}


async def test_case_7_each_run_has_a_minute_of_its_own() -> None:
    clock = FakeClock()

    async def fails_late(health: Health) -> None:
        await clock.sleep(50)
        raise ValueError

    all_of_them = Supervisor(clock, Highest())
    async with all_of_them.running():
        await all_of_them.reconcile([plan(Runs(fails_late))])
        await settle()
        await clock.advance(51 + supervisor.FIRST_CONTACT_SECONDS - 1)
        assert states(all_of_them) == {"main": State.STARTING}
        await clock.advance(1)
        assert states(all_of_them) == {"main": State.DISCONNECTED}


async def test_case_7_contact_or_a_known_reason_outlasts_the_deadline() -> None:
    clock = FakeClock()

    async def loses(health: Health) -> None:
        health.lost("the platform does not answer")
        await asyncio.Event().wait()

    for work, reason in ((connects, ""), (loses, "the platform does not answer")):
        all_of_them = Supervisor(clock, Highest())
        async with all_of_them.running():
            await all_of_them.reconcile([plan(Runs(work))])
            await clock.advance(supervisor.FIRST_CONTACT_SECONDS)
            assert all_of_them.snapshots()[0].reason == reason


async def test_case_41_a_run_that_ended_is_never_connected_whatever_was_reported() -> None:
    clock = FakeClock()

    async def ends(health: Health) -> None:
        health.contact()

    component = Runs(ends, fails(UnreachableError("the restart of polling fails")), connects)
    async with Group(component, clock) as group:
        group.health.contact()
        assert (component.alive, group.state) == (0, State.BACKOFF)
        await clock.advance(1)
        assert (component.alive, group.state) == (0, State.BACKOFF)
        await clock.advance(2)
        assert (component.alive, group.state) == (1, State.CONNECTED)


async def test_a_component_that_exits_ends_its_run_and_not_the_daemon() -> None:
    clock = FakeClock()
    async with Group(Runs(fails(SystemExit(1)), connects), clock) as group:
        assert (group.state, group.health.snapshot.reason) == (State.BACKOFF, sentence(ValueError()))
        await clock.advance(1)
        assert group.state is State.CONNECTED


async def test_stopping_cuts_a_wait_short() -> None:
    clock = FakeClock()
    async with Group(Runs(fails(ValueError())), clock) as group:
        assert group.state is State.BACKOFF
    assert [group.state] == [State.STOPPED]
    assert clock.waits() == []


async def test_a_run_that_has_just_ended_when_it_is_stopped_has_no_successor() -> None:
    clock, component = FakeClock(), Runs(connects, connects)
    async with Group(component, clock) as group:
        task = group.supervised._task
        assert task is not None
        task.cancel()  # whoever it was
        while not task.done():
            await asyncio.sleep(0)
        await group.supervised.stop()
        await clock.advance(10)
        assert component.started == 1


# --- all accounts ----------------------------------------------------------------------------------------


def plan(component: Runs, key: object = 1) -> Plan:
    return Plan(first(component.name.partition(":")[2]), key, lambda: component)


def states(supervisor: Supervisor) -> dict[str, State]:
    return {snapshot.account: snapshot.state for snapshot in supervisor.snapshots()}


async def test_planned_accounts_run_and_are_stopped_together() -> None:
    clock = FakeClock()
    a, b = Runs(connects, name="pigeon:a"), Runs(name="pigeon:b")
    all_of_them = Supervisor(clock, Highest())
    async with all_of_them.running():
        await all_of_them.reconcile([plan(b), plan(a)])
        await settle()
        assert states(all_of_them) == {"a": State.CONNECTED, "b": State.STARTING}
        assert all_of_them.component("pigeon:a") is a
        assert all_of_them.component("pigeon:c") is None
    assert (a.alive, b.alive) == (0, 0)
    assert all_of_them.snapshots() == []


async def test_an_unchanged_account_is_never_touched() -> None:
    component = Runs(connects)
    all_of_them = Supervisor(FakeClock(), Highest())
    async with all_of_them.running():
        await all_of_them.reconcile([plan(component)])
        await settle()
        before = all_of_them.snapshots()
        await all_of_them.reconcile([plan(Runs())], revive=True)
        await settle()
        assert component.started == 1
        assert all_of_them.snapshots() == before


async def test_a_changed_account_is_stopped_before_its_successor_starts() -> None:
    alive = []

    async def old(health: Health) -> None:
        alive.append("old")
        try:
            await asyncio.Event().wait()
        finally:
            await settle(3)
            alive.remove("old")

    async def new(health: Health) -> None:
        assert alive == []
        alive.append("new")
        await asyncio.Event().wait()

    all_of_them = Supervisor(FakeClock(), Highest())
    async with all_of_them.running():
        await all_of_them.reconcile([plan(Runs(old), key=1)])
        await settle()
        await all_of_them.reconcile([plan(Runs(new), key=2)])
        await settle()
        assert alive == ["new"]


async def test_a_run_that_would_not_stop_is_never_doubled(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(supervisor, "STOP_SECONDS", 0.01)
    release = asyncio.Event()

    async def stubborn(health: Health) -> None:
        while not release.is_set():
            with suppress(asyncio.CancelledError):
                await release.wait()
            health.contact()

    all_of_them = Supervisor(FakeClock(), Highest())
    new = Runs()
    async with all_of_them.running():
        await all_of_them.reconcile([plan(Runs(stubborn), key=1)])
        await settle()
        for key in (2, 3):
            await all_of_them.reconcile([plan(new, key=key)], revive=True)
            await settle()
            assert new.started == 0
            (snapshot,) = all_of_them.snapshots()
            assert (snapshot.state, snapshot.reason) == (State.FAILED, supervisor.STUCK)
        release.set()
        await settle()
        assert all_of_them.left_behind()
        await all_of_them.reconcile([plan(new, key=3)])
        await settle()
        assert new.started == 1


async def test_case_53_an_account_that_is_slow_to_stop_delays_no_other() -> None:
    release = asyncio.Event()

    async def slow(health: Health) -> None:
        try:
            await asyncio.Event().wait()
        finally:
            await release.wait()

    def runs(name: str, work: Work) -> Runs:
        return Runs(work, name=f"pigeon:{name}")

    quick = runs("quick", connects)
    all_of_them = Supervisor(FakeClock(), Highest())
    async with all_of_them.running(), asyncio.TaskGroup() as tasks:
        await all_of_them.reconcile([plan(runs("slow", slow)), plan(runs("quick", connects))])
        await settle()
        changed = [plan(runs("slow", connects), key=2), plan(quick, key=2), plan(runs("new", connects))]
        reconciling = tasks.create_task(all_of_them.reconcile(changed))
        await settle()
        assert states(all_of_them) == {
            "slow": State.STOPPING, "quick": State.CONNECTED, "new": State.CONNECTED
        }  # fmt: skip
        assert all_of_them.component("pigeon:quick") is quick
        release.set()
        await until(reconciling.done)
        await settle()
        assert states(all_of_them)["slow"] is State.CONNECTED


async def test_an_account_under_a_new_name_starts_once_the_old_one_has_stopped() -> None:
    old = Runs(connects, name="pigeon:old")

    async def alone(health: Health) -> None:
        assert old.alive == 0
        await connects(health)

    all_of_them = Supervisor(FakeClock(), Highest())
    async with all_of_them.running():
        await all_of_them.reconcile([plan(old)])
        await settle()
        await all_of_them.reconcile([plan(Runs(alone, name="pigeon:new"))])
        await settle()
        assert states(all_of_them) == {"new": State.CONNECTED}


@pytest.mark.parametrize("error", [ConfigError("x"), None])
async def test_a_change_that_is_cut_short_is_made_up_for_by_the_next(error: BridgeError | None) -> None:
    release = asyncio.Event()

    async def slow(health: Health) -> None:
        try:
            await asyncio.Event().wait()
        finally:
            await release.wait()

    parked = Runs(fails(error) if error else slow, name="pigeon:parked")
    all_of_them = Supervisor(FakeClock(), Highest())
    async with all_of_them.running(), asyncio.TaskGroup() as tasks:
        await all_of_them.reconcile([plan(Runs(slow)), plan(parked)])
        await settle()
        changed = [plan(Runs(connects), key=2), plan(Runs(connects, name="pigeon:parked"), key=2)]
        cut = tasks.create_task(all_of_them.reconcile(changed, revive=True))  # as by a client that hangs up
        await settle()
        cut.cancel()
        await settle()
        release.set()
        await settle()
        await all_of_them.reconcile(changed)
        await settle()
        assert set(states(all_of_them).values()) == {State.CONNECTED}


async def test_an_account_that_was_stopped_for_a_revival_that_never_came_is_started() -> None:
    release = asyncio.Event()

    async def slow_to_be_refused(health: Health) -> None:
        health.failed("refused")
        try:
            await asyncio.Event().wait()
        finally:
            await release.wait()

    all_of_them = Supervisor(FakeClock(), Highest())
    async with all_of_them.running(), asyncio.TaskGroup() as tasks:
        await all_of_them.reconcile([plan(Runs(slow_to_be_refused))])
        await settle()
        cut = tasks.create_task(all_of_them.reconcile([plan(Runs(connects))], revive=True))
        await settle()
        cut.cancel()
        release.set()
        await settle()
        assert all_of_them.left_behind()
        await all_of_them.reconcile([plan(Runs(connects))])
        await settle()
        assert states(all_of_them) == {"main": State.CONNECTED}
        assert not all_of_them.left_behind()


async def test_an_account_that_went_is_stopped_and_forgotten() -> None:
    component = Runs()
    all_of_them = Supervisor(FakeClock(), Highest())
    async with all_of_them.running():
        await all_of_them.reconcile([plan(component)])
        await settle()
        await all_of_them.reconcile([])
        assert component.alive == 0
        assert all_of_them.snapshots() == []


async def test_a_parked_account_is_tried_again_only_when_asked_for() -> None:
    all_of_them = Supervisor(FakeClock(), Highest())
    async with all_of_them.running():
        await all_of_them.reconcile([plan(Runs(fails(ConfigError("x"))))])
        await settle()
        second = Runs(connects)
        await all_of_them.reconcile([plan(second)])
        await settle()
        assert states(all_of_them) == {"main": State.FAILED}
        await all_of_them.reconcile([plan(second)], revive=True)
        await settle()
        assert states(all_of_them) == {"main": State.CONNECTED}


async def test_an_account_that_is_not_to_run_is_shown_as_planned() -> None:
    off = Plan(first("off", State.DISABLED), 1, None)
    broken = Plan(replace(first("broken", State.FAILED), reason="wrong"), 1, None)
    all_of_them = Supervisor(FakeClock(), Highest())
    async with all_of_them.running():
        await all_of_them.reconcile([off, broken])
        await settle()
        assert states(all_of_them) == {"off": State.DISABLED, "broken": State.FAILED}
        assert all_of_them.component("pigeon:off") is None
        since = all_of_them.snapshots()[0].since
        await all_of_them.reconcile([off, replace(broken, first=first("broken", State.FAILED))], revive=True)
        assert (
            all_of_them.snapshots()[0].reason == "wrong"
        )  # nothing of it changed, and there is nothing to try
        assert all_of_them.snapshots()[0].since == since
        wanted = [name for name in ("off", "broken", "none") if all_of_them.is_wanted(f"pigeon:{name}")]
        assert wanted == ["broken"]


async def test_an_account_that_cannot_be_built_fails_alone() -> None:
    def cannot() -> Runs:
        raise ConfigError("no such place")

    good = Runs(connects, name="pigeon:good")
    all_of_them = Supervisor(FakeClock(), Highest())
    async with all_of_them.running():
        await all_of_them.reconcile([Plan(first("bad"), 1, cannot), plan(good)])
        await settle()
        assert states(all_of_them) == {"bad": State.FAILED, "good": State.CONNECTED}


async def test_a_crash_takes_no_other_account_down() -> None:
    clock = FakeClock()
    bad, good = Runs(*[fails(ValueError())] * 3, name="pigeon:bad"), Runs(connects, name="pigeon:good")
    all_of_them = Supervisor(clock, Highest())
    async with all_of_them.running():
        await all_of_them.reconcile([plan(bad), plan(good)])
        await clock.advance(10)
        assert states(all_of_them)["good"] is State.CONNECTED
        assert good.started == 1


async def test_accounts_are_stopped_side_by_side() -> None:
    clock = FakeClock()

    async def slow_to_end(health: Health) -> None:
        try:
            await asyncio.Event().wait()
        finally:
            await clock.sleep(3)

    runs = [Runs(slow_to_end, name=f"pigeon:{n}") for n in range(5)]
    all_of_them = Supervisor(clock, Highest())
    async with asyncio.TaskGroup() as tasks:

        async def whole() -> None:
            async with all_of_them.running():
                await all_of_them.reconcile([plan(one) for one in runs])
                await settle()

        task = tasks.create_task(whole())
        await until(lambda: clock.waits()[:5] == [3.0] * 5)
        assert {snapshot.state for snapshot in all_of_them.snapshots()} == {State.STOPPING}
        await clock.advance(3)
        await until(task.done)


async def test_it_is_settled_once_no_account_is_starting_any_more() -> None:
    clock, gate = FakeClock(), asyncio.Event()

    async def late(health: Health) -> None:
        await gate.wait()
        health.contact()
        await asyncio.Event().wait()

    all_of_them = Supervisor(clock, Highest())
    await all_of_them.settled()
    async with asyncio.TaskGroup() as tasks, all_of_them.running():
        bad, slow = Runs(fails(ValueError()), name="pigeon:bad"), Runs(late, name="pigeon:slow")
        await all_of_them.reconcile([plan(bad), plan(slow)])
        waiting = tasks.create_task(all_of_them.settled())
        await settle()
        assert not waiting.done()
        gate.set()
        await until(waiting.done)
        assert states(all_of_them) == {"bad": State.BACKOFF, "slow": State.CONNECTED}


async def test_nothing_starts_once_all_of_it_is_being_stopped() -> None:
    all_of_them = Supervisor(FakeClock())
    await all_of_them.reconcile([plan(Runs())])
    assert all_of_them.snapshots() == []
