"""One account, and a message's way through it: receive → claim → turn → outbox → deliver.

A component: ``run`` is started and restarted by the supervisor, and all that it knows it has from the store.
While it does not run, pushes are told to come back.
"""

from __future__ import annotations

import asyncio
import os.path
from collections.abc import Sequence
from contextlib import suppress
from datetime import timedelta
from functools import partial

from bridge.channel import (
    Answer,
    AnsweredByAsking,
    Batch,
    ConfigError,
    FollowsTurns,
    Inbound,
    Polls,
    Probes,
    Pushed,
    Request,
    Sends,
    ServesFiles,
)
from bridge.channel.contract import AnyAnswer
from bridge.channel.text import measure
from bridge.clock import unix_ms
from bridge.ids import ConversationKey
from bridge.relay import asked, outbox, payload
from bridge.relay.contact import Health, ShownHealth, Trouble, probe, stored_identity
from bridge.relay.outbox import Address
from bridge.relay.posting import Posting
from bridge.relay.run import Lasting, Run
from bridge.relay.setup import Setup
from bridge.relay.silence import Expecting, Receiver
from bridge.relay.tasks import Tasks
from bridge.relay.texts import language_of
from bridge.retry import STORING, retrying
from bridge.store.contract import Answer as EndClaim
from bridge.store.contract import (
    Bind,
    BindingError,
    Claim,
    MessageState,
    OpenMessage,
    OpenMessages,
    OpenParts,
    OutboxPart,
    PartsOf,
    Recover,
)

RETRY_LATER = Answer(503, b'{"error":"not ready, try again"}', headers={"Retry-After": "5"})
NOT_FOUND = Answer(404, b'{"error":"there is nothing here"}')


class Account:
    """Satisfies the supervisor's Component and the listener's Route."""

    def __init__(self, setup: Setup) -> None:
        self._setup, self._store, self._clock = setup, setup.store, setup.clock
        self._run: Run | None = None
        self._lasting = Lasting(setup)
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
        self._lasting.platform.health = health
        contact = self._expecting.over(health) if self._expecting is not None else health
        channel = setup.spec.create(setup.settings, setup.credentials, setup.http, setup.place)
        tasks = asyncio.TaskGroup()
        run = Run(setup, self._lasting, channel, Tasks(tasks, self.name), identity, health, contact)
        try:
            async with tasks:
                last = await self._recover(run)
                self._run = run
                await self._serve(run, contact, checkpoint, last)
        finally:
            await run.close()

    async def _serve(self, run: Run, health: Health, checkpoint: str, last: int) -> None:
        """Take part in the channel for as long as the run lasts."""
        try:
            await self._take_up(run, last)
            self._start(run, health)
            if isinstance(run.channel, Polls):
                await self._receive(run, run.channel, health, checkpoint)
            await asyncio.get_running_loop().create_future()
        finally:
            self._run = None  # pushes are told to come back before anything is taken down
            run.leave()

    def _start(self, run: Run, health: Health) -> None:
        """What goes on beside receiving."""
        channel, spawn = run.channel, run.tasks.spawn
        if not isinstance(channel, Sends):
            spawn(asked.expire(self._setup, run.release, run.drop_reply), "expire")
        if isinstance(channel, Probes):
            spawn(probe(channel, self._setup, health, self._lasting.platform, run.learn), "probe")
        elif isinstance(channel, Pushed):
            health.contact()  # its route is served, and there is nothing else to prove
        if self._expecting is not None:
            spawn(self._expecting.watch(), "expect")

    async def _bind(self) -> str:
        try:
            return await self._store.do(Bind(self._setup.name, self._setup.fingerprint))
        except BindingError as error:
            raise ConfigError(
                f"{self.name}: these credentials belong to another bot than this account's stored messages; "
                "use another account name, or the credentials from before"
            ) from error

    async def _recover(self, run: Run) -> int:
        """Take up what the last run left: open parts go on, open messages are run or reported.

        Returns the last part's id: what is posted until the run is known is still to be taken up.
        """
        await self._store.do(Recover(self._setup.name))
        last = await self._take_up(run, 0)
        await run.remember()
        await run.end_signs()
        wanted = await self._still_wanted()
        if self._setup.settings.approvals == "ask":
            running = {one.conversation for one, _ in wanted if one.state is MessageState.RUNNING}
            self._lasting.approvals.keep(running)
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
                self._setup.log.info("intake.ignored", reason=reason)
            else:
                wanted.append((one, inbound))
        return wanted

    # --- receive and claim ----------------------------------------------------------

    async def _receive(self, run: Run, channel: Polls, health: Health, checkpoint: str) -> None:
        clock, rng = self._clock, self._setup.rng
        trouble = Trouble(health, self._setup, "receive.failed", "receiving fails; it is tried again")
        receiver = Receiver(channel, self._setup, trouble, health)
        while True:
            batch = await receiver.next(checkpoint)
            if batch.items or batch.checkpoint not in (None, checkpoint):  # else there is nothing to store
                # kept until it is durable: asking for the next one acknowledges it
                await retrying(partial(self._claim, run, batch), STORING, clock, rng, trouble)
            trouble.over()
            if batch.items and self._expecting is not None:
                self._expecting.heard(clock.monotonic())
            health.contact()
            checkpoint = batch.checkpoint if batch.checkpoint is not None else checkpoint

    async def _claim(self, run: Run, batch: Batch) -> None:
        now_ms = unix_ms(self._clock.now())
        if batch.items:
            await run.claims.take(batch.items, now_ms, batch.checkpoint)
        else:
            await self._store.do(Claim(self._setup.name, (), now_ms, batch.checkpoint))

    async def handle(self, request: Request) -> AnyAnswer:
        """Serve one HTTP request to the account's route. Raises StoreError when nothing could be stored."""
        run = self._run
        if run is None:
            return RETRY_LATER
        channel = run.channel
        if not request.path and run.pushed is not None:
            return await self._pushed(run, run.pushed, request)
        if request.path == "/replies" and isinstance(channel, AnsweredByAsking):
            seen = self._lasting.approvals.collected
            return await asked.answer(channel, request, self._setup, run.new_parts, run.release, seen)
        if request.path == "/live" and isinstance(channel, FollowsTurns) and run.live is not None:
            shown = await run.live.answer(channel, request)
            return shown if self._run is run else RETRY_LATER  # the turn goes on in the next run
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
        self._lasting.platform.learn(reading.platform_time)
        if self._expecting is not None:
            self._expecting.heard(began)
        results = await run.claims.take(reading.items, unix_ms(request.received_at))
        if run.responses is not None:
            return await run.responses.answer(reading, results, began)
        return channel.answer(reading, results)

    async def sweep(self) -> None:
        """Remove received files that are old, or over the quota. Most accounts have none."""
        setup = self._setup
        if await asyncio.to_thread(os.path.isdir, setup.inbox):
            keep = timedelta(days=setup.settings.media.keep_days)
            with suppress(OSError):
                await setup.shelf.sweep(keep, self._clock.now())

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
            self._run.drop_reply(reply_id)

    def _deliver(self, parts: Sequence[OutboxPart]) -> None:
        if self._run is not None:  # else the next run reads them from the store
            self._run.add(parts)
