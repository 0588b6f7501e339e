"""Delivery against the real store, without threads, and a channel that does what a test says."""

import asyncio
from collections.abc import AsyncIterator, Iterable
from contextlib import asynccontextmanager
from dataclasses import dataclass, field, replace
from pathlib import Path
from random import Random
from typing import Any

import pytest

from bridge.channel import (
    ChannelCredentials,
    ChannelSettings,
    ChannelSpec,
    CredentialsError,
    Delivered,
    Limit,
    OutboundFile,
    OutboundPart,
    OutcomeUnknownError,
    Reading,
    Refused,
    SendOutcome,
    UnknownOutcome,
    UnreachableError,
    Withdrawn,
)
from bridge.channel.testing.clock import FakeClock, settle, until
from bridge.clock import unix_ms
from bridge.ids import AccountId, ConversationKey, MessageId
from bridge.logs import get_logger
from bridge.meter import AccountMeter, Try
from bridge.relay import outbox
from bridge.relay.delivery import Delivery, Terms
from bridge.relay.offers import Offer, Offers
from bridge.relay.outbox import Address, Caps, Content, ReplyFile
from bridge.relay.texts import Language, Text, say
from bridge.store.contract import (
    Collect,
    CountsOf,
    DeadLetters,
    HeldTexts,
    Hold,
    OpenParts,
    OutboxPart,
    Post,
    Sending,
    Store,
)
from bridge.store.sqlite import open_store
from bridge.store.workers import InlineWorker
from tests.relay.responding import RespondingChannel, SilentChannel

ACCOUNT = AccountId("test:a")
SPEC = ChannelSpec(
    name="test", title=lambda _: "Test", settings=ChannelSettings, credentials=ChannelCredentials,
    create=lambda settings, credentials, http, place: object(), identity=lambda settings, credentials: (),
    text_limit=Limit(100), idempotent_seconds=3600, render=str,
)  # fmt: skip
DELIVERED = Delivered("p1")


class FakeChannel:
    """Takes what it is sent; ``script`` holds what happens to the next ones, by recipient."""

    def __init__(self) -> None:
        self.sent: list[OutboundPart | OutboundFile] = []
        self.script: dict[str, list[SendOutcome | Exception]] = {}
        self.stalled: set[str] = set()
        self.release: asyncio.Future[None] = asyncio.get_running_loop().create_future()

    async def send(self, part: OutboundPart) -> SendOutcome:
        return await self._take(part)

    async def send_file(self, part: OutboundFile) -> SendOutcome:
        return await self._take(part)

    async def _take(self, part: OutboundPart | OutboundFile) -> SendOutcome:
        self.sent.append(part)
        if part.to in self.stalled:
            await self.release
        script = self.script.get(part.to) or [DELIVERED]
        outcome = script.pop(0)
        if isinstance(outcome, Exception):
            raise outcome
        return outcome

    def texts(self, to: str = "") -> list[str]:
        return [one.text for one in self.sent if isinstance(one, OutboundPart) and to in ("", one.to)]


class TextsOnly:
    async def send(self, part: OutboundPart) -> SendOutcome:
        return DELIVERED


@dataclass
class FakeContact:
    told: list[str] = field(default_factory=list)

    def contact(self) -> None:
        self.told.append("contact")

    def lost(self, reason: str) -> None:
        self.told.append(reason)


@dataclass
class Desk:
    """An account's delivery, running."""

    store: Store
    clock: FakeClock
    channel: FakeChannel
    contact: FakeContact
    delivery: Delivery
    released: list[str]

    async def post(
        self,
        to: str,
        text: str,
        files: Iterable[ReplyFile] = (),
        *,
        conversation: str = "c",
        transient: bool = False,
        message: str = "",
    ) -> None:
        address = Address(ConversationKey(conversation), to, "", Language.EN)
        if transient:
            reply = outbox.notice(text, address, transient=True)
        else:
            reply = outbox.compose(Content(text, tuple(files)), address, SPEC, Caps(65_536, 16_384))
        await self.store.do(Post(ACCOUNT, reply, unix_ms(self.clock.now())))
        known = {part.part_id for part in self.seen}
        stored = await self.store.get(OpenParts(ACCOUNT))
        new = [replace(part, message_id=MessageId(message)) for part in stored if part.part_id not in known]
        self.seen += new
        self.delivery.add(new)
        await settle()

    def __post_init__(self) -> None:
        self.seen: list[OutboxPart] = []


@asynccontextmanager
async def desk(
    tmp_path: Path, *, channel: Any = None, spec: ChannelSpec = SPEC, clock: FakeClock | None = None,
    unknown: UnknownOutcome = UnknownOutcome.RESEND, at_once: int = 64, offers: Offers | None = None,
    meter: AccountMeter | None = None,
) -> AsyncIterator[Desk]:  # fmt: skip
    clock = clock or FakeClock()
    async with open_store(tmp_path / "state" / "test.db", workers=InlineWorker) as store:
        own = FakeChannel() if channel is None else channel
        released: list[str] = []
        terms = Terms(spec, unknown, 86_400, at_once)
        delivery = Delivery(
            terms, store, clock, Random(7), get_logger("test"), released.extend, offers, meter
        )
        contact = FakeContact()
        async with asyncio.TaskGroup() as tasks:
            running = tasks.create_task(delivery.run(own, contact))
            yield Desk(store, clock, own, contact, delivery, released)
            running.cancel()


async def counts(here: Desk) -> tuple[int, int, int]:
    """Open parts, dead letters, held texts."""
    counted = await here.store.get(CountsOf(ACCOUNT))
    return counted.open_parts, counted.dead, counted.held


async def test_parts_of_a_recipient_go_out_in_order_and_are_settled(tmp_path: Path) -> None:
    async with desk(tmp_path) as here:
        await here.post("a", "one " * 60)
        await here.post("a", "two")
        assert len(here.channel.texts()) == 4
        assert here.channel.texts()[-1] == "two"
        assert here.channel.sent[0].created_at == here.clock.now()
        assert await counts(here) == (0, 0, 0)
        assert set(here.contact.told) == {"contact"}


async def test_a_stuck_recipient_delays_no_other(tmp_path: Path) -> None:
    async with desk(tmp_path) as here:
        here.channel.stalled.add("a")
        await here.post("a", "first")
        await here.post("a", "second")
        await here.post("b", "other")
        assert here.channel.texts() == ["first", "other"]
        assert (await counts(here))[0] == 2


async def test_case_59_a_throttled_message_is_not_overtaken_in_its_chat(tmp_path: Path) -> None:
    async with desk(tmp_path) as here:
        here.channel.script["a"] = [UnreachableError("throttled", retry_after_seconds=20)]
        await here.post("a", "m1")
        await here.post("a", "m2")
        await here.post("b", "m3")
        assert here.channel.texts() == ["m1", "m3"]
        await here.clock.advance(19.9)
        assert here.channel.texts() == ["m1", "m3"]
        await here.clock.advance(2)
        assert here.channel.texts("a") == ["m1", "m1", "m2"]


async def test_case_46_the_wait_that_was_asked_for_is_never_undercut(tmp_path: Path) -> None:
    async with desk(tmp_path) as here:
        here.channel.script["a"] = [UnreachableError("throttled", retry_after_seconds=37) for _ in range(2)]
        await here.post("a", "answer")
        for tries in (1, 2):
            assert len(here.channel.texts("a")) == tries
            (wait,) = here.clock.waits()
            assert wait >= 37
            assert [part.attempts for part in await here.store.get(OpenParts(ACCOUNT))] == [0]
            await here.post("b", f"other {tries}")  # waits for nobody
            assert here.channel.texts("b")[-1] == f"other {tries}"
            await here.clock.advance(wait)
        assert here.channel.texts("a") == ["answer"] * 3
        assert await counts(here) == (0, 0, 0)
        assert len({part.client_id for part in here.channel.sent if part.to == "a"}) == 1


async def test_case_45_progress_is_kept_per_part(tmp_path: Path) -> None:
    async with desk(tmp_path) as here:
        throttled = UnreachableError("throttled", retry_after_seconds=30)
        here.channel.script["a"] = [DELIVERED, DELIVERED, throttled]
        await here.post("a", "\n\n".join(f"part {n} " + "x" * 80 for n in range(5)))
        assert len(here.channel.sent) == 3
        await here.clock.advance(32)
        shown = {part.client_id: part.text for part in here.channel.sent if isinstance(part, OutboundPart)}
        assert len(here.channel.sent) == 6
        assert [text[:6] for text in shown.values()] == [f"part {n}" for n in range(5)]


async def test_case_32_an_unknown_outcome_is_repeated_only_under_the_same_id(tmp_path: Path) -> None:
    async with desk(tmp_path) as here:
        here.channel.script["a"] = [OutcomeUnknownError("timed out") for _ in range(3)]
        await here.post("a", "hello")
        await here.clock.advance(300)
        assert len(here.channel.sent) == 4
        assert len({part.client_id for part in here.channel.sent}) == 1
        assert here.channel.texts() == ["hello"] * 4


async def test_past_the_idempotent_time_the_repeat_is_marked_and_has_a_new_id(tmp_path: Path) -> None:
    async with desk(tmp_path) as here:
        here.channel.script["a"] = [OutcomeUnknownError("timed out"), UnreachableError("down", 4000)]
        await here.post("a", "hello")
        await here.clock.advance(4100)
        first, second, third = here.channel.sent
        assert first.client_id == second.client_id != third.client_id
        assert here.channel.texts()[-1] == f"{say(Text.REPEAT, Language.EN)}\nhello"
        assert await counts(here) == (0, 0, 0)


@pytest.mark.parametrize(("size", "ids"), [(3, 1), (26_214_400, 2)])
async def test_a_client_id_counts_as_forgotten_while_a_send_could_still_be_under_way(
    tmp_path: Path, size: int, ids: int
) -> None:
    copy = tmp_path / "copy"
    copy.write_text("abc")
    async with desk(tmp_path) as here:
        here.channel.script["a"] = [OutcomeUnknownError("timed out"), UnreachableError("down", 3300)]
        await here.post("a", "", [ReplyFile(str(copy), "x.mp4", "video/mp4", size)])
        await until(lambda: len(here.channel.sent) == 1 and bool(here.clock.waits()))
        await here.clock.advance(10)
        await until(lambda: len(here.channel.sent) == 2 and bool(here.clock.waits()))
        await here.clock.advance(3390)
        await until(lambda: len(here.channel.sent) == 3)
        assert len({part.client_id for part in here.channel.sent}) == ids


async def test_without_idempotency_one_marked_repeat_and_then_a_dead_letter(tmp_path: Path) -> None:
    async with desk(tmp_path, spec=replace(SPEC, idempotent_seconds=0)) as here:
        here.channel.script["a"] = [OutcomeUnknownError("timed out"), OutcomeUnknownError("timed out")]
        await here.post("a", "hello")
        await here.post("a", "next")
        await here.clock.advance(300)
        assert here.channel.texts() == ["hello", f"{say(Text.REPEAT, Language.EN)}\nhello", "next"]
        assert await counts(here) == (0, 1, 0)


async def test_an_account_may_hold_what_may_have_arrived(tmp_path: Path) -> None:
    spec = replace(SPEC, idempotent_seconds=0)
    async with desk(tmp_path, spec=spec, unknown=UnknownOutcome.HOLD) as here:
        here.channel.script["a"] = [OutcomeUnknownError("timed out")]
        await here.post("a", "hello")
        await here.clock.advance(300)
        assert here.channel.texts() == ["hello"]
        assert [held.text for held in await here.store.get(HeldTexts(ACCOUNT, ConversationKey("c")))] == [
            "hello"
        ]


async def test_after_a_crash_in_sending_the_same_id_is_used_again(tmp_path: Path) -> None:
    clock = FakeClock()
    async with desk(tmp_path, clock=clock) as here:
        here.channel.stalled.add("a")
        await here.post("a", "hello")
        (first,) = here.channel.sent
    async with desk(tmp_path, clock=clock) as again:
        again.delivery.add(await again.store.get(OpenParts(ACCOUNT)))
        await settle()
        assert [part.client_id for part in again.channel.sent] == [first.client_id]
        assert again.channel.texts() == ["hello"]


async def test_after_a_crash_in_sending_without_idempotency_the_repeat_is_marked(tmp_path: Path) -> None:
    clock, spec = FakeClock(), replace(SPEC, idempotent_seconds=0)
    async with desk(tmp_path, clock=clock, spec=spec) as here:
        here.channel.stalled.add("a")
        await here.post("a", "hello")
    async with desk(tmp_path, clock=clock, spec=spec) as again:
        again.delivery.add(await again.store.get(OpenParts(ACCOUNT)))
        await settle()
        assert again.channel.texts() == [f"{say(Text.REPEAT, Language.EN)}\nhello"]


async def test_a_refused_text_ends_its_reply_and_is_held(tmp_path: Path) -> None:
    async with desk(tmp_path) as here:
        here.channel.script["a"] = [DELIVERED, Refused("too rude", "230022")]
        file = ReplyFile("/nowhere/x", "x.txt", "text/plain", 3)
        await here.post("a", "\n\n".join(f"{n}" + "x" * 90 for n in range(3)), [file])
        await here.post("a", "next")
        assert [text[0] for text in here.channel.texts()] == ["0", "1", "n"]
        (held,) = await here.store.get(HeldTexts(ACCOUNT, ConversationKey("c")))
        assert [line[0] for line in held.text.split()] == ["1", "2"]
        assert len(here.released) == 1


async def test_what_a_platform_repeats_of_a_refused_message_is_neither_logged_nor_stored(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    async with desk(tmp_path) as here:
        here.channel.script["ou_stranger"] = [Refused("no user ou_stranger for a secret text", "1")]
        await here.post("ou_stranger", "a secret text")
        (letter,) = await here.store.get(DeadLetters())
        told = f"{capsys.readouterr().err} {letter.reason}"
        assert "no user [redacted] for [redacted]" in told
        assert "stranger" not in told
        assert "secret text" not in told


async def test_a_refused_notice_is_not_held(tmp_path: Path) -> None:
    async with desk(tmp_path) as here:
        here.channel.script["a"] = [Refused("no")]
        await here.post("a", "busy", transient=True)
        assert await counts(here) == (0, 0, 0)


async def test_case_36_a_refused_file_is_skipped_alone_and_said_by_its_name(tmp_path: Path) -> None:
    (copy := tmp_path / "0a-x.txt").write_text("abc")
    async with desk(tmp_path) as here:
        here.channel.script["a"] = [DELIVERED, Refused("it is too large"), DELIVERED]
        file = ReplyFile(str(copy), "x.txt", "text/plain", 3)
        await here.post("a", "see", [file, file])
        await until(lambda: len(here.channel.sent) == 4)
        await settle()
        kinds = [type(part) for part in here.channel.sent]
        assert kinds == [OutboundPart, OutboundFile, OutboundFile, OutboundPart]
        assert here.channel.texts()[-1] == "x.txt could not be sent in this chat."
        assert await counts(here) == (0, 1, 0)
        assert here.released == [str(copy)] * 2


async def test_a_file_that_left_the_outbox_is_skipped_without_a_try(tmp_path: Path) -> None:
    async with desk(tmp_path) as here:
        await here.post("a", "see", [ReplyFile("/nowhere/x", "x.txt", "text/plain", 3)])
        await until(lambda: len(here.channel.sent) == 2)
        assert here.channel.texts()[-1] == "x.txt could not be sent in this chat."
        assert here.released == ["/nowhere/x"]


async def test_a_channel_without_files_refuses_them(tmp_path: Path) -> None:
    (copy := tmp_path / "x").write_text("abc")
    async with desk(tmp_path, channel=TextsOnly()) as here:
        await here.post("a", "see", [ReplyFile(str(copy), "x.txt", "text/plain", 3)])
        assert (await counts(here))[:2] == (0, 1)


async def test_case_13_an_answer_to_a_recalled_message_is_dropped_for_good(tmp_path: Path) -> None:
    async with desk(tmp_path) as here:
        here.channel.script["a"] = [Withdrawn("230011")]
        await here.post("a", "late answer", message="m1")
        await here.post("a", "next")
        assert here.channel.texts() == ["late answer", "next"]
        assert await counts(here) == (0, 0, 0)


async def test_what_goes_ahead_of_an_answer_to_a_recalled_message_is_held_on(tmp_path: Path) -> None:
    async with desk(tmp_path) as here:
        here.channel.script["a"] = [Withdrawn("230011")]
        await here.post("a", "an earlier reply")
        assert await counts(here) == (0, 0, 1)


async def test_what_cannot_be_delivered_in_a_day_is_held_and_logged(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    async with desk(tmp_path) as here:
        here.channel.script["a"] = [UnreachableError("down", 3600) for _ in range(30)]
        await here.post("a", "hello")
        await here.clock.advance(2 * 86_400)
        assert len(here.channel.sent) <= 25
        assert await counts(here) == (0, 1, 1)
    (line,) = [line for line in capsys.readouterr().err.splitlines() if "delivery.given_up" in line]
    assert '"part": 1' in line
    assert '"state": "expired", "reason": "not delivered in time"' in line
    assert "hello" not in line


async def test_refused_credentials_end_the_run_and_lose_nothing(tmp_path: Path) -> None:
    clock = FakeClock()
    with pytest.raises(ExceptionGroup) as caught:
        async with desk(tmp_path, clock=clock) as here:
            here.channel.script["a"] = [CredentialsError("token revoked")]
            await here.post("a", "hello")
            await settle()
    assert caught.group_contains(CredentialsError)
    async with desk(tmp_path, clock=clock) as again:
        again.delivery.add(await again.store.get(OpenParts(ACCOUNT)))
        await settle()
        assert again.channel.texts() == ["hello"]


async def test_an_adapter_s_bug_is_an_unknown_outcome_and_stops_nobody(tmp_path: Path) -> None:
    async with desk(tmp_path) as here:
        here.channel.script["a"] = [KeyError("text")]
        await here.post("a", "hello")
        await here.post("b", "other")
        assert here.channel.texts() == ["hello", "other"]
        await here.clock.advance(5)
        assert here.channel.texts("a") == ["hello", "hello"]


async def test_trouble_and_its_end_are_told(tmp_path: Path) -> None:
    async with desk(tmp_path) as here:
        here.channel.script["a"] = [UnreachableError("down")]
        await here.post("a", "hello")
        assert here.contact.told == ["sending fails; it is tried again"]
        await here.clock.advance(5)
        assert here.contact.told[-1] == "contact"


@pytest.mark.parametrize(
    ("outcome", "told"),
    [
        (Refused("the recipient is no id of this platform"), []),
        (Refused("Test: no such chat", "230002"), ["contact"]),
        (Withdrawn("230011"), ["contact"]),
        (Withdrawn(), []),
    ],
)
async def test_only_what_the_platform_said_is_contact(
    tmp_path: Path, outcome: SendOutcome, told: list[str]
) -> None:
    async with desk(tmp_path) as here:
        here.channel.script["a"] = [outcome]
        await here.post("a", "hello")
        assert here.contact.told == told


async def test_a_platform_that_asks_for_a_wait_is_not_lost_and_proves_nothing(tmp_path: Path) -> None:
    async with desk(tmp_path) as here:
        here.channel.script["a"] = [UnreachableError("too many requests", 3.0)]
        await here.post("a", "hello")
        assert here.contact.told == []
        assert here.channel.texts() == ["hello"]


async def test_only_so_many_sends_are_under_way_at_once(tmp_path: Path) -> None:
    async with desk(tmp_path, at_once=2) as here:
        here.channel.stalled = {"a", "b", "c"}
        for to in ("a", "b", "c"):
            await here.post(to, to)
        assert here.channel.texts() == ["a", "b"]


async def test_a_part_that_became_final_elsewhere_is_not_sent(tmp_path: Path) -> None:
    async with desk(tmp_path) as here:
        here.channel.script["a"] = [UnreachableError("down")]
        await here.post("a", "hello")
        await here.store.do(Collect(ACCOUNT, here.seen[0].part_id, unix_ms(here.clock.now())))
        await here.clock.advance(5)
        assert len(here.channel.sent) == 1
        assert not await here.store.do(Sending(here.seen[0].part_id, 0))


@pytest.mark.parametrize("jump_seconds", [90_000, -90_000])
async def test_a_clock_that_jumps_ends_no_part_and_delays_none(tmp_path: Path, jump_seconds: int) -> None:
    async with desk(tmp_path) as here:
        here.channel.script["a"] = [UnreachableError("down")]
        await here.post("a", "hello")
        here.clock.jump(jump_seconds)
        await here.clock.advance(5)
        await here.post("a", "later")
        assert here.channel.texts() == ["hello", "hello", "later"]
        assert await counts(here) == (0, 0, 0)


@pytest.mark.parametrize("jump_seconds", [86_400, -86_400])
async def test_a_clock_that_jumps_does_not_change_how_long_a_client_id_is_known(
    tmp_path: Path, jump_seconds: int
) -> None:
    async with desk(tmp_path) as here:
        down = UnreachableError("down", retry_after_seconds=3600)
        here.channel.script["a"] = [OutcomeUnknownError("cut off"), down]
        await here.post("a", "hello")
        here.clock.jump(jump_seconds)
        await here.clock.advance(2)
        first, second = here.channel.sent
        assert first.client_id == second.client_id
        await here.clock.advance(3700)
        assert here.channel.texts()[-1].startswith(say(Text.REPEAT, Language.EN))


async def test_a_wait_from_before_a_restart_ends_though_the_clock_was_set_back(tmp_path: Path) -> None:
    clock = FakeClock()
    async with desk(tmp_path, clock=clock) as here:
        here.channel.script["a"] = [UnreachableError("down")]
        await here.post("a", "hello")
    clock.jump(-86_400)
    async with desk(tmp_path, clock=clock) as here:
        here.delivery.add(await here.store.get(OpenParts(ACCOUNT)))
        await clock.advance(70)
        assert here.channel.texts() == ["hello"]


async def test_what_may_have_arrived_is_marked_when_a_clock_set_back_hides_how_long_ago(
    tmp_path: Path,
) -> None:
    clock = FakeClock()
    async with desk(tmp_path, clock=clock) as here:
        here.channel.stalled.add("a")
        await here.post("a", "hello")
    clock.jump(-86_400)
    async with desk(tmp_path, clock=clock) as here:
        here.delivery.add(await here.store.get(OpenParts(ACCOUNT)))
        await clock.advance(1)
        assert here.channel.texts()[0].startswith(say(Text.REPEAT, Language.EN))


async def test_a_client_id_that_is_forgotten_while_others_are_being_sent_is_not_used(tmp_path: Path) -> None:
    async with desk(tmp_path, at_once=1) as here:
        here.channel.script["b"] = [OutcomeUnknownError("cut off")]
        await here.post("b", "hello")
        here.channel.stalled.add("a")
        await here.post("a", "stuck")
        await here.clock.advance(4000)
        assert here.channel.texts("b") == ["hello"]
        here.channel.release.set_result(None)
        await settle()
        assert here.channel.texts("b")[1].startswith(say(Text.REPEAT, Language.EN))


async def test_a_client_id_is_not_used_so_late_that_it_is_forgotten_on_the_way(tmp_path: Path) -> None:
    async with desk(tmp_path) as here:
        here.channel.script["a"] = [OutcomeUnknownError("cut off")]
        here.channel.script["a"].append(UnreachableError("down", retry_after_seconds=3560))
        await here.post("a", "hello")
        await here.clock.advance(3590)
        assert len(here.channel.texts()) == 3
        assert here.channel.texts()[-1].startswith(say(Text.REPEAT, Language.EN))


async def test_what_a_platform_says_is_stored_though_it_is_no_text(tmp_path: Path) -> None:
    async with desk(tmp_path) as here:
        here.channel.script["a"] = [Refused("no \ud800"), Delivered("p\ud800")]
        await here.post("a", "hello")
        await here.post("a", "again")
        assert here.channel.texts() == ["hello", "again"]
        assert await counts(here) == (0, 1, 1)


# --- parts that the store has ended, and ways out that open --------------------


async def test_dropped_parts_are_not_sent_and_what_waits_behind_them_goes_out_at_once(tmp_path: Path) -> None:
    async with desk(tmp_path) as here:
        here.channel.script["a"] = [UnreachableError("down")]
        await here.post("a", "one " * 60)
        await here.post("a", "two")
        here.delivery.drop(MessageId("nobody's"))
        await settle()
        assert here.channel.texts() == here.channel.texts()[:1], "no wait is undercut for others' sake"
        here.delivery.drop_reply(here.seen[0].reply_id)
        await settle()
        assert here.channel.texts()[1:] == ["two"]


async def test_what_waits_behind_dropped_parts_does_not_undercut_the_wait_that_was_asked_for_case_46(
    tmp_path: Path,
) -> None:
    async with desk(tmp_path) as here:
        here.channel.script["a"] = [UnreachableError("throttled", retry_after_seconds=500)]
        await here.post("a", "one")
        await here.post("a", "two")
        here.delivery.drop_reply(here.seen[0].reply_id)
        await here.clock.advance(499)
        assert here.channel.texts() == ["one"]
        await here.clock.advance(2)
        assert here.channel.texts() == ["one", "two"]


async def test_what_is_too_old_is_given_up_while_the_platform_s_wait_still_runs_and_undercuts_nothing(
    tmp_path: Path,
) -> None:
    async with desk(tmp_path) as here:
        throttled = UnreachableError("throttled", retry_after_seconds=80_000)
        here.channel.script["a"] = [throttled, throttled]
        await here.post("a", "one")
        await here.clock.advance(80_002)  # asked to wait once more, until after its time
        await here.post("a", "two")
        assert here.channel.texts() == ["one", "one"]
        await here.clock.advance(6397)
        assert await counts(here) == (2, 0, 0)
        await here.clock.advance(1)
        assert await counts(here) == (1, 1, 1)
        assert here.channel.texts() == ["one", "one"]
        await here.clock.advance(80_000)
        assert here.channel.texts()[2:] == ["two"]


@pytest.mark.parametrize("ends", ["given up", "dropped"])
async def test_a_wait_that_was_asked_for_outlasts_the_last_part_that_it_held_case_46(
    tmp_path: Path, ends: str
) -> None:
    async with desk(tmp_path) as here:
        throttled = UnreachableError("throttled", retry_after_seconds=80_000)
        here.channel.script["a"] = [throttled, throttled]
        await here.post("a", "one")
        await here.clock.advance(80_002)  # asked to wait once more, until after its time
        if ends == "given up":
            await here.clock.advance(6398)
        else:
            here.delivery.drop_reply(here.seen[0].reply_id)
        await settle()
        assert not here.delivery.waits("a")
        await here.post("a", "two")
        await here.post("b", "other")
        assert here.channel.texts() == ["one", "one", "other"]
        await here.clock.advance(80_004)
        assert here.channel.texts()[3:] == ["two"]
        await here.post("a", "three")
        assert here.channel.texts()[4:] == ["three"]


async def test_a_part_that_is_dropped_on_its_way_is_not_tried_again(tmp_path: Path) -> None:
    async with desk(tmp_path) as here:
        here.channel.stalled.add("a")
        here.channel.script["a"] = [OutcomeUnknownError("broke off")]
        await here.post("a", "first")
        await here.post("a", "second")
        here.delivery.drop_reply(here.seen[0].reply_id)
        here.channel.stalled.clear()
        here.channel.release.set_result(None)
        await settle()
        assert here.channel.texts() == ["first", "second"]


async def test_a_reply_that_is_dropped_while_it_is_being_ended_takes_no_other_part_along(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with desk(tmp_path) as here:
        taken, gate, do = asyncio.Event(), asyncio.Event(), here.store.do

        async def late(step: Any) -> Any:
            done = await do(step)
            if isinstance(step, Hold):
                taken.set()
                await gate.wait()
            return done

        monkeypatch.setattr(here.store, "do", late)
        here.channel.script["a"] = [Refused("no")]
        await here.post("a", "one " * 60)
        await here.post("a", "two")
        await taken.wait()
        here.delivery.drop_reply(here.seen[0].reply_id)
        gate.set()
        await settle()
        assert here.channel.texts()[1:] == ["two"]


async def test_parts_that_are_told_of_twice_are_there_once(tmp_path: Path) -> None:
    async with desk(tmp_path) as here:
        here.channel.stalled.add("a")
        here.channel.script["a"] = [Refused("no")]
        await here.post("a", "one")
        await here.post("a", "two")
        here.delivery.add(here.seen)
        here.channel.stalled.clear()
        here.channel.release.set_result(None)
        await settle()
        assert here.channel.texts() == ["one", "two"]
        (held,) = await here.store.get(HeldTexts(ACCOUNT, ConversationKey("c")))
        assert held.text == "one"


async def test_where_there_is_no_way_out_parts_wait_in_silence(tmp_path: Path) -> None:
    offers = Offers()
    async with desk(tmp_path, channel=SilentChannel(), offers=offers) as here:
        await here.post("a", "one")
        assert (here.delivery.waits("a"), here.delivery.waits("b")) == (True, False)
        here.delivery.stir("b")
        await here.clock.advance(3600)
        assert here.contact.told == []
        for how, left in ((False, 1), (True, 0)):
            offer = Offer("m1", "a", Reading(()))
            offers.add(offer)
            here.delivery.stir("a")
            await offer.over.wait()
            offer.written(how)
            await settle()
            assert (await counts(here))[0] == left
        assert here.contact.told == ["contact"]
        assert not here.delivery.waits("a")


async def test_a_response_that_was_not_taken_leaves_an_earlier_sending_unknown(tmp_path: Path) -> None:
    offers = Offers()
    channel = RespondingChannel()
    channel.outcomes = [OutcomeUnknownError("broke off")]
    async with desk(tmp_path, channel=channel, offers=offers) as here:
        await here.post("a", "one")
        offer = Offer("m1", "a", Reading(()))
        offers.add(offer)
        here.delivery.stir("a")
        await offer.over.wait()
        offer.written(False)
        await settle()
        assert channel.texts() == ["one", "one"], "and then it is sent"


async def test_what_becomes_of_parts_is_counted(tmp_path: Path) -> None:
    meter = AccountMeter()
    (tmp_path / "a.txt").write_bytes(b"file!")
    file = ReplyFile(str(tmp_path / "a.txt"), "a.txt", "text/plain", 5)
    async with desk(tmp_path, meter=meter) as here:
        here.channel.script["a"] = [UnreachableError("throttled", retry_after_seconds=20), DELIVERED]
        await here.post("a", "你好", [file])
        await here.clock.advance(90)
        await until(lambda: meter.tries[Try.SENT] == 2)
        assert meter.tries == {Try.UNREACHABLE: 1, Try.SENT: 2}
        await until(lambda: sum(meter.deliveries.counts) == 2)
        assert meter.sent_bytes == 6 + 5
        assert meter.deliveries.total >= 40  # both waited, for the platform's time at least
        here.channel.script["b"] = [Refused("no", "7")]
        await here.post("b", "one " * 60)
        here.channel.script["d"] = [DELIVERED, Refused("no files", "8")]
        await here.post("d", "hi", [file])
        await until(lambda: meter.given_up == {"refused": 4})
        assert meter.held == 1
