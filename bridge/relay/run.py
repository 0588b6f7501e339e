"""What lives as long as one run of an account: each part is made when the first message or reply needs it.

Of a thousand accounts most wait for messages that do not come: such a run is a channel, and not much else.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import replace
from functools import cached_property

from bridge.channel import (
    AnsweredByAsking,
    Channel,
    FollowsTurns,
    Identity,
    Inbound,
    Polls,
    Pushed,
    RepliesInResponse,
    Sends,
)
from bridge.clock import unix_ms
from bridge.relay import asked, payload
from bridge.relay.ahead import Ahead, Said, first
from bridge.relay.approvals import Approvals
from bridge.relay.changes import Changes
from bridge.relay.chat_commands import Commands
from bridge.relay.claims import Claims
from bridge.relay.contact import Health, OnlyTrouble, PlatformClock, ShownHealth
from bridge.relay.conversations import Conversations
from bridge.relay.delivery import Delivery, Terms
from bridge.relay.folders import Folders
from bridge.relay.intake import nothing_apart
from bridge.relay.ledger import Ledger
from bridge.relay.limits import SenderLimits
from bridge.relay.live import Live
from bridge.relay.notices import OwnerNote
from bridge.relay.offers import Offers
from bridge.relay.progress import Progress, take_up
from bridge.relay.responses import Responses
from bridge.relay.room import ClaimRoom, Slots
from bridge.relay.session import Authority, Server
from bridge.relay.setup import Setup
from bridge.relay.signs import Signs
from bridge.relay.spending import Spending, caps_of, limits_a_day
from bridge.relay.tasks import Tasks
from bridge.relay.tending import tend
from bridge.relay.texts import Language, Text, language_of, say
from bridge.relay.work import Work
from bridge.store.contract import OutboxPart, PartsOf


class Lasting:
    """What outlives the runs of an account."""

    def __init__(self, setup: Setup) -> None:
        self._setup = setup
        self.platform = PlatformClock(setup.clock, setup)

    @cached_property
    def approvals(self) -> Approvals:
        setup = self._setup
        return Approvals(setup.policy, setup.settings.language, setup.clock, self.platform)

    @cached_property
    def owner_note(self) -> OwnerNote:
        return OwnerNote(self._setup)


class Run:
    """``contact`` is where sends tell how the platform behaves."""

    def __init__(
        self,
        setup: Setup,
        lasting: Lasting,
        channel: Channel,
        tasks: Tasks,
        identity: Identity,
        health: ShownHealth,
        contact: Health,
    ) -> None:
        self._setup, self._lasting, self._health, self._contact = setup, lasting, health, contact
        self.channel, self.tasks, self.identity = channel, tasks, identity
        # asked once: to ask a Protocol costs more than a claim
        self.pushed = channel if isinstance(channel, Pushed) else None
        self.delivers = isinstance(channel, Sends | RepliesInResponse)  # unlike one that is asked for parts

    def learn(self, identity: Identity) -> None:
        self.identity = identity

    def leave(self) -> None:
        """It ends, and with it every request that is held."""
        for part in ("responses", "new_parts", "live"):
            if made := vars(self).get(part):
                made.close()

    async def close(self) -> None:
        """Hang up everywhere."""
        if made := vars(self).get("conversations"):
            await made.close()

    # --- in ----------------------------------------------------------------

    @cached_property
    def claims(self) -> Claims:
        work, room, conversations = self.work, self.room, self.conversations
        changes = Changes(work, conversations, self.tasks, self.delivery.drop)
        apart = self.responses.apart if self.responses is not None else nothing_apart
        commands = Commands(work, conversations, room, lambda: self._health.snapshot)
        answered = (self._answer_for_daemon, self._lasting.approvals.answer, commands.answer)
        ahead = Ahead(self._setup.ahead.for_anybody, answered)
        note = self._lasting.owner_note.of
        return Claims(work, room, conversations, changes, self.tasks, self.deliver, note, apart, ahead)

    @cached_property
    def room(self) -> ClaimRoom:
        own, clock = self._setup.settings, self._setup.clock
        spending = Spending(*caps_of(own), clock)
        senders = SenderLimits(own.messages_per_minute, own.turns_per_day, own.owner, clock, spending)
        return ClaimRoom(self._setup.config.limits, clock, senders)

    async def remember(self) -> None:
        """Take up what senders have used of their day."""
        setup = self._setup
        if limits_a_day(setup.settings):  # else the room is made when a message comes
            await self.room.senders.remember(setup.name, setup.store, unix_ms(setup.clock.now()))

    @cached_property
    def conversations(self) -> Conversations:
        made = Conversations(self.work, self.room, self.tasks)
        limits, clock = self._setup.config.limits, self._setup.clock
        self.tasks.spawn(tend(made.by_key, made.retire, limits.idle_seconds, clock), "tend")
        return made

    @cached_property
    def signs(self) -> Signs:
        setup = self._setup
        return Signs(setup.name, self.channel, setup.store, setup.clock, setup.log, self.tasks)

    @property
    def _progress(self) -> Progress | None:
        own = self._setup.settings
        return Progress(self.signs, own.progress_seconds) if own.progress_message == "edit" else None

    async def end_signs(self) -> None:
        """Have what the run before has left standing ended; raises StoreError."""
        await self.signs.take_up()
        language = self._setup.settings.language
        await take_up(self.signs, Language.EN if language == "auto" else Language(language))

    @cached_property
    def live(self) -> Live | None:
        """The turns as those see them who follow one, where the channel lets them."""
        return Live() if isinstance(self.channel, FollowsTurns) else None

    @cached_property
    def work(self) -> Work:
        setup, limits, channel = self._setup, self._setup.config.limits, self.channel
        asks = setup.settings.approvals == "ask"
        return Work(
            account=setup.name,
            channel=channel,
            spec=setup.spec,
            policy=setup.policy,
            authority=Authority(False, setup.spec.title(setup.settings), str(setup.workspace), asks),
            language=setup.settings.language,
            when_busy=setup.settings.when_busy,
            limits=limits,
            caps=setup.caps,
            media=setup.media,
            outbox_folder=setup.home.outbox,
            server=Server(setup.home.socket, setup.version),
            store=setup.store,
            clock=setup.clock,
            slots=Slots(limits.turns, limits.owner_turns),
            deliver=self.add,
            release=self.release,
            platform=self._lasting.platform,
            live=self.live,
            log=setup.log,
            approvals=self._lasting.approvals if asks else None,
            approval_seconds=setup.settings.approval_seconds,
            meter=setup.meter,
            agent=setup.settings.agent,
            guest_agent=setup.settings.guest_agent or setup.settings.agent,
            signs=self.signs,
            progress=self._progress,
            default_agent=setup.config.daemon.agent,
            spent=Ledger(setup, self.room.senders, self.tasks, self.deliver).spent,
            folders=Folders(setup.workspace, setup.config.daemon.folders, setup.home.root),
        )

    def _answer_for_daemon(self, message: Inbound) -> Said | None:
        """What the daemon's own parts say to a message; a plain word never answers two questions."""
        said = first(self._setup.ahead.for_answered, message)
        if said is not None and self._lasting.approvals.waits(payload.conversation_of(message)):
            return Said(say(Text.QUESTION_WHICH, language_of(message.text, self._setup.settings.language)))
        return said

    # --- out ---------------------------------------------------------------

    @cached_property
    def delivery(self) -> Delivery:
        """The lanes; served from now on, where the channel takes parts by itself."""
        setup, channel = self._setup, self.channel
        known_seconds = setup.spec.idempotent_seconds
        if isinstance(channel, RepliesInResponse):
            known_seconds = 0.0  # a response has no client id: the platform takes a send for another part
        spec = replace(setup.spec, idempotent_seconds=known_seconds)
        terms = Terms(spec, setup.settings.unknown_outcome, setup.config.limits.deliver_seconds)
        made = Delivery(
            terms, setup.store, setup.clock, setup.rng, setup.log, self.release, self._offers, setup.meter,
            self._lasting.approvals,
        )  # fmt: skip
        if isinstance(channel, Sends | RepliesInResponse):
            contact = OnlyTrouble(self._contact) if isinstance(channel, Polls) else self._contact
            self.tasks.spawn(made.run(channel, contact), "deliver")
        return made

    @cached_property
    def _offers(self) -> Offers:
        return Offers()

    @cached_property
    def responses(self) -> Responses | None:
        """Where replies go out in responses: what decides which are held, and for how long."""
        channel = self.channel
        if not (isinstance(channel, Pushed) and isinstance(channel, RepliesInResponse)):
            return None  # a push is answered as soon as it is durable
        delivery, conversations = self.delivery, self.conversations

        def awaited(message: Inbound) -> bool:
            return delivery.waits(message.to) or conversations.is_busy(payload.conversation_of(message))

        setup = self._setup
        return Responses(
            channel, setup.name, setup.store, setup.clock, setup.log, setup.settings.language, self._offers,
            awaited, delivery.stir,
        )  # fmt: skip

    @cached_property
    def new_parts(self) -> asked.NewParts:
        return asked.NewParts()

    async def deliver(self, reply_id: str) -> None:
        """Deliver a reply that is in the outbox.

        Raises:
            StoreError: it cannot be read now. The next run delivers it.
        """
        self.add(await self._setup.store.get(PartsOf(self._setup.name, reply_id)))

    def add(self, parts: Sequence[OutboxPart]) -> None:
        """Deliver parts that are in the outbox, or tell those who ask for them."""
        if not parts:
            return
        if self.delivers:
            self.delivery.add(parts)
        elif isinstance(self.channel, AnsweredByAsking):
            self.new_parts.tell()

    def drop_reply(self, reply_id: str) -> None:
        """The store has ended this reply: it is not sent any more."""
        if made := vars(self).get("delivery"):
            made.drop_reply(reply_id)

    def release(self, copies: Iterable[str]) -> None:
        """Remove outbox copies that no part needs any more."""
        if gone := list(copies):
            self.tasks.spawn(asked.remove_copies(gone, self._setup.home.outbox), "remove")
