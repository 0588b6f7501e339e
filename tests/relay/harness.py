"""An account in a temporary home: the real store, a scripted session server, a channel of the test's."""

from __future__ import annotations

import asyncio
import tempfile
from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from dataclasses import dataclass, field, replace
from datetime import timedelta
from pathlib import Path
from random import Random
from typing import Any, cast

from multidict import CIMultiDict, CIMultiDictProxy

from bridge.channel import (
    Answer,
    Batch,
    Channel,
    ChannelCredentials,
    ChannelSettings,
    ChannelSpec,
    Claimed,
    Context,
    Delivered,
    Http,
    Identity,
    Inbound,
    Incoming,
    Item,
    Limit,
    OutboundFile,
    OutboundPart,
    Reading,
    RemoteFile,
    Request,
    SendOutcome,
)
from bridge.channel.testing.clock import FakeClock, settle, until
from bridge.config import Config, LimitsTable, MediaTable
from bridge.health import Snapshot, State
from bridge.ids import AccountId
from bridge.logs import get_logger
from bridge.media.disk import Disk
from bridge.paths import Home
from bridge.relay.account import Account
from bridge.relay.ahead import NOBODY, Ahead
from bridge.relay.run import Run
from bridge.relay.setup import Setup
from bridge.store.contract import Start
from bridge.store.sqlite import SqliteStore, open_store
from bridge.store.workers import InlineWorker
from tests.relay.scripted import ScriptedServer, scripted

OWNER, STRANGER = "u-owner", "u-stranger"
NAME = AccountId("test:a")
CONNECTED = Snapshot(NAME, "test", "a", State.CONNECTED, FakeClock().now())


class PushedChannel:
    """Pushed to, with all abilities. Bodies are not parsed: ``items`` holds what the next requests bring."""

    def __init__(self) -> None:
        self.items: dict[str, tuple[Item, ...] | Answer] = {}
        self.sent: list[OutboundPart | OutboundFile] = []
        self.outcomes: list[SendOutcome | Exception] = []
        self.files: dict[str, bytes | Exception] = {}
        self.fetched: list[str] = []
        self.context: Context | Exception = Context()
        self.typed: list[str] = []
        self.typing_error: Exception | None = None
        self.identities: list[Identity | Exception] = []
        self.platform_time: Any = None

    def read(self, request: Request, identity: Identity) -> Reading | Answer:
        found = self.items[request.body.decode()]
        return found if isinstance(found, Answer) else Reading(found, self.platform_time, identity.bot_id)

    def answer(self, reading: Reading, results: Sequence[Claimed]) -> Answer:
        return Answer(200, ",".join(results).encode())

    async def send(self, part: OutboundPart) -> SendOutcome:
        return self._take(part)

    async def send_file(self, part: OutboundFile) -> SendOutcome:
        return self._take(part)

    def _take(self, part: OutboundPart | OutboundFile) -> SendOutcome:
        self.sent.append(part)
        outcome = self.outcomes.pop(0) if self.outcomes else Delivered("p")
        if isinstance(outcome, Exception):
            raise outcome
        return outcome

    def fetch(self, file: RemoteFile, max_bytes: int) -> AbstractAsyncContextManager[Incoming]:
        return self._fetch(file)

    @asynccontextmanager
    async def _fetch(self, file: RemoteFile) -> AsyncIterator[Incoming]:
        self.fetched.append(file.key)
        data = self.files[file.key]
        if isinstance(data, Exception):
            raise data

        async def chunks() -> AsyncIterator[bytes]:
            yield data

        yield Incoming(chunks(), mime=file.mime)

    async def resolve(self, message_id: str, reference: str) -> Context:
        if isinstance(self.context, Exception):
            raise self.context
        return self.context

    async def typing(self, to: str, reply_to: str) -> None:
        self.typed.append(to)
        if self.typing_error is not None:
            raise self.typing_error

    def texts(self) -> list[str]:
        return [one.text for one in self.sent if isinstance(one, OutboundPart)]


class PollingChannel(PushedChannel):
    """Polled: ``batches`` are what the next polls bring; then it waits."""

    read: Any = None
    answer: Any = None

    def __init__(self) -> None:
        super().__init__()
        self.batches: list[Batch | Exception] = []
        self.polled: list[str] = []

    async def receive(self, checkpoint: str) -> Batch:
        self.polled.append(checkpoint)
        if not self.batches:
            await asyncio.get_running_loop().create_future()
        batch = self.batches.pop(0)
        if isinstance(batch, Exception):
            raise batch
        return batch


class ProbedChannel(PushedChannel):
    async def probe(self) -> Identity:
        identity = self.identities.pop(0) if self.identities else Identity("bot", "Bot")
        if isinstance(identity, Exception):
            raise identity
        return identity


@dataclass
class FakeHealth:
    told: list[str] = field(default_factory=list)
    bot_id: str = ""
    snapshot: Snapshot = CONNECTED
    skews: list[float] = field(default_factory=list)

    def contact(self) -> None:
        self.told.append("contact")

    def lost(self, reason: str) -> None:
        self.told.append(reason)

    def known(self, *, bot_id: str) -> None:
        self.bot_id = bot_id

    def skewed(self, seconds: float) -> None:
        self.skews.append(seconds)

    def repeated(self) -> None:
        self.told.append("again")


@dataclass
class Desk:
    """A running account and everything around it."""

    home: Home
    clock: FakeClock
    store: SqliteStore
    server: ScriptedServer
    channel: Any
    account: Account
    health: FakeHealth
    count: int = 0

    @property
    def run(self) -> Run:
        """What the account's run is made of."""
        assert self.account._run is not None
        return self.account._run

    async def push(self, *items: Item | Answer, path: str = "") -> Answer:
        self.count += 1
        key = str(self.count)
        first = items[0] if items else None
        self.channel.items[key] = first if isinstance(first, Answer) else items
        answer = await self.account.handle(request(key.encode(), path=path, clock=self.clock))
        assert isinstance(answer, Answer)
        return answer

    async def say(self, text: str, sender: str = OWNER, **changes: Any) -> Answer:
        """A person writes; ``count`` names the message."""
        return await self.push(message(f"m{self.count + 1}", text, sender, **changes))

    async def answered(self, count: int) -> list[str]:
        """Wait until ``count`` texts were sent."""
        await until(lambda: len(self.channel.texts()) >= count)
        await settle()
        return list(self.channel.texts())


def request(body: bytes = b"", *, path: str = "", clock: FakeClock | None = None, **query: str) -> Request:
    now = (clock or FakeClock()).now()
    return Request("POST", path, query, CIMultiDictProxy(CIMultiDict()), body, now)


def message(message_id: str, text: str = "hello", sender: str = OWNER, **changes: Any) -> Inbound:
    base = Inbound(message_id, sender, f"chat-{sender}", f"to-{sender}", message_id, text)
    return replace(base, **changes)


def spec_for(channel: Channel, **changes: Any) -> ChannelSpec:
    spec = ChannelSpec(
        name="test", title=lambda _: "Test", settings=ChannelSettings, credentials=ChannelCredentials,
        create=lambda settings, credentials, http, place: channel,
        identity=lambda settings, credentials: ("id",),
        text_limit=Limit(4000), idempotent_seconds=3600, render=str,
    )  # fmt: skip
    return replace(spec, **changes)


def setup_for(
    home: Home, store: Any, clock: FakeClock, channel: Channel, *, settings: dict[str, Any] | None = None,
    limits: dict[str, Any] | None = None, spec: dict[str, Any] | None = None, public_url: str = "",
    workspace: Path | None = None, disk: Disk | None = None, media: dict[str, Any] | None = None,
    ahead: Ahead = NOBODY,
) -> Setup:  # fmt: skip
    table = ChannelSettings.model_validate({"owner": OWNER, "senders": "anyone", **(settings or {})})
    config = Config(
        limits=LimitsTable.model_validate(limits or {}), media=MediaTable.model_validate(media or {})
    )
    config = config.model_copy(update={"web": config.web.model_copy(update={"public_url": public_url})})
    return Setup(
        name=NAME, spec=spec_for(channel, **(spec or {})), settings=table, credentials=None, config=config,
        home=home, workspace=workspace or home.root, http=cast(Http, None), store=store, clock=clock,
        disk=disk or Disk(home.root, 0), rng=Random(3), version="1", ahead_of=lambda _, __: ahead,
    )  # fmt: skip


def put_under(here: Desk, store: Any) -> None:
    """Put another store under the account's next run, which has the steps and reads of one."""
    here.account._store = store
    here.account._setup = replace(here.account._setup, store=store)


def after_starts(here: Desk, act: Callable[[Start], Awaitable[object]]) -> None:
    """Do ``act`` behind each message that is started, before its turn begins."""
    store, do = cast(Any, here.store), here.store.do

    async def done(step: Any) -> Any:
        result = await do(step)
        if isinstance(step, Start):
            await act(step)
        return result

    store.do = done


class Logs:
    """Who has a log, and nothing else of a setup's."""

    log = get_logger("test")


@asynccontextmanager
async def homes() -> AsyncIterator[Home]:
    with tempfile.TemporaryDirectory(prefix="tb") as folder:
        home = Home(Path(folder))
        for place in (home.state, home.outbox):
            home.private_dir(place)
        yield home


@asynccontextmanager
async def desk(
    channel: Any = None, *, home: Home | None = None, clock: FakeClock | None = None, script: Any = None,
    run: bool = True, **setup: Any,
) -> AsyncIterator[Desk]:  # fmt: skip
    """Run an account. With ``home`` and ``clock`` of a run before: the same, restarted."""
    if home is None:
        async with (
            homes() as new,
            desk(channel, home=new, clock=clock, script=script, run=run, **setup) as own,
        ):
            yield own
        return
    clock, channel = clock or FakeClock(), channel or PushedChannel()
    async with (
        open_store(home.db, workers=InlineWorker) as store,
        scripted(socket=home.socket, **(script or {})) as server,
        asyncio.TaskGroup() as tasks,
    ):
        account = Account(setup_for(home, store, clock, channel, **setup))
        here = Desk(home, clock, store, server, channel, account, FakeHealth())
        running = tasks.create_task(account.run(here.health)) if run else None
        await settle()
        try:
            yield here
        finally:
            if running is not None:
                running.cancel()
            await settle()


MINUTE, HOUR = timedelta(minutes=1), timedelta(hours=1)
