"""From settings to accounts that run: what the supervisor is to start, and the component of each account."""

from __future__ import annotations

import asyncio
import os
import random
from collections.abc import Callable, Coroutine, Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, assert_never

from bridge import registry
from bridge.accounts import AccountSetup, BrokenAccount, accounts, unused_credentials
from bridge.channel import ChannelSettings, Http
from bridge.channel.contract import Answer, AnyAnswer, FileAnswer, NoAnswer, Request, SentAnswer
from bridge.clock import Clock
from bridge.config import Config, load
from bridge.errors import BridgeError, ConfigError, ExhaustedError
from bridge.health import Health, RemoteTools, Snapshot, State
from bridge.ids import AccountId
from bridge.logs import clean, get_logger
from bridge.media.disk import Disk
from bridge.media.outbox import NotCopied, copy
from bridge.media.sniff import sniff_file
from bridge.meter import Meter
from bridge.paths import Home
from bridge.profiles import Profiles
from bridge.protocol import ours
from bridge.relay.account import RETRY_LATER, Account
from bridge.relay.ahead import NOBODY, Ahead
from bridge.relay.outbox import ReplyFile
from bridge.relay.setup import Setup
from bridge.store.contract import Store
from bridge.supervisor import Plan
from bridge.tools.places import is_private
from bridge.version import VERSION

REASON_CHARACTERS = 500
READS = 5  # of files that change meanwhile
UNPROVEN = (401, 403)  # what those are answered that do not prove who sent them
CONTACT_SECONDS = 1.0  # what the status shows of the last contact is at most so old

log = get_logger(__name__)

Stamps = frozenset[tuple[object, ...]]
"""Which files there are and when they changed: other ones, other stamps."""


class Served:
    """An account as the daemon has it: run by the supervisor, reached by the listener, and told to send."""

    __slots__ = ("_account", "_contact_at", "_health", "_setup")

    def __init__(self, account: Account, setup: Setup) -> None:
        self._account, self._setup = account, setup
        self._health: Health | None = None
        self._contact_at = -CONTACT_SECONDS

    @property
    def name(self) -> str:
        return self._account.name

    @property
    def body_limit_bytes(self) -> int:
        return self._account.body_limit_bytes

    def run(self, health: Health) -> Coroutine[Any, Any, None]:
        self._health = health
        return self._account.run(health)

    async def handle(self, request: Request) -> AnyAnswer:
        answer = await self._account.handle(request)
        status = _status(answer)
        self._setup.meter.requested(status, len(request.body))
        accepted = isinstance(answer, Answer) and 200 <= answer.status < 300
        proven = accepted or isinstance(answer, SentAnswer | NoAnswer)
        if proven:
            self._heard()
        if request.method == "POST" and not request.path:
            self._judged(status, proven)
        return answer

    def _judged(self, status: int, proven: bool) -> None:
        """Note whether a push proved who sent it. What only asks may have another secret, or none."""
        if self._health is None:
            return
        if proven:
            self._health.refusals.accepted()
        elif status in UNPROVEN:
            self._health.refusals.refused(status)

    def _heard(self) -> None:
        """What was verified is contact. It ends no trouble: it does not show that sending works again."""
        now = self._setup.clock.monotonic()
        if self._health is None or now - self._contact_at < CONTACT_SECONDS:
            return
        if self._health.snapshot.state is State.CONNECTED:
            self._contact_at = now
            self._health.contact()

    async def deliver(self, reply_id: str) -> None:
        """Deliver a reply that somebody else put into the account's outbox."""
        await self._account.deliver(reply_id)

    def takes(self, text: str) -> bool:
        """Whether ``text`` is one message there."""
        return self._account.takes(text)

    async def sweep(self) -> None:
        """Remove received files that need not be kept."""
        await self._account.sweep()

    def drop_reply(self, reply_id: str) -> None:
        """The store has ended this reply: it is not sent any more."""
        self._account.drop_reply(reply_id)

    async def send(self, to: str, text: str, files: Sequence[Path]) -> None:
        """Put a message and copies of ``files`` into the outbox.

        Raises:
            BridgeError: a file may not be sent or cannot be read, or nothing was stored.
        """
        copies = await asyncio.to_thread(_copies, files, self._setup.home)
        try:
            await self._account.post(to, text, copies)
        except BridgeError:
            await asyncio.to_thread(_remove, copies)
            raise


class Later:
    """The route of an account that is to be served and cannot be yet: whoever pushes is to come again."""

    body_limit_bytes = 1_048_576

    async def handle(self, request: Request) -> AnyAnswer:
        return RETRY_LATER


def _status(answer: AnyAnswer) -> int:
    """As it is counted; 0: left unanswered."""
    match answer:
        case Answer(status=status) | SentAnswer(answer=Answer(status=status)):
            return status
        case FileAnswer():
            return 200
        case NoAnswer():
            return 0
        case _:
            assert_never(answer)


def _credentials(root: Path) -> Iterator[Path]:
    """The files of all accounts' credentials; raises OSError, which ``glob`` may keep to itself."""
    for channel in _listed(root):
        yield from (file for file in _listed(channel) if file.suffix == ".json")


def _listed(folder: Path) -> list[Path]:
    try:
        return list(folder.iterdir())
    except (FileNotFoundError, NotADirectoryError, PermissionError):
        return []


def _stamp(path: Path) -> tuple[object, ...]:
    try:
        found = path.stat()
    except OSError:
        return (str(path),)
    return (str(path), found.st_ino, found.st_size, found.st_ctime_ns)  # also of a chmod


def _workspaces(config: Config) -> frozenset[str]:
    tables = [table for accounts in config.channels.values() for table in accounts.values()]
    named = [config.daemon.workspace, *(table.get("workspace") for table in tables)]
    return frozenset(path for path in named if isinstance(path, str) and path)


def _copies(files: Sequence[Path], home: Home) -> list[ReplyFile]:
    """All of ``files`` copied, or none. Blocking; raises as ``_copied``."""
    copies: list[ReplyFile] = []
    try:
        for path in files:
            copies.append(_copied(path, home))  # noqa: PERF401 - those made before a failure must be known
    except BridgeError:
        _remove(copies)
        raise
    return copies


def _remove(copies: Sequence[ReplyFile]) -> None:
    for each in copies:
        Path(each.path).unlink(missing_ok=True)


def _copied(path: Path, home: Home) -> ReplyFile:
    """A copy of ``path`` in the outbox. Blocking.

    Raises:
        BridgeError: it cannot be read, or must not leave this machine.
    """
    try:
        source = Path(os.path.realpath(path, strict=True))
        if is_private(source, home, Path.home()):
            raise BridgeError(f"{path} is private: nothing of that kind is sent")
        copied = copy(source, home.outbox)
    except OSError as error:
        raise BridgeError(f"{path}: {error.strerror or 'it cannot be copied'}") from error
    if isinstance(copied, NotCopied):
        raise BridgeError(f"{path}: {copied.text}")
    return ReplyFile(str(copied.path), copied.name, sniff_file(copied.path, "", copied.name), copied.size)


@dataclass(frozen=True, slots=True)
class Wanted:
    """What the files said at one instant: the settings, and the accounts as they want them."""

    config: Config
    plans: list[Plan]
    stamps: Stamps


@dataclass(slots=True)
class Planner:
    """Makes plans of settings; the parts that all accounts share are given once."""

    home: Home
    clock: Clock
    store: Store
    http: Http
    disk: Disk  # that received files are saved on
    meter: Meter
    rng: random.Random = field(default_factory=random.SystemRandom)  # each takes kilobytes
    ahead: Callable[[AccountId, ChannelSettings], Ahead] = lambda _, __: NOBODY  # the daemon's own parts
    profiles: Profiles | None = None  # the agents that there are; None: those of the settings that are read
    _workspaces: frozenset[str] = field(default=frozenset(), init=False)  # that the settings name

    def read(self) -> Wanted:
        """Settings and credentials as they were together: read again when one changes meanwhile. Blocking.

        Raises:
            ConfigError: they cannot be read, or change all the time.
            ExhaustedError: they cannot be read now.
        """
        for _ in range(READS):
            written = _stamp(self.home.config)
            config = load(self.home.config)
            self._workspaces = _workspaces(config)
            before = self.stamps()
            wanted = Wanted(config, self.plans(config), before)
            if written in before and self.stamps() == before:
                return wanted
        raise ConfigError(
            f"{self.home.config} or credentials change while they are read: wait for their writer"
        )

    def plans(self, config: Config) -> list[Plan]:
        """All accounts as ``config`` wants them. Reads credentials: blocking, briefly."""
        channels = registry.channels()
        found = accounts(config, self.home, channels, os.environ, self.profiles)
        self.meter.keep(one.id for one in found)
        shared, daemon, store = config.shared, config.daemon, config.store
        media = (config.media, config.voice)
        used = (config.limits, *media, store.max_waiting, config.web.public_url, daemon.folders)
        for line in unused_credentials(config, self.home, channels):
            log.warning("credentials.unused", reason=line)
        return [
            self._broken(one) if isinstance(one, BrokenAccount) else self._plan(one, shared, used)
            for one in found
        ]

    def stamps(self) -> Stamps:
        """Of the files that plans are made of, and of which workspaces there are. Blocking, briefly.

        Raises:
            ExhaustedError: nothing can be said.
        """
        try:
            files = [self.home.config, *_credentials(self.home.root / "credentials")]
        except OSError as error:
            raise ExhaustedError(f"the credentials cannot be listed right now: {error.strerror}") from error
        there = ((path, os.path.isdir(path)) for path in self._workspaces)
        return frozenset([*map(_stamp, files), *there])

    def _broken(self, account: BrokenAccount) -> Plan:
        first = Snapshot(
            id=account.id,
            channel=account.channel,
            account=account.account,
            state=State.FAILED if account.enabled else State.DISABLED,
            since=self.clock.now(),
            enabled=account.enabled,
            reason=clean("; ".join(account.reasons))[:REASON_CHARACTERS] if account.enabled else "",
            senders=None,
        )
        return Plan(first, account, None)

    def _plan(self, account: AccountSetup, config: Config, used: object) -> Plan:
        settings = account.settings
        first = Snapshot(
            id=account.id,
            channel=account.channel,
            account=account.account,
            state=State.STARTING if settings.enabled else State.DISABLED,
            since=self.clock.now(),
            enabled=settings.enabled,
            tools_configured=RemoteTools(settings.remote_tools.value),
            user_id=settings.owner,
            senders=ours.Senders.LIST
            if isinstance(settings.senders, tuple)
            else ours.Senders(settings.senders),
        )
        return Plan(first, (account, used), self._build(account, config) if settings.enabled else None)

    def _build(self, account: AccountSetup, config: Config) -> Callable[[], Served]:
        setup = Setup(
            name=account.id,
            spec=account.spec,
            settings=account.settings,
            credentials=account.credentials,
            config=config,
            home=self.home,
            workspace=account.workspace,
            http=self.http,
            store=self.store,
            disk=self.disk,
            clock=self.clock,
            rng=self.rng,
            version=VERSION,
            meter_of=self.meter.of,
            ahead_of=self.ahead,
        )
        return lambda: Served(Account(setup), setup)
