"""Claims on a running account: what each item becomes, in which order it starts, and who hangs up."""

import asyncio

import pytest

from bridge.channel import (
    Batch,
    Claimed,
    Edited,
    FileKind,
    Ignored,
    Item,
    Recalled,
    RemoteFile,
    Unreadable,
)
from bridge.channel.testing.clock import settle, until
from bridge.clock import unix_ms
from bridge.errors import StoreError
from bridge.relay.claims import Claims
from bridge.relay.texts import Language, Text, say
from bridge.store.contract import Bind, OpenMessages
from tests.relay.harness import NAME, OWNER, STRANGER, Desk, PollingChannel, desk, message
from tests.relay.scripted import cancellable
from tests.relay.test_account import endless, hang_up, swap_store
from tests.relay.test_changes import prompts
from tests.relay.test_conversation import Held, key_of

VOICE = (RemoteFile("k", FileKind.AUDIO),)


def claims_of(here: Desk) -> Claims:
    assert here.account._run is not None
    return here.account._run.claims


async def test_each_item_is_told_what_became_of_it() -> None:
    async with desk(script={"turn": endless}, limits={"conversation_claims": 1}) as here:
        taken = await claims_of(here).take(
            [
                message("m1", body_digest="a"),
                message("m2"),
                message("m1", body_digest="a"),
                message("m1", body_digest="b"),
                message("v1", "", STRANGER, files=VOICE),
                Ignored("own"),
                Unreadable("broken", "u1"),
            ],
            unix_ms(here.clock.now()),
        )
        assert taken == [
            Claimed.ACCEPTED, Claimed.BUSY, Claimed.DUPLICATE, Claimed.CONFLICT, Claimed.ACCEPTED,
            Claimed.IGNORED, Claimed.IGNORED,
        ]  # fmt: skip
        busy, voice = say(Text.BUSY, Language.EN), say(Text.VOICE, Language.EN)
        assert sorted(await here.answered(2)) == sorted([busy, voice])


async def test_changes_stand_in_their_places_among_the_messages_of_a_batch() -> None:
    held = Held()
    async with desk(script={"turn": held}) as here:
        claims = claims_of(here)
        zero, one, two = (message(f"m{n}", f"text {n}") for n in range(3))
        edited = Edited(message("m1", "better"), 1)
        batch: list[Item] = [zero, one, edited, Recalled("m2"), two, Recalled("m9")]
        assert await claims.take(batch, 1000) == [
            Claimed.ACCEPTED, Claimed.ACCEPTED, Claimed.ACCEPTED, Claimed.ACCEPTED, Claimed.DUPLICATE,
            Claimed.ACCEPTED,
        ]  # fmt: skip
        held.let_go("text 0")
        held.let_go("better")
        assert await here.answered(2) == ["echo: text 0", "echo: better"]


async def test_the_checkpoint_of_a_batch_with_changes_is_stored_last() -> None:
    channel = PollingChannel()
    channel.batches = [Batch([message("m1", "one"), Recalled("m0")], "c1"), Batch([Recalled("x")], None)]
    async with desk(channel) as here:
        assert await here.answered(1) == ["echo: one"]
        await until(lambda: channel.polled == ["", "c1", "c1"])


async def test_a_push_whose_client_hung_up_in_its_claim_starts_before_later_ones() -> None:
    async with desk() as here:
        await hang_up(here, Ignored("own"), message("m1", "first"))
        await here.push(message("m2", "second"))
        assert await here.answered(2) == ["echo: first", "echo: second"]
        assert prompts(here) == ["first", "second"]


async def test_what_hung_up_and_was_not_stored_is_never_given_to_an_agent() -> None:
    async with desk(limits={"conversation_claims": 2}) as here:
        faulty = swap_store(here)
        faulty.waiting = asyncio.get_running_loop().create_future()  # it never gets to the store
        await hang_up(here, message("m1", "lost"))
        await settle()
        here.run.claims.store = here.store
        assert [(await here.push(message(f"n{n}", "x"))).body for n in range(2)] == [b"accepted"] * 2
        assert await here.answered(2) == ["echo: x", "echo: x"]
        assert prompts(here) == ["x", "x"]


async def test_a_duplicate_that_hung_up_does_not_run_again() -> None:
    async with desk() as here:
        await here.push(message("m1", "one"))
        await here.answered(1)
        await hang_up(here, message("m1", "one"))
        await here.push(message("m2", "two"))
        assert await here.answered(2) == ["echo: one", "echo: two"]
        assert await here.store.get(OpenMessages(NAME)) == ()


async def test_a_duplicate_that_hung_up_takes_nobody_s_place_and_is_put_together_with_nothing() -> None:
    held = Held()
    async with desk(script={"turn": held}, settings={"when_busy": "interrupt"}) as here:
        await here.push(message("m1", "one"))
        await until(lambda: held.started == ["one"])
        await hang_up(here, message("m1", "one"))
        await settle()
        assert here.run.conversations.now(key_of()).running
        held.let_go("one")
        assert await here.answered(1) == ["echo: one"]
    held = Held()
    async with desk(script={"turn": held}, settings={"when_busy": "collect"}) as here:
        await here.push(message("m1", "one"))
        await until(lambda: held.started == ["one"])
        await here.push(message("m2", "two"))
        await hang_up(here, message("m2", "two"), message("m3", "three"))
        held.let_go("one")
        held.let_go("two\n\nthree")
        assert await here.answered(2) == ["echo: one", "echo: two\n\nthree"]
        assert await here.store.get(OpenMessages(NAME)) == ()
        assert claims_of(here)._room.total == 0


async def test_a_command_whose_client_hung_up_in_its_claim_is_carried_out_and_a_repeat_of_it_is_not() -> None:
    async with desk(script={"turn": cancellable}) as here:
        await here.push(message("m1", "long one"))
        await until(lambda: prompts(here) == ["long one"])
        await hang_up(here, message("s", "/stop"))
        assert await here.answered(1) == [say(Text.STOPPED, Language.EN)]
        await here.push(message("m2", "long two"))
        await until(lambda: prompts(here) == ["long one", "long two"])
        await hang_up(here, message("s", "/stop"))
        await settle()
        assert [one.message_id for one in await here.store.get(OpenMessages(NAME))] == ["m2"]
        assert len(here.server.frames("turn.cancel")) == 1


async def test_a_notice_of_what_hung_up_is_delivered_once_its_claim_is_there() -> None:
    async with desk() as here:
        await hang_up(here, message("v1", "", files=VOICE))
        assert await here.answered(1) == [say(Text.VOICE, Language.EN)]


async def test_what_a_failed_claim_took_is_free_again() -> None:
    async with desk(limits={"conversation_claims": 1}) as here:
        swap_store(here).errors = [StoreError("full")]
        with pytest.raises(StoreError):
            await here.push(message("m1"))
        assert (await here.push(message("m1"))).body == b"accepted"


async def test_where_the_owner_wrote_is_noted() -> None:
    async with desk() as here:
        noted: list[str] = []

        async def note() -> None:
            noted.append(OWNER)

        claims_of(here)._note = lambda inbound: note() if inbound.sender == OWNER else None
        await here.push(message("m1"), message("m2", sender=STRANGER))
        await here.answered(2)
        assert noted == [OWNER]


async def test_nothing_is_stored_for_an_empty_push() -> None:
    async with desk() as here:
        swap_store(here).errors = [StoreError("full")]
        assert await claims_of(here).take([Ignored("own")], 1000) == [Claimed.IGNORED]


async def test_a_batch_without_items_stores_its_checkpoint_and_counts_no_claim() -> None:
    async with desk() as here:
        claims, setup = claims_of(here), here.account._setup
        assert await claims.take([], 1000, "c1") == []
        assert await here.store.do(Bind(NAME, setup.fingerprint)) == "c1"
        assert (sum(setup.meter.messages.values()), setup.meter.claims.counts) == (0, [])


async def test_a_command_is_carried_out_once_and_its_repeat_is_a_duplicate() -> None:
    async with desk(script={"turn": cancellable}) as here:
        await here.push(message("m1", "long"))
        await until(lambda: prompts(here) == ["long"])
        now_ms = unix_ms(here.clock.now())
        assert await claims_of(here).take([message("s", "/stop")], now_ms) == [Claimed.ACCEPTED]
        assert await here.answered(1) == [say(Text.STOPPED, Language.EN)]
        assert await claims_of(here).take([message("s", "/stop")], now_ms) == [Claimed.DUPLICATE]
        assert len(here.server.frames("turn.cancel")) == 1
