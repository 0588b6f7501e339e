"""A callback that fails for a long time: the schedule, the order, and what becomes of what was not taken."""

from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from itertools import pairwise
from pathlib import Path

from bridge.channel import Http, Place
from bridge.channel.http import http_session
from bridge.channel.testing.clock import FakeClock, until
from bridge.channel.testing.fakes.webhook_receiver import (
    Break,
    CallbackReceiver,
    Reaction,
    breaks,
    fails,
    throttles,
)
from bridge.store.contract import CountsOf
from channels.webhook import SPEC
from channels.webhook.callback import WebhookCallback
from channels.webhook.wire import lane
from tests.channels.webhook.tools import CALLBACK, credentials, settings
from tests.relay.test_delivery import ACCOUNT, Desk, desk

DAY_SECONDS = 86_400
HOUR_SECONDS = 3600
ALWAYS = 10_000


@asynccontextmanager
async def outage(folder: Path, *plan: Reaction) -> AsyncIterator[tuple[Desk, CallbackReceiver]]:
    """An account's delivery by the real channel, before a receiver that does what ``plan`` says."""
    clock = FakeClock()
    async with CallbackReceiver([CALLBACK], clock) as receiver, http_session() as session:
        receiver.plan(*plan)
        table = settings(callback_url=receiver.url, private_hosts=[receiver.host])
        channel = WebhookCallback(table, credentials(), Http(session, clock=clock), Place("a"))
        async with desk(folder, channel=channel, spec=SPEC, clock=clock) as here:
            yield here, receiver


async def pass_time(here: Desk, receiver: CallbackReceiver, seconds: float) -> list[float]:
    """Let ``seconds`` pass, one try at a time; the seconds at which tries were made, from now."""
    begun, tries = here.clock.monotonic(), []
    while (waits := here.clock.waits()) and here.clock.monotonic() + waits[0] <= begun + seconds:
        before = len(receiver.attempts)
        await here.clock.advance(waits[0])
        await until(lambda: len(here.clock.waits()) >= len(waits) or not here.delivery._lanes)
        tries += [here.clock.monotonic() - begun] * (len(receiver.attempts) - before)
    await here.clock.advance(begun + seconds - here.clock.monotonic())
    return tries


async def until_waiting(here: Desk, lanes: int = 1) -> None:
    await until(lambda: len(here.clock.waits()) == lanes)


def texts(receiver: CallbackReceiver, conversation: str = "") -> Sequence[str]:
    return [kept.data["text"] for kept in receiver.kept if conversation in ("", kept.data["conversation_id"])]


async def test_a_callback_that_fails_three_times_and_then_takes_it_gets_it_once(tmp_path: Path) -> None:
    async with outage(tmp_path, *[fails(500)] * 3) as (here, receiver):
        await here.post(lane("c1", ""), "hi")
        await until_waiting(here)
        tries = await pass_time(here, receiver, HOUR_SECONDS * 3)
        assert len(tries) == 3
        assert texts(receiver) == ["hi"]
        assert len({(each.webhook_id, each.body) for each in receiver.attempts}) == 1
        assert (await here.store.get(CountsOf(ACCOUNT))).open_parts == 0


async def test_a_callback_that_fails_for_a_day_is_tried_on_the_schedule_and_then_given_up(
    tmp_path: Path,
) -> None:
    async with outage(tmp_path, *[fails(500)] * ALWAYS) as (here, receiver):
        await here.post(lane("c1", ""), "hi")
        await until_waiting(here)
        tries = await pass_time(here, receiver, 2 * DAY_SECONDS)
        gaps = [later - earlier for earlier, later in zip([0.0, *tries], tries, strict=False)]
        assert all(gap <= bound for gap, bound in zip(gaps, SPEC.retry_seconds, strict=False))
        assert all(gap <= SPEC.retry_seconds[-1] for gap in gaps)
        assert len(set(gaps)) == len(gaps)  # with jitter
        assert 6 <= len(tries) <= 20
        assert tries[-1] <= DAY_SECONDS
        counted = await here.store.get(CountsOf(ACCOUNT))
        assert (counted.open_parts, counted.dead, counted.held) == (0, 1, 1)
        assert "sending fails; it is tried again" in here.contact.told  # what the status says meanwhile
        assert "contact" not in here.contact.told


async def test_a_stuck_conversation_blocks_itself_alone(tmp_path: Path) -> None:
    async with outage(tmp_path, fails(503)) as (here, receiver):
        await here.post(lane("c1", ""), "one")
        await here.post(lane("c1", ""), "two")
        await until_waiting(here)
        await here.post(lane("c2", ""), "other")
        await until(lambda: len(receiver.kept) == 1)
        assert texts(receiver) == ["other"]
        await pass_time(here, receiver, 60)
        await until(lambda: len(receiver.kept) == 3)
        assert texts(receiver, "c1") == ["one", "two"]


async def test_what_is_not_sure_to_have_arrived_is_repeated_under_its_id_and_kept_once(
    tmp_path: Path,
) -> None:
    async with outage(tmp_path, breaks(Break.CUT_HEADERS, keeps=True)) as (here, receiver):
        await here.post(lane("c1", ""), "hi")
        await until_waiting(here)
        await pass_time(here, receiver, 60)
        assert len(receiver.attempts) == 2
        assert texts(receiver) == ["hi"]


async def test_a_wait_that_was_asked_for_is_never_undercut_and_is_no_loss_of_contact(tmp_path: Path) -> None:
    async with outage(tmp_path, throttles("600")) as (here, receiver):
        await here.post(lane("c1", ""), "hi")
        await until_waiting(here)
        assert here.contact.told == []
        assert await pass_time(here, receiver, 599) == []
        assert len(await pass_time(here, receiver, 60)) == 1
        assert texts(receiver) == ["hi"]


async def test_many_conversations_before_a_dead_callback_make_one_try_a_minute(tmp_path: Path) -> None:
    async with outage(tmp_path, *[fails(500)] * ALWAYS) as (here, receiver):
        for number in range(50):
            await here.post(lane(f"c{number}", ""), "hi")
            await until_waiting(here, number + 1)
        assert len(receiver.attempts) == 20
        tries = await pass_time(here, receiver, 2 * HOUR_SECONDS)
        assert 0 < len(tries) <= 120
        assert all(later - earlier >= 60 for earlier, later in pairwise(tries))
        assert "contact" not in here.contact.told
