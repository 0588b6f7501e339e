"""The daemon: builds every part and runs it. The only place that does."""

from __future__ import annotations

import asyncio
import errno
import os
import ssl
from collections import Counter, deque
from collections.abc import Callable, Coroutine, Mapping
from contextlib import suppress
from dataclasses import dataclass, replace
from datetime import timedelta
from typing import Any, TypeVar

from bridge import registry
from bridge.channel import Http
from bridge.channel.transport import http_session
from bridge.clock import Clock, unix_ms
from bridge.config import Config, WebTable, reached_at
from bridge.control import Control, OnDisk
from bridge.errors import BridgeError, ConfigError, ExhaustedError, StoreError
from bridge.health import Snapshot, State
from bridge.ids import AccountId
from bridge.letters import Letters
from bridge.logs import clean, get_logger
from bridge.media import files
from bridge.media.disk import Disk
from bridge.meter import Meter
from bridge.owners import Owners
from bridge.paths import Home
from bridge.plans import REASON_CHARACTERS, Later, Planner, Served, Stamps, Wanted
from bridge.process import only_daemon, raise_descriptor_limit, stopping
from bridge.profiles import Profiles
from bridge.questions import Questions
from bridge.relay.asked import remove_copies
from bridge.relay.notices import Notices, watch_disk
from bridge.relay.outages import tell_of_crash, watch_accounts
from bridge.relay.outbox import copies_of
from bridge.relay.pairing import Pairings
from bridge.relay.reach import Reach
from bridge.relay.tending import sweep_all
from bridge.sessions.agents import Agents
from bridge.sessions.contract import Deadlines, Services
from bridge.sessions.server import SessionServer
from bridge.store.contract import Notify, Prune, Store, ToldOf
from bridge.store.sqlite import open_store
from bridge.supervisor import Plan, Supervisor, isolated
from bridge.switching import Switches
from bridge.tools.choose import toolbox
from bridge.tools.marks import take_over
from bridge.tools.mcp.servers import Servers
from bridge.usage import Usages
from bridge.version import VERSION
from bridge.web.listener import Route, listening, listening_at
from bridge.web.metrics import Metrics
from bridge.web.own import Own, metrics_token

E = TypeVar("E", bound=BaseException)

CRASHES = 3  # of our own parts, within ...
CRASH_SECONDS = 60.0  # ... these end the daemon: the service manager starts it again
PAUSE_SECONDS = 1.0
SETTLE_SECONDS = 2.0
UPKEEP_SECONDS = 60.0
SWEEP_SECONDS = 3600.0
WATCH_SECONDS = 2.0
HELD_DAYS = 7
COPY_DAYS = 7
SPARE_DESCRIPTORS = 512  # for the store, connections to platforms, files; three of four where there are few
RUNNING, CRASHED = "running", "crashed"  # what is remembered of daemons
CONSOLE = "console"  # whoever reaches this channel is taken for the owner: it has a socket of its own

log = get_logger(__name__)

StoreWrap = Callable[[Store], Store]


class CrashedError(BridgeError):
    """The daemon's own parts crashed too often."""


class AddressTakenError(BridgeError):
    """Somebody else listens there: it may be free later."""


class _StopError(Exception):
    """Ends the group of all parts: the daemon was told to stop."""


@dataclass(frozen=True, slots=True)
class Ready:
    """The daemon serves: its web address, and the accounts as they are right then."""

    address: str
    accounts: tuple[Snapshot, ...]


async def run_daemon(
    home: Home,
    config: Config,
    *,
    clock: Clock,
    store_wrap: StoreWrap | None = None,
    ready: Callable[[Ready], None] | None = None,
) -> int:
    """Run until SIGTERM or SIGINT (0), or until the disk cannot be trusted (1). Cancelling stops it, too.

    ``store_wrap`` may put something around the store; ``ready`` is called once everything serves.

    Raises:
        ConfigError: the settings cannot be used.
        AddressTakenError: somebody else listens on web.host and web.port.
        RunningError: another daemon has this home.
        CrashedError: its own parts crashed three times within a minute.
    """
    stop: asyncio.Future[int] = asyncio.get_running_loop().create_future()
    with only_daemon(home), stopping(stop, config.daemon.stop_seconds):
        if count := take_over(home):
            log.warning("daemon.leftovers", processes=count)  # of one that was killed: now they were, too
        daemon = Daemon(home, config, clock, stop)
        try:
            await daemon.run(store_wrap or (lambda store: store), ready or (lambda _: None))
        except BaseExceptionGroup as group:
            if _first(group, _StopError) is None:
                raise _first(group, BridgeError) or group from None
        log.info("daemon.stopped")
        return stop.result()


class Daemon:
    """What the parts share. ``stop`` is set, to an exit code, when all of it shall end."""

    def __init__(self, home: Home, config: Config, clock: Clock, stop: asyncio.Future[int]) -> None:
        self._home, self._config, self._clock, self._stop = home, config, clock, stop
        self._supervisor = Supervisor(clock)
        self._servers = Servers(home, clock, os.environ)
        self._disk = Disk(home.outbox, config.media.min_free_percent)
        self._meter = Meter(clock)
        self._preferred = config.notices.accounts
        self._profiles = Profiles(config, home, registry.agents())
        self._agents = Agents(self._profiles, home, clock, self._servers.passed)
        self._crashes: deque[float] = deque(maxlen=CRASHES)
        self._reconciling = asyncio.Lock()
        self._seen: Stamps = frozenset()  # of what the accounts are made of
        self._on_disk = OnDisk()
        self._knows_accounts = False  # not before the first plan, nor once all is being stopped

    async def run(self, wrap: StoreWrap, ready: Callable[[Ready], None]) -> None:
        """Run all parts; ends by an exception group only."""
        for folder in (self._home.outbox, self._home.root / "workspace"):
            self._home.private_dir(folder)
        trusted = asyncio.get_running_loop().run_in_executor(None, ssl.create_default_context)
        await self._agents.make(self._agents.default)  # without it nothing is served
        async with (
            open_store(self._home.db, fatal=self._disk_failed, meter=self._meter.store) as file,
            http_session(await trusted) as session,
        ):
            store = wrap(file)
            http = Http(session, clock=self._clock)
            owners = self._owners(store)
            await owners.recover()
            planner = Planner(
                self._home,
                self._clock,
                store,
                http,
                self._disk,
                self._meter,
                ahead=owners.ahead,
                profiles=self._profiles,
            )
            try:
                await self._serve(store, planner, owners, ready)
            finally:
                if self._stop.done() and not self._stop.cancelled() and self._stop.result() == 0:
                    await self._remember(store, RUNNING, "")

    async def _serve(
        self, store: Store, planner: Planner, owners: Owners, ready: Callable[[Ready], None]
    ) -> None:
        """All parts side by side, so that they stop side by side, too."""
        switches = Switches(
            self._home, self._supervisor, store, lambda account: self._reconcile(planner, revive=account)
        )
        control = self._control(store, planner, switches, owners)
        sessions = SessionServer(self._home.socket, self._services(store, control), VERSION)
        world, same_user = self._own(control, store)
        port: asyncio.Future[int] = asyncio.get_running_loop().create_future()
        started, console = asyncio.Event(), asyncio.Event()
        notices = Notices(store, self._clock, self._reach(store), log)
        crashed = await self._last_crash(store)
        async with asyncio.TaskGroup() as tasks:

            def keep(name: str, part: Callable[[], Coroutine[Any, Any, None]]) -> None:
                tasks.create_task(self._keep(name, part), name=f"daemon/{name}")

            tasks.create_task(self._until_stopped(), name="daemon/stop")
            keep("agents", self._agents.run)
            keep("mcp", self._servers.run)
            keep("sessions", sessions.run)
            keep("web", lambda: self._listen(world, port))
            keep("console", lambda: self._listen_to_console(same_user, console))
            keep("accounts", lambda: self._run_accounts(planner, sessions.ready, started))
            keep("watch", lambda: self._watch(planner, started))
            keep("disk", lambda: watch_disk(self._disk, notices, self._clock, log))
            keep("outages", lambda: watch_accounts(self._supervisor.snapshots, notices, self._clock, log))
            keep("crash", lambda: tell_of_crash(crashed, notices, self._clock, log))
            keep("owners", lambda: owners.run(switches.own))
            keep("meter", self._meter.watch_loop)
            keep("sweep", lambda: self._sweep(started))
            keep("upkeep", lambda: upkeep(store, self._config, self._home, self._clock))
            await started.wait()
            await console.wait()
            await self._settle()
            await self._remember(store, RUNNING, f"since {unix_ms(self._clock.now())}")
            address = f"http://{reached_at(self._config.web.host)}:{await port}"
            log.info("daemon.ready", version=VERSION, pid=os.getpid(), address=address)
            ready(Ready(address, tuple(self._supervisor.snapshots())))

    # --- the parts --------------------------------------------------------------------------------

    def _reach(self, store: Store) -> Reach:
        return Reach(self._supervisor, store, lambda: self._preferred)

    def _skew(self, account: AccountId) -> float:
        """How far the account's platform is ahead of our clock, in seconds, as far as that is known."""
        known = (one.clock_skew_seconds for one in self._supervisor.snapshots() if one.id == account)
        return next(known, None) or 0.0

    def _owners(self, store: Store) -> Owners:
        questions = Questions(store, self._clock, self._reach(store), self._skew)
        return Owners(self._supervisor, store, self._clock, Pairings(self._clock), questions)

    def _control(self, store: Store, planner: Planner, switches: Switches, owners: Owners) -> Control:
        letters = Letters(self._supervisor, store, self._clock)
        reload, on_disk = lambda: self._reload(planner), lambda: self._on_disk
        usages = Usages(self._supervisor, store, self._clock)
        return Control(
            self._supervisor, store, letters, switches, owners, usages, reload, on_disk, VERSION,
            self._servers.told,
        )  # fmt: skip

    def _services(self, store: Store, control: Control) -> Services:
        return Services(
            agents=self._agents,
            tools=toolbox(self._home, self._clock, self._config.tools, self._servers.tools),
            store=store,
            clock=self._clock,
            control=control,
            table=self._config.sessions,
            deadlines=Deadlines(stop=self._config.daemon.stop_seconds),
        )

    def _own(self, control: Control, store: Store) -> tuple[Own, Own]:
        """What the daemon tells of itself, to the world and to the same user."""
        metrics = Metrics(
            self._meter, control.measured, store.backlog, self._home.db, self._clock, VERSION
        ).answer
        access = self._config.web.metrics
        token = metrics_token(self._home) if access == "token" else ""
        everybody = Own(self._states, metrics, access, token)
        return everybody, replace(everybody, access="off" if access == "off" else "open")

    async def _listen(self, own: Own, port: asyncio.Future[int]) -> None:
        try:
            async with listening(_bounded(self._config.web), self._find, self._clock, own.answer) as listener:
                if not port.done():
                    port.set_result(listener.port)
                await asyncio.Event().wait()
        except ConfigError as error:
            if isinstance(error.__cause__, OSError) and error.__cause__.errno == errno.EADDRINUSE:
                raise AddressTakenError(str(error)) from error
            raise

    async def _listen_to_console(self, own: Own, listens: asyncio.Event) -> None:
        path, table = self._home.console_socket, _bounded(self._config.web)
        async with listening_at(path, table, self._find_console, self._clock, own.answer):
            listens.set()
            await asyncio.Event().wait()

    def _served(self) -> list[Served]:
        components = map(self._supervisor.component, (one.id for one in self._supervisor.snapshots()))
        return [found for found in components if isinstance(found, Served)]

    def _find(self, channel: str, account: str) -> Route | None:
        return None if channel == CONSOLE else self._route(channel, account)

    def _find_console(self, channel: str, account: str) -> Route | None:
        return self._route(channel, account) if channel == CONSOLE else None

    def _route(self, channel: str, account: str) -> Route | None:
        """``Later`` where "no such account" would make a sender give up what can be taken soon."""
        name = f"{channel}:{account}"
        found = self._supervisor.component(name)
        if isinstance(found, Served):
            return found
        return Later() if self._supervisor.is_wanted(name) or not self._knows_accounts else None

    def _states(self) -> Mapping[str, int] | None:
        if not self._knows_accounts:
            return None
        return Counter(snapshot.state.value for snapshot in self._supervisor.snapshots())

    async def _run_accounts(self, planner: Planner, sessions: asyncio.Event, started: asyncio.Event) -> None:
        async with self._supervisor.running():
            await sessions.wait()
            await self._begin(planner)
            started.set()
            self._knows_accounts = True
            try:
                await asyncio.Event().wait()
            finally:
                self._knows_accounts = False

    async def _begin(self, planner: Planner) -> None:
        """Start the accounts; raises as ``planner.read``."""
        wanted = await self._read(planner)
        self._seen = wanted.stamps
        self._servers.want(wanted.config.shared)
        await self._supervisor.reconcile(wanted.plans)

    async def _reload(self, planner: Planner, *, revive: bool = True) -> list[str]:
        """Read the settings again and make the accounts so. Returns the tables that wait for a restart.

        With ``revive``, parked accounts are tried again.

        Raises:
            ConfigError: they cannot be read, and everything stays as it is; or an account is broken.
        """
        waiting, plans = await self._reconcile(planner, revive=revive)
        for table in waiting:
            log.warning("reload.needs_restart", table=table)
        if broken := [plan.first for plan in plans if plan.first.state is State.FAILED]:
            raise ConfigError("; ".join(f"{one.id}: {one.reason}" for one in broken))
        return waiting

    async def _reconcile(self, planner: Planner, *, revive: bool | AccountId) -> tuple[list[str], list[Plan]]:
        """Make the accounts as the settings on disk are. One at a time, so that none acts on older ones.

        Raises:
            ConfigError: they cannot be read, and everything stays as it is.
        """
        async with self._reconciling:
            wanted = await self._read(planner)
            self._disk.min_free_percent = wanted.config.media.min_free_percent
            self._preferred = wanted.config.notices.accounts
            self._servers.want(wanted.config.shared)
            await self._supervisor.reconcile(wanted.plans, revive=revive)
            self._seen = wanted.stamps  # only now: whoever is cut off before that leaves it to the watch
        await self._settle()
        return [*self._on_disk.waiting], wanted.plans

    async def _read(self, planner: Planner) -> Wanted:
        """What is on disk, and remember what of it will not be in effect; raises as ``planner.read``."""
        try:
            wanted = await asyncio.to_thread(planner.read)
        except ConfigError as error:
            self._on_disk = OnDisk(clean(str(error))[:REASON_CHARACTERS], self._on_disk.waiting)
            raise
        keys = await asyncio.to_thread(self._agents.outdated)
        tables = needs_restart(self._config, wanted.config) + [f"agents.{name}" for name in keys]
        self._on_disk = OnDisk(waiting=tuple(tables))
        return wanted

    async def _sweep(self, started: asyncio.Event) -> None:
        await started.wait()
        await sweep_all(self._served, self._clock)

    async def _watch(self, planner: Planner, started: asyncio.Event) -> None:
        """Make the accounts anew whenever the files that they are made of are others than before."""
        await started.wait()
        now = refused = Stamps()
        lacking = False
        while True:
            await self._clock.sleep(WATCH_SECONDS)
            try:
                now = await asyncio.to_thread(planner.stamps)
                if now == self._seen:  # as they were read, maybe once more: what was refused is gone
                    refused, self._on_disk = Stamps(), replace(self._on_disk, error="")
                if now in (self._seen, refused) and not self._supervisor.left_behind():
                    continue
                await self._reload(planner, revive=False)
            except ConfigError as error:
                log.warning("reload.failed", error=error)
            except ExhaustedError as error:
                if not lacking:
                    log.warning("reload.failed", error=error)
                lacking = True
                continue  # until they can be read, changed again or not
            refused, lacking = now, False

    async def _settle(self) -> None:
        """Let accounts find their platforms, but wait for none that takes long."""
        with suppress(TimeoutError):
            async with asyncio.timeout(SETTLE_SECONDS):
                await self._supervisor.settled()

    # --- how it ends ------------------------------------------------------------------------------

    async def _keep(self, name: str, part: Callable[[], Coroutine[Any, Any, None]]) -> None:
        """Run ``part`` again when it crashes, unless our parts do so too often.

        Raises:
            ConfigError, AddressTakenError: the part's own, which no repetition mends at once.
            CrashedError: too often.
        """
        while True:
            error = await isolated(part(), f"daemon/{name}/run", self._config.daemon.stop_seconds)
            if isinstance(error, ConfigError | AddressTakenError):
                raise error
            log.error("daemon.part_crashed", part=name, error=error)
            self._crashes.append(self._clock.monotonic())
            if len(self._crashes) == CRASHES and self._crashes[-1] - self._crashes[0] <= CRASH_SECONDS:
                raise CrashedError("the daemon's own parts crash again and again: the log says where")
            await self._clock.sleep(PAUSE_SECONDS)

    async def _until_stopped(self) -> None:
        await asyncio.shield(self._stop)
        raise _StopError

    async def _last_crash(self, store: Store) -> str:
        """The last daemon here that was not stopped, by when it began to serve; "" for none."""
        if found := await store.get(ToldOf(RUNNING)):
            await self._remember(store, CRASHED, found)
        return await store.get(ToldOf(CRASHED))

    async def _remember(self, store: Store, what: str, state: str) -> None:
        """``RUNNING`` is a state while a daemon serves, and "" once it was stopped and has not crashed."""
        with suppress(StoreError):
            await store.do(Notify(AccountId(""), what, state, None, unix_ms(self._clock.now())))

    def _disk_failed(self, error: StoreError) -> None:
        """What the disk holds is known only after a new start: nothing more is acknowledged."""
        log.error("daemon.disk_failed", error=error)
        if not self._stop.done():
            self._stop.set_result(1)


async def upkeep(store: Store, config: Config, home: Home, clock: Clock) -> None:
    """Forget what is old, a little at a time, with the files that belonged to it.

    Hourly, so do copies in the outbox that nobody owns: a crash can leave some. They are told by their age,
    which no part reaches that is still to be delivered, or fetched.
    """
    swept = -SWEEP_SECONDS
    while True:
        now, keep = clock.now(), timedelta(days=config.store.keep_days)
        before, held = now - keep, now - timedelta(days=HELD_DAYS)
        if clock.monotonic() - swept >= SWEEP_SECONDS:
            swept = clock.monotonic()
            owned = timedelta(days=COPY_DAYS, seconds=config.limits.deliver_seconds)
            await asyncio.to_thread(files.sweep, home.outbox, owned, now)
        try:
            forgotten = await store.do(Prune(unix_ms(before), unix_ms(held)))
            await remove_copies(copies_of(forgotten), home.outbox)
        except StoreError as error:
            log.warning("upkeep.failed", error=error)
        await clock.sleep(UPKEEP_SECONDS)


def needs_restart(before: Config, after: Config) -> list[str]:
    """The tables that changed in a setting that no account takes up by itself."""
    of_accounts = {"daemon": {"workspace", "folders"}, "web": {"public_url"}, "store": {"max_waiting"}}
    return [
        table
        for table in ("daemon", "web", "store", "sessions", "log")
        if getattr(before, table).model_dump(exclude=of_accounts.get(table))
        != getattr(after, table).model_dump(exclude=of_accounts.get(table))
    ] + (["agents"] if before.agents != after.agents else [])


def _bounded(web: WebTable) -> WebTable:
    """``web`` with no more connections than there are file descriptors for."""
    there = raise_descriptor_limit()
    most = there - min(SPARE_DESCRIPTORS, there * 3 // 4)
    return web.model_copy(update={"max_connections": min(web.max_connections, most)})


def _first(group: BaseExceptionGroup[BaseException], kind: type[E]) -> E | None:
    """The first ``kind`` anywhere in ``group``."""
    for error in group.exceptions:
        found = _first(error, kind) if isinstance(error, BaseExceptionGroup) else error
        if isinstance(found, kind):
            return found
    return None
