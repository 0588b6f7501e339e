"""What the conversations of an account share, and a message as they work on it."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass, field, replace
from datetime import datetime
from pathlib import Path
from typing import Literal

from bridge.channel import Channel, ChannelSpec, Inbound, WhenBusy
from bridge.clock import Clock, unix_ms
from bridge.config import LimitsTable
from bridge.ids import AccountId, ConversationKey, MessageId, SessionId
from bridge.logs import Logger
from bridge.meter import AccountMeter
from bridge.relay import received
from bridge.relay.approvals import Approvals
from bridge.relay.contact import PlatformClock
from bridge.relay.folders import Folders
from bridge.relay.intake import Policy
from bridge.relay.live import Live
from bridge.relay.outbox import Caps
from bridge.relay.progress import Progress
from bridge.relay.room import Slots
from bridge.relay.session import Authority, Server
from bridge.relay.signs import Signs
from bridge.store.contract import MessageState, OpenMessage, OutboxPart, Store, Used
from bridge.values import value

NO_SESSION = SessionId("")


@dataclass(frozen=True, slots=True)
class Work:
    """What all conversations of an account share."""

    account: AccountId
    channel: Channel
    spec: ChannelSpec
    policy: Policy
    authority: Authority  # as for the owner with tools; others get it without
    language: Literal["auto", "en", "zh"]
    limits: LimitsTable
    caps: Caps
    media: Callable[[ConversationKey], received.Terms]
    outbox_folder: Path
    server: Server
    store: Store
    clock: Clock
    slots: Slots
    deliver: Callable[[list[OutboxPart]], None]
    release: Callable[[Iterable[str]], None]
    platform: PlatformClock
    live: Live | None  # None: nobody can follow turns on this channel
    log: Logger
    approvals: Approvals | None = None  # None: the owner is not asked
    approval_seconds: float = 600.0
    when_busy: WhenBusy = WhenBusy.QUEUE
    meter: AccountMeter = field(default_factory=AccountMeter)
    agent: str = ""  # of the owner with tools; "": the server's default
    guest_agent: str = ""  # of everybody else
    default_agent: str = ""  # the server's, by its name
    spent: Callable[[ConversationKey, Used], None] = lambda _, __: None  # a turn's usage was stored
    signs: Signs | None = None
    progress: Progress | None = None  # None: nobody is told how a long turn goes
    folders: Folders = field(default_factory=lambda: Folders(Path("/nonexistent")))  # for the owner

    def authority_of(self, tools: bool) -> Authority:
        """What a session has to have: one without tools has nothing to ask for."""
        agent = self.agent if tools else self.guest_agent
        return replace(self.authority, tools=tools, asks=tools and self.authority.asks, agent=agent)

    def claimed(
        self, message_id: MessageId, inbound: Inbound, received_ms: int, now_ms: int, revision: int = 0
    ) -> Message:
        """A message that nobody has worked on yet. One that is too old by now is only reported."""
        missed = self.age_seconds(inbound.sent_at, received_ms, now_ms) > self.limits.stale_seconds
        return Message(message_id, inbound, MessageState.CLAIMED, NO_SESSION, received_ms, missed, revision)

    def taken_up(self, stored: OpenMessage, inbound: Inbound) -> Message:
        """A stored message as the last run left it."""
        if stored.state is MessageState.CLAIMED:
            now_ms = unix_ms(self.clock.now())
            return self.claimed(stored.message_id, inbound, stored.received_ms, now_ms, stored.revision)
        return Message(stored.message_id, inbound, stored.state, stored.session_id, stored.received_ms)

    def age_seconds(self, sent_at: datetime | None, received_ms: int, now_ms: int) -> float:
        """How old a message is, by the platform's clock where it told the time."""
        if sent_at is None:
            return (now_ms - received_ms) / 1000
        return now_ms / 1000 + self.platform.ahead_seconds - sent_at.timestamp()


@value
class Message:
    """A claimed or running message. ``session_id`` is the one it runs on, ``revision`` the edit it is.

    ``missed``: it was too old to be acted on when we learned of it, and is only reported.
    """

    message_id: MessageId
    inbound: Inbound
    state: MessageState
    session_id: SessionId
    received_ms: int
    missed: bool = False
    revision: int = 0
