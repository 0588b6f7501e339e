"""What every check stands on: a kit's platform, an adapter before it, and watch over secrets and tasks."""

import asyncio
import logging
from collections.abc import AsyncIterator, Awaitable, Callable, Coroutine, Iterator, Sequence
from contextlib import asynccontextmanager, contextmanager
from dataclasses import dataclass, field
from typing import Any

import aiohttp
import pytest

from bridge.channel.contract import Channel, Identity, Inbound, Item, Polls, Probes, Pushed, Reading
from bridge.channel.http import Http
from bridge.channel.spec import ChannelSpec, Place
from bridge.channel.testing.kit import Kit, KitMessage, PollsKit, PushedKit
from bridge.errors import BridgeError

MakeKit = Callable[[], Kit]

DEADLINE_SECONDS = 50.0
MOST_CONNECTIONS = 8  # a leaked one is missed soon
MOST_POLLS = 20
ADDRESS = "https://bridge.example/channels/it/main"


@dataclass(slots=True)
class Stage:
    """One account on the kit's platform. ``secrets`` are what no text may hold."""

    kit: Kit
    spec: ChannelSpec
    channel: Channel
    http: Http
    identity: Identity
    secrets: tuple[str, ...] = field(repr=False)
    checkpoint: str = ""

    def fresh(self) -> Channel:
        """Another adapter for the same account, as after a restart."""
        return create(self.kit, self.http)

    async def greeting(self, message: KitMessage | None = None) -> Inbound:
        """What the adapter makes of a message, whichever way the kit brings one; skips without a way."""
        message = message or KitMessage("hello", sender=self.kit.person(0), chat=self.kit.chat(0))
        if isinstance(self.kit, PushedKit) and isinstance(self.channel, Pushed):
            reading = self.channel.read(self.kit.push(message), self.identity)
            assert isinstance(reading, Reading), f"a genuine message was answered: {reading}"
            items: Sequence[Item] = reading.items
        elif isinstance(self.kit, PollsKit) and isinstance(self.channel, Polls):
            self.kit.arrive(message)
            items = await self._polled(self.channel)
        else:
            pytest.skip("its kit brings no messages")
        assert len(items) == 1, f"one message became {len(items)} items"
        assert isinstance(items[0], Inbound), f"a message became {type(items[0]).__name__}"
        return items[0]

    async def _polled(self, channel: Polls) -> Sequence[Item]:
        """The next batch with something in it."""
        for _ in range(MOST_POLLS):
            batch = await channel.receive(self.checkpoint)
            self.checkpoint = self.checkpoint if batch.checkpoint is None else batch.checkpoint
            if batch.items:
                return batch.items
        return ()

    def keeps_quiet(self, text: str, where: str) -> None:
        """Fail when ``text`` holds a secret of the account; the failure does not show it."""
        for secret in self.secrets:
            assert secret not in text, f"{where} shows a secret"

    async def failure(self, call: Awaitable[object]) -> BridgeError:
        """The error that ``call`` ends with, which must be one of ours and hold no secret."""
        try:
            result = await call
        except BridgeError as error:
            for each in _chain(error):
                self.keeps_quiet(f"{each} {each!r}", "an error")
            return error
        raise AssertionError(f"it should have failed, and gave {result!r}")


def scenario(
    test: Callable[[Stage], Coroutine[Any, Any, None]],
) -> Callable[[MakeKit], None]:
    """Make of ``test`` a plain function, for any pytest without plugins; its argument is ``make_kit``."""

    def plain(make_kit: MakeKit) -> None:
        async def bounded() -> None:
            async with asyncio.timeout(DEADLINE_SECONDS), staged(make_kit) as stage:
                await test(stage)

        asyncio.run(bounded())

    plain.__name__, plain.__module__, plain.__doc__ = test.__name__, test.__module__, test.__doc__
    return plain


@asynccontextmanager
async def staged(make_kit: MakeKit) -> AsyncIterator[Stage]:
    """Open everything; at the end no log line held a secret, and no task of the adapter is left."""
    with watched_logs() as lines:
        async with make_kit() as kit, limited_session() as session:
            http = Http(session)
            channel = create(kit, http)
            identity = await channel.probe() if isinstance(channel, Probes) else Identity()
            stage = Stage(kit, kit.spec, channel, http, identity, tuple(secrets_in(kit.credentials)))
            before = asyncio.all_tasks()
            yield stage
            await no_strays(before)
    for line in lines:
        stage.keeps_quiet(line, "a log line")


def create(kit: Kit, http: Http) -> Channel:
    spec = kit.spec
    settings = spec.settings.model_validate(kit.settings)
    credentials = spec.credentials.model_validate(kit.credentials)
    return spec.create(settings, credentials, http, Place("main", ADDRESS))


def secrets_in(value: object) -> Iterator[str]:
    """Every text of at least six characters in the credentials: shorter ones are in anything by chance."""
    match value:
        case str() if len(value) >= 6:
            yield value
        case dict():
            for each in value.values():
                yield from secrets_in(each)
        case list() | tuple():
            for each in value:
                yield from secrets_in(each)


@asynccontextmanager
async def limited_session() -> AsyncIterator[aiohttp.ClientSession]:
    """A pool in which leaked connections soon leave none: the next request then runs into the deadline."""
    connector = aiohttp.TCPConnector(limit=MOST_CONNECTIONS)
    async with aiohttp.ClientSession(connector=connector, cookie_jar=aiohttp.DummyCookieJar()) as session:
        yield session


class LogLines(logging.Handler):
    """Collects what is logged anywhere, at every level."""

    def __init__(self) -> None:
        super().__init__(logging.DEBUG)
        self.lines: list[str] = []

    def emit(self, record: logging.LogRecord) -> None:
        self.lines.append(self.format(record))


@contextmanager
def watched_logs() -> Iterator[list[str]]:
    root, handler = logging.getLogger(), LogLines()
    level = root.level
    root.setLevel(logging.DEBUG)
    root.addHandler(handler)
    try:
        yield handler.lines
    finally:
        root.removeHandler(handler)
        root.setLevel(level)


async def no_strays(before: set[asyncio.Task[Any]]) -> None:
    """Fail when a task is left that was not there ``before``; those of aiohttp are none of ours."""
    for _ in range(20):
        await asyncio.sleep(0)
    left = [task.get_name() for task in asyncio.all_tasks() - before if not _of_aiohttp(task)]
    assert not left, f"tasks are left: {', '.join(left)}"


def _of_aiohttp(task: asyncio.Task[Any]) -> bool:
    code = getattr(task.get_coro(), "cr_code", None)
    return code is not None and "aiohttp" in code.co_filename


def _chain(error: BaseException) -> Iterator[BaseException]:
    at: BaseException | None = error
    while at is not None:
        yield at
        at = at.__cause__ or (None if at.__suppress_context__ else at.__context__)
