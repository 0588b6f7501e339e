"""One account, and a message's way through it: receive → claim → turn → outbox → deliver.

A component: ``run`` is started and restarted by the supervisor, and all that it knows it has from the store.
While it does not run, pushes are told to come back.
"""

from __future__ import annotations

import asyncio
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from functools import partial

from bridge.channel import (
    Answer,
    AnsweredByAsking,
    Channel,
    ConfigError,
    FollowsTurns,
    Identity,
    Inbound,
    Polls,
    Probes,
    Pushed,
    RepliesInResponse,
    Request,
    Sends,
    ServesFiles,
)
from bridge.channel.contract import AnyAnswer
from bridge.channel.text import measure
from bridge.clock import unix_ms
from bridge.ids import ConversationKey
from bridge.relay import asked, outbox, payload
from bridge.relay.ahead import Ahead, Said, first
from bridge.relay.approvals import Approvals
from bridge.relay.changes import Changes
from bridge.relay.chat_commands import Commands
from bridge.relay.claims import Claims
from bridge.relay.contact import (
    Health,
    OnlyTrouble,
    PlatformClock,
    ShownHealth,
    Trouble,
    probe,
    stored_identity,
)
from bridge.relay.conversations import Conversations
from bridge.relay.delivery import Delivery, Terms
from bridge.relay.intake import nothing_apart
from bridge.relay.limits import DAY_MS, Limit, SenderLimits
from bridge.relay.live import Live
from bridge.relay.notices import OwnerNote
from bridge.relay.offers import Offers
from bridge.relay.outbox import Address
from bridge.relay.posting import Posting
from bridge.relay.responses import Responses
from bridge.relay.room import ClaimRoom, Slots
from bridge.relay.session import Authority, Server
from bridge.relay.setup import Setup
from bridge.relay.silence import Expecting, Receiver
from bridge.relay.tasks import Tasks
from bridge.relay.tending import tend
from bridge.relay.texts import Text, language_of, say
from bridge.relay.work import Work
from bridge.retry import STORING, retrying
from bridge.store.contract import Answer as EndClaim
from bridge.store.contract import (
    Bind,
    BindingError,
    MessageState,
    OpenMessage,
    OpenMessages,
    OpenParts,
    OutboxPart,
    PartsOf,
    Recover,
    SenderTurns,
)

RETRY_LATER = Answer(503, b'{"error":"not ready, try again"}', headers={"Retry-After": "5"})
NOT_FOUND = Answer(404, b'{"error":"there is nothing here"}')


@dataclass(slots=True)
class Run:
    """What lives as long as one run of the account."""

    channel: Channel
    delivery: Delivery
    work: Work
    room: ClaimRoom
    tasks: Tasks
    identity: Identity
    pushed: Pushed | None  # the channel, where it is pushed to: asking a Protocol costs more than a claim
    delivers: bool  # it takes parts by itself, unlike one that is asked for them
    conversations: Conversations
    claims: Claims
    responses: Responses | None  # None: a push is answered as soon as it is durable
    new_parts: asyncio.Condition | None  # told of to those who ask; None: nobody does

    def learn(self, identity: Identity) -> None:
        self.identity = identity


class Account:
    """Satisfies the supervisor's Component and the listener's Route."""

    def __init__(self, setup: Setup) -> None:
        self._setup, self._store, self._clock, self._log = setup, setup.store, setup.clock, setup.log
        self._run: Run | None = None
        self._platform = PlatformClock(setup.clock, setup.log)
        self._owner_note = OwnerNote(setup)
        self._approvals = Approvals(setup.policy, setup.settings.language, setup.clock, self._platform)
        expected = setup.settings.expect_every_seconds
        self._expecting = Expecting(setup.clock, expected) if expected else None

    @property
    def name(self) -> str:
        return self._setup.name

    @property
    def body_limit_bytes(self) -> int:
        return self._setup.spec.body_limit_bytes

    # --- the run ----------------------------------------------------------

    async def run(self, health: ShownHealth) -> None:
        """Serve until cancelled, or until an error that somebody has to mend."""
        setup = self._setup
        checkpoint = await self._bind()
        identity = await stored_identity(setup)
        health.known(bot_id=identity.bot_id)
        self._platform.health = health
        contact = self._expecting.over(health) if self._expecting is not None else health
        channel = setup.spec.create(setup.settings, setup.credentials, setup.http, setup.place)
        run: Run | None = None
        try:
            async with asyncio.TaskGroup() as tasks:
                run = self._new_run(channel, Tasks(tasks, self.name), identity, health)
                last = await self._recover(run)
                self._run = run
                tasks.create_task(self._take_up(run, last), name=f"{self.name}/take up")
                self._start(run, tasks, contact, checkpoint)
                await self._until_ended(run)
        finally:
            if run is not None:
                await run.conversations.close()

    async def _until_ended(self, run: Run) -> None:
        """Tend it for as long as it runs."""
        try:
            await tend(self._setup, run.conversations.by_key, run.conversations.retire)
        finally:
            self._run = None  # pushes are told to come back before anything is taken down
            if run.responses is not None:
                run.responses.close()

    def _start(self, run: Run, tasks: asyncio.TaskGroup, health: Health, checkpoint: str) -> None:
        channel = run.channel
        if isinstance(channel, Sends | RepliesInResponse):
            contact = OnlyTrouble(health) if isinstance(channel, Polls) else health
            tasks.create_task(run.delivery.run(channel, contact), name=f"{self.name}/deliver")
        if not isinstance(channel, Sends):
            expiring = asked.expire(self._setup, run.work.release, run.delivery.drop_reply)
            tasks.create_task(expiring, name=f"{self.name}/expire")
        if isinstance(channel, Polls):
            tasks.create_task(self._receive(run, channel, health, checkpoint), name=f"{self.name}/receive")
        if isinstance(channel, Probes):
            probing = probe(channel, self._setup, health, self._platform, run.learn)
            tasks.create_task(probing, name=f"{self.name}/probe")
        elif isinstance(channel, Pushed):
            health.contact()  # its route is served, and there is nothing else to prove
        if self._expecting is not None:
            tasks.create_task(self._expecting.watch(), name=f"{self.name}/expect")

    async def _bind(self) -> str:
        try:
            return await self._store.do(Bind(self._setup.name, self._setup.fingerprint))
        except BindingError as error:
            raise ConfigError(
                f"{self.name}: these credentials belong to another bot than this account's stored messages; "
                "use another account name, or the credentials from before"
            ) from error

    def _new_run(self, channel: Channel, tasks: Tasks, identity: Identity, health: ShownHealth) -> Run:
        setup, limits = self._setup, self._setup.config.limits
        known_seconds = setup.spec.idempotent_seconds
        if isinstance(channel, RepliesInResponse):
            known_seconds = 0.0  # a response has no client id: the platform takes a send for another part
        spec = replace(setup.spec, idempotent_seconds=known_seconds)
        terms = Terms(spec, setup.settings.unknown_outcome, limits.deliver_seconds)
        offers = Offers()
        delivery = Delivery(
            terms, self._store, self._clock, setup.rng, self._log, self._release, offers, setup.meter,
            self._approvals,
        )  # fmt: skip
        asks = setup.settings.approvals == "ask"
        work = Work(
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
            store=self._store,
            clock=self._clock,
            slots=Slots(limits.turns, limits.owner_turns),
            deliver=self._deliver,
            release=self._release,
            platform=self._platform,
            live=Live() if isinstance(channel, FollowsTurns) else None,
            log=self._log,
            approvals=self._approvals if asks else None,
            approval_seconds=setup.settings.approval_seconds,
            meter=setup.meter,
        )
        own = setup.settings
        senders = SenderLimits(own.messages_per_minute, own.turns_per_day, own.owner, self._clock)
        room = ClaimRoom(limits, self._clock, senders)
        conversations = Conversations(work, room, tasks)
        changes = Changes(work, conversations, tasks, delivery.drop)
        responses = self._responses(channel, offers, delivery, conversations)
        apart = responses.apart if responses is not None else nothing_apart
        note = self._owner_note.of
        commands = Commands(work, conversations, room, lambda: health.snapshot)
        answered = (self._answer_for_daemon, self._approvals.answer, commands.answer)
        ahead = Ahead(setup.ahead.for_anybody, answered)
        claims = Claims(work, room, conversations, changes, tasks, self.deliver, note, apart, ahead)
        pushed = channel if isinstance(channel, Pushed) else None
        delivers = isinstance(channel, Sends | RepliesInResponse)
        return Run(
            channel,
            delivery,
            work,
            room,
            tasks,
            identity,
            pushed,
            delivers,
            conversations,
            claims,
            responses,
            asyncio.Condition() if isinstance(channel, AnsweredByAsking) else None,
        )

    def _answer_for_daemon(self, message: Inbound) -> Said | None:
        """What the daemon's own parts say to a message; a plain word never answers two questions."""
        said = first(self._setup.ahead.for_answered, message)
        if said is not None and self._approvals.waits(payload.conversation_of(message)):
            return Said(say(Text.QUESTION_WHICH, language_of(message.text, self._setup.settings.language)))
        return said

    def _responses(
        self, channel: Channel, offers: Offers, delivery: Delivery, conversations: Conversations
    ) -> Responses | None:
        """Where replies go out in responses: what decides which are held, and for how long."""
        if not (isinstance(channel, Pushed) and isinstance(channel, RepliesInResponse)):
            return None

        def awaited(message: Inbound) -> bool:
            return delivery.waits(message.to) or conversations.is_busy(payload.conversation_of(message))

        setup, language = self._setup, self._setup.settings.language
        return Responses(
            channel, setup.name, self._store, self._clock, self._log, language, offers, awaited, delivery.stir
        )

    async def _recover(self, run: Run) -> int:
        """Take up what the last run left: open parts go on, open messages are run or reported.

        Returns the last part's id: what is posted until the run is known is still to be taken up.
        """
        await self._store.do(Recover(self._setup.name))
        last = await self._take_up(run, 0)
        if self._setup.settings.turns_per_day:
            now_ms = unix_ms(self._clock.now())
            since = SenderTurns(self._setup.name, now_ms - DAY_MS, Limit.DAY)
            run.room.senders.remember(await self._store.get(since), now_ms)
        wanted = await self._still_wanted()
        self._approvals.keep({one.conversation for one, _ in wanted if one.state is MessageState.RUNNING})
        for one, inbound in wanted:  # no await here: what is started needs the run known
            run.room.take(one.conversation)
            run.conversations.enqueue(one.conversation, run.work.taken_up(one, inbound))
        return last

    async def _take_up(self, run: Run, after: int) -> int:
        """Deliver the open parts with ids over ``after``, once. Returns the last one's id."""
        while run.delivers and (parts := await self._store.get(OpenParts(self._setup.name, after))):
            run.delivery.add(parts)
            after = parts[-1].part_id
        return after

    async def _still_wanted(self) -> list[tuple[OpenMessage, Inbound]]:
        """The open messages, but for those that wait and whose senders are not answered any more."""
        wanted = []
        for one in await self._store.get(OpenMessages(self._setup.name)):
            inbound = payload.decode(one.payload)
            if one.state is MessageState.CLAIMED and not self._setup.policy.answers(inbound.sender):
                now_ms = unix_ms(self._clock.now())
                reason = "sender_not_answered"
                name, revision = self._setup.name, one.revision
                await self._store.do(EndClaim(name, one.message_id, None, now_ms, reason, revision))
                self._log.info("intake.ignored", reason=reason)
            else:
                wanted.append((one, inbound))
        return wanted

    # --- receive and claim ----------------------------------------------------------

    async def _receive(self, run: Run, channel: Polls, health: Health, checkpoint: str) -> None:
        clock, rng = self._clock, self._setup.rng
        trouble = Trouble(health, self._log, "receive.failed", "receiving fails; it is tried again")
        receiver = Receiver(channel, self._setup, trouble, health)
        while True:
            batch = await receiver.next(checkpoint)
            if batch.items or batch.checkpoint not in (None, checkpoint):  # else there is nothing to store
                # kept until it is durable: asking for the next one acknowledges it
                now_ms = unix_ms(clock.now())
                claim = partial(run.claims.take, batch.items, now_ms, batch.checkpoint)
                await retrying(claim, STORING, clock, rng, trouble)
            trouble.over()
            if batch.items and self._expecting is not None:
                self._expecting.heard(clock.monotonic())
            health.contact()
            checkpoint = batch.checkpoint if batch.checkpoint is not None else checkpoint

    async def handle(self, request: Request) -> AnyAnswer:
        """Serve one HTTP request to the account's route. Raises StoreError when nothing could be stored."""
        run = self._run
        if run is None:
            return RETRY_LATER
        channel = run.channel
        if not request.path and run.pushed is not None:
            return await self._pushed(run, run.pushed, request)
        if request.path == "/replies" and isinstance(channel, AnsweredByAsking) and run.new_parts:
            return await asked.answer(channel, request, self._setup, run.new_parts, self._release)
        if request.path == "/live" and isinstance(channel, FollowsTurns) and run.work.live is not None:
            return await run.work.live.answer(channel, request)
        if request.path.startswith("/files/") and isinstance(channel, ServesFiles):
            return await asked.serve_file(channel, request, self._setup.home.outbox)
        return NOT_FOUND

    async def _pushed(self, run: Run, channel: Pushed, request: Request) -> AnyAnswer:
        if self._store.backlog() > self._setup.config.store.max_waiting:
            return RETRY_LATER
        began = self._clock.monotonic()
        reading = channel.read(request, run.identity)
        if isinstance(reading, Answer):
            return reading
        self._platform.learn(reading.platform_time)
        if self._expecting is not None:
            self._expecting.heard(began)
        results = await run.claims.take(reading.items, unix_ms(request.received_at))
        if run.responses is not None:
            return await run.responses.answer(reading, results, began)
        return channel.answer(reading, results)

    # --- out ----------------------------------------------------------

    async def post(self, to: str, text: str, attached: Sequence[outbox.ReplyFile]) -> int:
        """Put an unprompted message into the outbox, as an operator does; returns its number of parts.

        Raises:
            BridgeError: it was not stored in time, and is never sent.
        """
        setup = self._setup
        address = Address(ConversationKey(""), to, "", language_of(text, setup.settings.language))
        reply = outbox.compose(outbox.Content(text, tuple(attached)), address, setup.spec, setup.caps)
        posting = Posting(setup.name, reply, self._store, self._clock, self._deliver)
        if self._run is None or self._run.tasks.spawn(posting.run(), "post") is None:
            await posting.run()
        return await posting.stored()

    async def deliver(self, reply_id: str) -> None:
        """Deliver a reply that is in the outbox.

        Raises:
            StoreError: it cannot be read now. The next run delivers it.
        """
        self._deliver(await self._store.get(PartsOf(self._setup.name, reply_id)))

    def takes(self, text: str) -> bool:
        """Whether ``text`` is one message here."""
        limit = outbox.part_limit(self._setup.spec, self._setup.caps.part_bytes)
        return measure(text, limit.unit) <= limit.size

    def drop_reply(self, reply_id: str) -> None:
        """The store has ended this reply: it is not sent any more."""
        if self._run is not None:
            self._run.delivery.drop_reply(reply_id)

    def _deliver(self, parts: Sequence[OutboxPart]) -> None:
        run = self._run
        if run is None or not parts:
            return  # the next run reads them from the store
        if run.delivers:
            run.delivery.add(parts)
        elif run.new_parts is not None:
            run.tasks.spawn(asked.wake(run.new_parts), "wake")

    def _release(self, copies: Iterable[str]) -> None:
        """Remove outbox copies that no part needs any more."""
        run = self._run
        if run is not None and (gone := list(copies)):
            run.tasks.spawn(asked.remove_copies(gone, self._setup.home.outbox), "remove")
