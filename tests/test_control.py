"""daemon.control: what it shows is the supervisor's snapshot, and what it refuses says what to do."""

import asyncio
import os
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest

from bridge import control as control_module
from bridge.channel.testing.clock import START, FakeClock, until
from bridge.clock import unix_ms
from bridge.control import Control, OnDisk
from bridge.errors import ConfigError, StoreError
from bridge.health import Health, Snapshot, State, to_wire
from bridge.ids import AccountId, ConversationKey, MessageId
from bridge.letters import Letters
from bridge.owners import Owners
from bridge.protocol import commands, ours
from bridge.questions import Questions
from bridge.relay.pairing import Pairings
from bridge.relay.reach import Reach
from bridge.sessions.contract import ControlError
from bridge.store.contract import (
    Bind,
    Claim,
    Hold,
    MessageState,
    NewMessage,
    PartState,
    Post,
    Query,
    SetIdentity,
    Spend,
    Step,
    Store,
    Used,
)
from bridge.store.sqlite import open_store
from bridge.supervisor import Plan, Supervisor
from bridge.switching import Switches
from bridge.usage import Usages
from tests.store.values import reply, text

ACCOUNT = AccountId("pigeon:main")


@dataclass
class Pigeon:
    """An account that waits, and notes what it is told to send."""

    sent: list[tuple[str, str, list[Path]]] = field(default_factory=list)
    trouble: Exception | None = None
    name: str = ACCOUNT

    async def run(self, health: Health) -> None:
        health.contact()
        await asyncio.Event().wait()

    async def send(self, to: str, text: str, files: Sequence[Path]) -> None:
        if self.trouble is not None:
            raise self.trouble
        self.sent.append((to, text, list(files)))


class Deaf:
    """An account that nothing can be sent through."""

    name = "pigeon:deaf"

    async def run(self, health: Health) -> None:
        await asyncio.Event().wait()


class StalledStore:
    """A store whose reads never come back, or fail."""

    def __init__(self, error: Exception | None = None) -> None:
        self._error = error

    async def do(self, step: Step[Any]) -> Any:
        raise NotImplementedError

    async def get(self, query: Query[Any]) -> Any:
        if self._error is not None:
            raise self._error
        await asyncio.Event().wait()

    def backlog(self) -> int:
        return 0


@dataclass
class Daemon:
    control: Control
    supervisor: Supervisor
    pigeon: Pigeon
    reloads: list[str]
    switches: "Switchboard"


class Switchboard(Switches):
    """Notes what is to be changed; it takes until ``done``."""

    def __init__(self) -> None:
        self.asked: list[ours.ChannelSet | commands.ChannelLogout] = []
        self.done = asyncio.Event()

    async def set(self, command: ours.ChannelSet) -> None:
        self.asked.append(command)
        await self.done.wait()

    async def logout(self, command: commands.ChannelLogout) -> None:
        self.asked.append(command)
        raise ControlError("component_error", "it did not stop")


@asynccontextmanager
async def running(
    store: Store,
    reload_error: Exception | None = None,
    waiting: Sequence[str] = (),
    mcp: Sequence[ours.McpServer] = (),
) -> AsyncIterator[Daemon]:
    supervisor, pigeon, reloads = Supervisor(FakeClock()), Pigeon(), list[str]()

    async def reload() -> Sequence[str]:
        reloads.append("reload")
        if reload_error is not None:
            raise reload_error
        return waiting

    def plan(component: Pigeon | Deaf) -> Plan:
        name = component.name.partition(":")[2]
        first = Snapshot(AccountId(component.name), "pigeon", name, State.STARTING, START)
        return Plan(first, 1, lambda: component)

    async with supervisor.running():
        await supervisor.reconcile([plan(pigeon), plan(Deaf())])
        await until(lambda: supervisor.snapshots()[1].state is State.CONNECTED)
        letters = Letters(supervisor, store, FakeClock())
        switches = Switchboard()
        questions = Questions(store, FakeClock(), Reach(supervisor, store, list), lambda _: 0.0)
        owners = Owners(supervisor, store, FakeClock(), Pairings(FakeClock()), questions)
        control = Control(
            supervisor, store, letters, switches, owners, Usages(supervisor, store, FakeClock()), reload,
            lambda: OnDisk("wrong", ("web",)), "1.2.3", lambda: mcp,
        )  # fmt: skip
        yield Daemon(control, supervisor, pigeon, reloads, switches)


async def test_status_is_the_snapshot_with_figures_from_the_store(tmp_path: Path) -> None:
    async with open_store(tmp_path / "db") as store, running(store) as daemon:
        await store.do(Bind(ACCOUNT, "x"))
        await store.do(SetIdentity(ACCOUNT, "b1", "Bot"))
        waiting = NewMessage(
            MessageId("m1"), MessageState.CLAIMED, conversation=ConversationKey("c"), payload="{}"
        )
        await store.do(Claim(ACCOUNT, (waiting,), unix_ms(START)))
        status = await daemon.control.handle(commands.Status())
    assert (status.version, status.pid) == ("1.2.3", os.getpid())
    deaf, main = status.components
    assert (deaf.id, deaf.state, deaf.queue_depth) == ("pigeon:deaf", "starting", 0)
    assert (main.id, main.state, main.bot_id) == (ACCOUNT, "connected", "b1")
    assert main.queue_depth == 1
    assert main.oldest_waiting_unix_seconds == unix_ms(START) // 1000


@pytest.mark.parametrize("store", [StalledStore(), StalledStore(StoreError("the disk is gone"))])
async def test_a_store_that_does_not_answer_delays_no_status(
    store: StalledStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(control_module, "MEASURE_SECONDS", 0.01)
    async with running(store) as daemon:
        status = await daemon.control.status()
    assert [component.state for component in status.components] == ["starting", "connected"]


async def test_every_state_is_shown_as_it_is() -> None:
    shown = [to_wire(Snapshot(ACCOUNT, "pigeon", "main", state, START)).state.value for state in State]
    assert shown == [
        "disabled",
        "starting",
        "connected",
        "disconnected",
        "backoff",
        "stopping",
        "stopped",
        "failed",
    ]


async def test_reload_reads_the_settings_again() -> None:
    async with running(StalledStore(StoreError("x"))) as daemon:
        status = await daemon.control.handle(commands.Reload())
        assert daemon.reloads == ["reload"]
        assert status.reloaded == ours.Reloaded()


async def refused(command: ours.Command, daemon: Daemon) -> ControlError:
    with pytest.raises(ControlError) as caught:
        await daemon.control.handle(command)
    return caught.value


async def test_a_reload_that_fails_says_why() -> None:
    async with running(StalledStore(), ConfigError("settings.toml: web.port: wrong")) as daemon:
        error = await refused(commands.Reload(), daemon)
    assert (error.code, str(error)) == ("component_error", "settings.toml: web.port: wrong")


async def test_a_reload_that_cannot_take_all_up_says_that_a_restart_is_needed() -> None:
    async with running(StalledStore(), waiting=["web", "store"]) as daemon:
        error = await refused(commands.Reload(), daemon)
    assert "[web], [store]" in str(error)
    assert "restart the daemon" in str(error)


async def test_the_status_tells_which_settings_are_not_in_effect() -> None:
    async with running(StalledStore(StoreError("x"))) as daemon:
        status = await daemon.control.handle(commands.Status())
    assert (status.settings_error, status.waits_for_restart) == ("wrong", ("web",))


async def test_a_message_is_sent_from_its_account() -> None:
    async with running(StalledStore(StoreError("x"))) as daemon:
        await daemon.control.handle(ours.Send(account=ACCOUNT, to="u1", text="hi", files=("/a", "/b")))
        await daemon.control.handle(ours.Send(account=ACCOUNT, to="u1", files=("/a",)))
        assert daemon.pigeon.sent == [("u1", "hi", [Path("/a"), Path("/b")]), ("u1", "", [Path("/a")])]


@pytest.mark.parametrize(
    ("command", "said"),
    [
        (ours.Send(account="pigeon:none", to="u", text="x"), "the daemon has no account pigeon:none"),
        (ours.Send(account="pigeon:deaf", to="u", text="x"), "pigeon:deaf is not running"),
        (ours.Send(account=ACCOUNT, to="u", text=" "), "nothing to send"),
        (ours.Send(account=ACCOUNT, to=" ", text="x"), "no recipient's id"),
        (ours.Send(account=ACCOUNT, to="a\tb", text="x"), "no recipient's id"),
        (ours.Send(account=ACCOUNT, to="u" * 513, text="x"), "no recipient's id"),
        (ours.Send(account=ACCOUNT, to="u", files=("a",)), "absolute paths"),
        (ours.Send(account=ACCOUNT, to="u", files=("/a\0b",)), "absolute paths"),
        (ours.Send(account=ACCOUNT, to="u", files=("/a",) * 17), "up to 16 files"),
    ],
)
async def test_what_cannot_be_sent_is_refused(command: ours.Send, said: str) -> None:
    async with running(StalledStore()) as daemon:
        error = await refused(command, daemon)
        assert daemon.pigeon.sent == []
    assert error.code == ("unknown_account" if command.account == "pigeon:none" else "component_error")
    assert said in str(error)


async def test_a_message_that_is_not_stored_is_an_error() -> None:
    async with running(StalledStore()) as daemon:
        daemon.pigeon.trouble = StoreError("the disk is full")
        error = await refused(ours.Send(account=ACCOUNT, to="u", text="x"), daemon)
    assert (error.code, str(error)) == ("component_error", "the disk is full")


@pytest.mark.parametrize(
    ("command", "code"),
    [
        (commands.Delegations(), "delegation_error"),
        (commands.DelegationKill(), "delegation_error"),
        (commands.RestartWhenIdle(), "restart_error"),
        (commands.ChannelLogout(channel="pigeon", account="main"), "component_error"),
    ],
)
async def test_what_is_not_done_here_is_refused_under_its_own_code(command: ours.Command, code: str) -> None:
    async with running(StalledStore()) as daemon:
        assert (await refused(command, daemon)).code == code


async def test_an_account_is_switched_and_the_status_meanwhile_waits_for_nothing() -> None:
    command = ours.ChannelSet(channel="pigeon", account="main", enabled=True)
    async with running(StalledStore(StoreError("x"))) as daemon, asyncio.TaskGroup() as tasks:
        changing = tasks.create_task(daemon.control.handle(command))
        await until(lambda: daemon.switches.asked == [command])
        status = await daemon.control.handle(commands.Status())
        assert not changing.done()
        daemon.switches.done.set()
        assert await changing == status


async def test_dead_letters_come_with_the_status(tmp_path: Path) -> None:
    async with open_store(tmp_path / "db") as store, running(store) as daemon:
        (part_id,) = await store.do(Post(ACCOUNT, reply(text("lost")), 2000))
        await store.do(Hold(part_id, PartState.REFUSED, "lost", 3000, "too long"))
        status = await daemon.control.handle(ours.DeadList())
        assert [letter.id for letter in status.dead] == [part_id]
        assert (await daemon.control.handle(ours.DeadPrune(ids=(part_id,)))).dead == ()
        assert (await daemon.control.handle(commands.Status())).dead == ()


async def test_a_pairing_is_told_with_the_status_and_its_code_is_not(tmp_path: Path) -> None:
    async with open_store(tmp_path / "db") as store, running(store) as daemon:
        status = await daemon.control.handle(ours.Pair(account=ACCOUNT, code="48217730"))
        assert (status.pairing is not None and status.pairing.state) == "waiting"
        assert len(status.components) == 2
        assert "48217730" not in status.model_dump_json()
        assert (await daemon.control.handle(commands.Status())).pairing is None


async def test_servers_of_tools_come_with_the_status_where_they_are_asked_for(tmp_path: Path) -> None:
    server = ours.McpServer(name="web", kind="http", state="connected", since_unix_seconds=1)
    async with open_store(tmp_path / "db") as store, running(store, mcp=[server]) as daemon:
        assert (await daemon.control.handle(ours.McpList())).mcp == (server,)
        assert (await daemon.control.handle(commands.Status())).mcp == ()


async def test_usage_comes_with_the_status_where_it_is_asked_for(tmp_path: Path) -> None:
    async with open_store(tmp_path / "db") as store, running(store) as daemon:
        await store.do(Spend(ACCOUNT, Used("u", "echo", 1, 2, 3), unix_ms(START)))
        (line,) = (await daemon.control.handle(ours.UsageList())).usage
        assert (line.name, line.turns, line.cost_micros) == (ACCOUNT, 1, 3)
        assert (await daemon.control.handle(commands.Status())).usage == ()
