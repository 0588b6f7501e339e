"""A server on a real socket, and a client that speaks raw lines to it."""

import asyncio
import json
import tempfile
from collections.abc import AsyncIterator, Callable, Mapping
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from bridge.agents.contract import (
    Agent,
    AgentSettings,
    AgentSpec,
    AgentUsage,
    Gate,
    HistoryEntry,
    Sink,
    Turn,
)
from bridge.agents.echo import Echo
from bridge.channel.testing.clock import FakeClock
from bridge.config import SessionsTable
from bridge.errors import ConfigError, StoreError
from bridge.paths import Home
from bridge.profiles import Profile
from bridge.protocol import ours
from bridge.protocol.commands import Reload, Status
from bridge.sessions.agents import Agents
from bridge.sessions.contract import ControlError, Deadlines, Services, ToolsFactory
from bridge.sessions.server import SessionServer
from bridge.store.sqlite import open_store
from bridge.store.step import R, Step, Store
from bridge.store.workers import InlineWorker
from bridge.tools.contract import Tool
from tests.store.around import Around

Event = dict[str, Any]
Act = Callable[[Turn, Sink, Gate], Any]


class ScriptedAgent:
    """Does in a turn what the test says: the function is found by the prompt. ``seen``: what it saw."""

    model = "scripted"

    def __init__(self, **acts: Act) -> None:
        self.acts = acts
        self.turns: list[Turn] = []
        self.seen: list[tuple[HistoryEntry, ...]] = []

    async def run(self, turn: Turn, sink: Sink, gate: Gate) -> AgentUsage:
        self.turns.append(turn)
        self.seen.append(await sink.begin())
        act = self.acts.get(turn.prompt)
        usage = await act(turn, sink, gate) if act else None
        if act is None:
            await sink.completed(f"re: {turn.prompt}")
        return usage or AgentUsage(steps=1)


class DaemonControl:
    """Answers ``status``; refuses the rest, once ``go`` is set."""

    def __init__(self) -> None:
        self.go = asyncio.Event()
        self.go.set()

    async def handle(self, command: ours.Command) -> ours.DaemonStatus:
        await self.go.wait()
        if isinstance(command, Status):
            return ours.DaemonStatus(version="0", pid=1, components=())
        raise ControlError("component_error" if isinstance(command, Reload) else "restart_error", "not now")


class FailingStore(Around):
    """A store whose disk fails for the steps in ``failing``."""

    def __init__(self, store: Store) -> None:
        super().__init__(store)
        self.store = store
        self.failing: set[type[Step[Any]]] = set()
        self.steps: list[Step[Any]] = []

    async def do(self, step: Step[R]) -> R:
        if type(step) in self.failing:
            raise StoreError("the disk is full")
        self.steps.append(step)
        return await self.store.do(step)


@dataclass
class Server:
    """What a test sees of the server. ``stop`` cancels it, as the daemon does."""

    path: Path
    home: Path
    workspace: Path
    store: FailingStore
    clock: FakeClock
    control: DaemonControl
    task: asyncio.Task[None]
    clients: list["Client"] = field(default_factory=list)

    async def stop(self) -> None:
        self.task.cancel()
        with suppress(asyncio.CancelledError):
            await self.task

    async def client(self, *, initialize: bool = True) -> "Client":
        reader, writer = await asyncio.open_unix_connection(self.path, limit=2**24)
        client = Client(self, reader, writer)
        self.clients.append(client)
        if initialize:
            client.say(type="initialize", protocol_version=3, client={"name": "t", "version": "0"})
            assert (await client.event())["type"] == "initialized"
        return client

    async def session(self, **fields: Any) -> "Client":
        client = await self.client()
        await client.start(**fields)
        return client


class Client:
    def __init__(self, server: Server, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self.server, self.reader, self.writer = server, reader, writer
        self.session_id = ""
        self.seen: list[Event] = []
        self._requests = 0

    def raw(self, data: bytes) -> None:
        self.writer.write(data)

    def say(self, **message: Any) -> str:
        """Send a message; returns its request id."""
        self._requests += 1
        message.setdefault("request_id", f"r{self._requests}")
        self.raw(json.dumps(message).encode() + b"\n")
        request_id: str = message["request_id"]
        return request_id

    def ask(self, kind: str, **fields: Any) -> str:
        """Send a message of this session."""
        fields.setdefault("session_id", self.session_id)
        return self.say(type=kind, **fields)

    async def event(self) -> Event:
        line = await self.reader.readline()
        assert line.endswith(b"\n"), f"the connection ended: {line!r}"
        event: Event = json.loads(line)
        self.seen.append(event)
        return event

    async def until(self, *kinds: str) -> list[Event]:
        """The events up to and with the first of one of ``kinds``."""
        events = [await self.event()]
        while events[-1]["type"] not in kinds:
            events.append(await self.event())
        return events

    async def error(self) -> str:
        """The next event, which must be an error: its code."""
        event = await self.event()
        assert event["type"] == "error", event
        code: str = event["code"]
        return code

    async def start(self, **fields: Any) -> None:
        fields.setdefault("cwd", str(self.server.workspace))
        self.say(type="session.start", **fields)
        started = await self.event()
        assert started["type"] == "session.started", started
        self.session_id = started["session_id"]
        assert (await self.event())["type"] == "queue.snapshot"

    async def turn(self, prompt: str, **fields: Any) -> list[Event]:
        """Run a turn; its events up to the terminal one. Approvals are given."""
        self.ask("turn.start", prompt=prompt, **fields)
        events: list[Event] = []
        while not events or events[-1]["type"] not in ENDS:
            events.append(await self.event())
            if events[-1]["type"] == "approval.requested":
                approval_id = events[-1]["approval_id"]
                self.ask("approval.resolve", approval_id=approval_id, approved=True)
        return events

    async def at_end(self) -> bool:
        """Whether the server has closed the connection, with nothing left to read."""
        try:
            return await self.reader.read(1) == b""
        except ConnectionResetError:
            return True

    async def close(self) -> None:
        self.writer.close()
        with suppress(OSError):
            await self.writer.wait_closed()

    def numbers(self) -> list[int]:
        return [event["seq"] for event in self.seen if "seq" in event]


ENDS = ("turn.completed", "turn.failed", "turn.cancelled")
QUICK = Deadlines(reply=0.2, turn=0.2, writer=0.2, stop=1.0)


class Cast:
    """The profiles of a test: agents by their names, the first of which is the default."""

    def __init__(self, agents: Mapping[str, Agent], own_tools: tuple[str, ...] = ()) -> None:
        self._agents, self._own_tools = dict(agents), own_tools
        self.default = next(iter(agents))
        self.read_names: list[str] = []

    def names(self) -> list[str]:
        return sorted(self._agents)

    def read(self, name: str) -> Profile:
        if name not in self._agents:
            raise ConfigError(f"there is no agent called {name!r}")
        self.read_names.append(name)
        agent = self._agents[name]
        spec = AgentSpec(name, AgentSettings, lambda settings, place: agent, name in self._own_tools)
        return Profile(name, spec, AgentSettings())


class Lacking(Cast):
    """Profiles of which one cannot be used right now."""

    def __init__(self, agents: Mapping[str, Agent], lacking: str) -> None:
        super().__init__(agents)
        self.lacking = lacking

    def read(self, name: str) -> Profile:
        if name == self.lacking:
            raise ConfigError(f"{name} is not installed: install it")
        return super().read(name)


def agents_of(agent: Agent, own_tools: tuple[str, ...] = (), **others: Agent) -> Agents:
    """``agent`` answers by default, as "scripted"."""
    return Agents(Cast({"scripted": agent, **others}, own_tools), Home(Path("/nowhere")), FakeClock())


def no_tools(no_tools: bool, channel: str) -> Mapping[str, Tool]:
    return {}


@asynccontextmanager
async def serving(
    agent: Agent | Agents | None = None,
    tools: ToolsFactory = no_tools,
    table: SessionsTable | None = None,
    deadlines: Deadlines = QUICK,
    home: Path | None = None,
) -> AsyncIterator[Server]:
    """A server on a socket in a folder of its own; the path is short, as sockets want it."""
    with tempfile.TemporaryDirectory(prefix="tb-") as made:
        root = home or Path(made).resolve()
        workspace = root / "work"
        workspace.mkdir(exist_ok=True)
        clock, control = FakeClock(), DaemonControl()
        async with open_store(root / "s.db", workers=InlineWorker) as sqlite:
            store = FailingStore(sqlite)
            services = Services(
                agents=(agents := agent if isinstance(agent, Agents) else agents_of(agent or Echo(clock))),
                tools=tools,
                store=store,
                clock=clock,
                control=control,
                table=table or SessionsTable(),
                deadlines=deadlines,
            )
            path = root / "state" / "server.sock"
            server = SessionServer(path, services, "1.2.3")
            async with asyncio.TaskGroup() as tasks:
                starting = tasks.create_task(agents.run())
                running = Server(
                    path, root, workspace, store, clock, control, tasks.create_task(server.run())
                )
                await server.ready.wait()
                try:
                    yield running
                finally:
                    for client in running.clients:
                        await client.close()
                    await running.stop()
                    starting.cancel()
