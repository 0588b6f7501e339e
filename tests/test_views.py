"""One snapshot: in every state all views of an account say the same (case 87).

The account is run by the supervisor and driven into the state; then ``status``, ``status --json``,
``daemon.status``, ``/healthz``, ``/readyz`` and ``/metrics`` are asked, each over its own way.
"""

import asyncio
import json
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass
from typing import Any

import aiohttp
import pytest
from prometheus_client.parser import text_string_to_metric_families

from bridge.agents.echo import Echo
from bridge.channel.testing.clock import START, FakeClock, until
from bridge.cli.common import ask_daemon
from bridge.cli.main import main
from bridge.clock import unix_ms
from bridge.config import SessionsTable, WebTable
from bridge.control import Control, OnDisk
from bridge.errors import UnreachableError
from bridge.health import Health, Snapshot, State
from bridge.ids import AccountId
from bridge.meter import Meter
from bridge.paths import Home
from bridge.sessions.contract import Services
from bridge.sessions.server import SessionServer
from bridge.store.contract import Bind, Claim, Hold, PartState, Post, Store
from bridge.store.sqlite import open_store
from bridge.supervisor import Plan, Supervisor
from bridge.web.listener import listening
from bridge.web.metrics import Metrics
from bridge.web.own import Own
from tests.daemons import short_home
from tests.sessions.wire import agents_of
from tests.store.values import message, reply, text

ACCOUNT = AccountId("pigeon:main")
VERSION = "1.2.3"
REASON = "the workspace is missing: make it"


class Pigeon:
    """An account that does as it is told, and holds on when it is cancelled until it is let go."""

    name = ACCOUNT

    def __init__(self, behave: Callable[[Health], Awaitable[None]]) -> None:
        self._behave = behave
        self.let_go = asyncio.Event()

    async def run(self, health: Health) -> None:
        health.skewed(-2.5)
        await self._behave(health)
        try:
            await asyncio.Event().wait()
        except asyncio.CancelledError:
            await self.let_go.wait()
            raise


class Quick(Pigeon):
    """Another account, which stops at once: it is ``stopped`` while the first is still being waited for."""

    name = AccountId("pigeon:quick")


async def wait(health: Health) -> None:
    """Without contact."""


async def contact(health: Health) -> None:
    health.contact()


async def contact_and_trouble(health: Health) -> None:
    health.contact()
    health.lost("the platform does not answer")


async def end(health: Health) -> None:
    health.contact()
    raise UnreachableError("gone")


class Told(Control):
    """Asked for its status alone, it needs nothing else."""

    def __init__(self, supervisor: Supervisor, store: Store) -> None:
        self._supervisor, self._store, self._version = supervisor, store, VERSION
        self._on_disk = OnDisk


@dataclass
class Rig:
    home: Home
    supervisor: Supervisor
    port: int

    @property
    def truth(self) -> Snapshot:
        (snapshot,) = [one for one in self.supervisor.snapshots() if one.id == ACCOUNT]
        return snapshot

    async def get(self, path: str) -> tuple[int, str]:
        async with (
            aiohttp.ClientSession() as session,
            session.get(f"http://127.0.0.1:{self.port}{path}") as answer,
        ):
            return answer.status, await answer.text()


@asynccontextmanager
async def rig(store: Store, home: Home) -> AsyncIterator[Rig]:
    clock = FakeClock()
    supervisor, meter = Supervisor(clock), Meter(clock)

    control = Told(supervisor, store)
    services = Services(
        agents=agents_of(Echo(clock)),
        tools=lambda *_, **__: (),  # type: ignore[arg-type]  # no session is started
        store=store,
        clock=clock,
        control=control,
        table=SessionsTable(),
    )
    server = SessionServer(home.socket, services, VERSION)
    metrics = Metrics(meter, control.measured, store.backlog, home.db, clock, VERSION)

    def states() -> dict[str, int]:
        (snapshot,) = [one for one in supervisor.snapshots() if one.id == ACCOUNT]
        return {snapshot.state.value: 1}

    own = Own(states, metrics.answer, "open")
    async with (
        listening(WebTable(port=0), lambda *_: None, clock, own.answer) as listener,
        asyncio.TaskGroup() as tasks,
    ):
        serving = tasks.create_task(server.run())
        await server.ready.wait()
        async with supervisor.running():
            yield Rig(home, supervisor, listener.port)
        serving.cancel()


@asynccontextmanager
async def in_state(state: State, supervisor: Supervisor) -> AsyncIterator[None]:
    """Drive the account into ``state``."""
    behave = {State.CONNECTED: contact, State.DISCONNECTED: contact_and_trouble, State.BACKOFF: end}
    pigeon = Pigeon(behave.get(state, wait))
    other = Quick(wait)
    first = Snapshot(ACCOUNT, "pigeon", "main", State.STARTING, START, user_id="u1")
    runs: Callable[[], Pigeon] | None = lambda: pigeon  # noqa: E731 - or none
    if state in (State.DISABLED, State.FAILED):
        reason = REASON if state is State.FAILED else ""
        enabled = state is State.FAILED
        first = Snapshot(
            ACCOUNT, "pigeon", "main", state, START, enabled=enabled, reason=reason, user_id="u1"
        )
        runs = None
    plan, second = Plan(first, 1, runs), Snapshot(other.name, "pigeon", "quick", State.STARTING, START)
    await supervisor.reconcile([plan, Plan(second, 1, lambda: other)])

    def is_there() -> bool:
        return any(one.id == ACCOUNT and one.state is state for one in supervisor.snapshots())

    async with asyncio.TaskGroup() as tasks:
        try:
            if state in (State.STOPPING, State.STOPPED):
                quick = other if state is State.STOPPING else pigeon
                quick.let_go.set()
                tasks.create_task(supervisor.reconcile([]))
                await until(is_there)
            await until(is_there)
            yield
        finally:
            pigeon.let_go.set()
            other.let_go.set()


async def keep_something(store: Store) -> None:
    """A message that waits, and a dead letter."""
    await store.do(Bind(ACCOUNT, "x"))
    await store.do(Claim(ACCOUNT, (message("m1"),), unix_ms(START)))
    (part,) = await store.do(Post(ACCOUNT, reply(text("a")), unix_ms(START)))
    await store.do(Hold(part, PartState.REFUSED, "", unix_ms(START)))


@pytest.mark.parametrize("state", list(State))
async def test_all_views_agree_in_every_state_case_87(
    state: State, capsys: pytest.CaptureFixture[str]
) -> None:
    with short_home("") as home:
        home.private_dir(home.state)
        async with open_store(home.db) as store, rig(store, home) as here:
            await keep_something(store)
            async with in_state(state, here.supervisor):
                shown = await asyncio.to_thread(ask_daemon, home, {"action": "status"})
                arguments = ["status", "--home", str(home.root)]
                codes = [await asyncio.to_thread(main, arguments)]
                as_table = capsys.readouterr().out
                codes.append(await asyncio.to_thread(main, [*arguments, "--json"]))
                as_json = json.loads(capsys.readouterr().out)
                lives, ready, metrics = [await here.get(path) for path in ("/healthz", "/readyz", "/metrics")]
                truth = here.truth
    assert truth.state is state
    assert (truth.queue_depth, truth.dead_letters) == (1, 1)
    assert as_json == shown
    (component,) = [one for one in shown["components"] if one["id"] == ACCOUNT]
    assert of_component(component) == of_snapshot(truth)
    (row,) = [line.split() for line in as_table.splitlines() if line.startswith(ACCOUNT)]
    assert row[1] == state.value
    assert truth.reason in as_table
    assert json.loads(lives[1])["accounts"] == json.loads(ready[1])["accounts"] == {state.value: 1}
    good = state in (State.CONNECTED, State.DISABLED)
    assert (lives[0], ready[0], json.loads(ready[1])["ready"]) == (200, 200 if good else 503, good)
    assert codes == [1, 1]  # the other one never has contact
    assert of_metrics(metrics[1]) == without_reason(of_snapshot(truth))


def of_snapshot(one: Snapshot) -> dict[str, Any]:
    """What every view has, as the wire names it; stamps to the second."""
    stamps = {
        "since": one.since,
        "last_success": one.last_success,
        "next_try": one.next_try,
        "oldest_waiting": one.oldest_waiting,
        "last_unproven": one.last_unproven,
    }
    return {
        "state": one.state.value,
        "reason": one.reason or None,
        "restarts": one.restarts,
        "queue_depth": one.queue_depth,
        "dead_letters": one.dead_letters,
        "clock_skew_seconds": one.clock_skew_seconds,
        "unproven_requests": one.unproven_requests,
        **{name: None if stamp is None else int(stamp.timestamp()) for name, stamp in stamps.items()},
    }


def of_component(one: dict[str, Any]) -> dict[str, Any]:
    plain = (
        "state",
        "reason",
        "restarts",
        "queue_depth",
        "dead_letters",
        "clock_skew_seconds",
        "unproven_requests",
    )
    stamps = ("since", "last_success", "next_try", "oldest_waiting", "last_unproven")
    return {
        **{name: one.get(name) for name in plain},
        **{name: one.get(f"{name}_unix_seconds") for name in stamps},
    }


def of_metrics(text: str) -> dict[str, Any]:
    """Without the reason, which is no label."""
    found: dict[str, Any] = dict.fromkeys(
        ("since", "last_success", "next_try", "oldest_waiting", "last_unproven", "clock_skew_seconds")
    )
    for family in text_string_to_metric_families(text):
        for one in family.samples:
            if one.labels.get("account") != "main" or not family.name.startswith("turnbridge_account_"):
                continue
            name = family.name.removeprefix("turnbridge_account_")
            if name == "state":
                if one.value:
                    assert "state" not in found
                    found["state"] = one.labels["state"]
            elif name.endswith("_timestamp_seconds"):
                found[name.removesuffix("_timestamp_seconds")] = int(one.value)
            else:
                found[name] = one.value
    return found


def without_reason(shown: dict[str, Any]) -> dict[str, Any]:
    return {name: value for name, value in shown.items() if name != "reason"}
