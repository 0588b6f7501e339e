"""What every backend must do with the parts of replies, from pending to final."""

from __future__ import annotations

import pytest

from bridge.errors import StoreError
from bridge.ids import MessageId, PartId
from bridge.store.contract import (
    Collect,
    Counts,
    CountsOf,
    EndedPart,
    EndOf,
    Hold,
    Later,
    Mark,
    MessageState,
    OpenParts,
    OpenPartsFor,
    OutboxPart,
    PartKind,
    PartsOf,
    PartState,
    Post,
    Prune,
    Sending,
    Settle,
    Settled,
)
from tests.store.backends import Open
from tests.store.values import (
    ACCOUNT,
    CHAT,
    DUPLICATE,
    NEW,
    OTHER,
    answer,
    claim,
    dead,
    file,
    held,
    message,
    open_parts,
    post,
    reply,
    text,
)


class OutboxContract:
    async def test_a_part_comes_back_as_it_was_stored(self, opened: Open) -> None:
        async with opened() as store:
            await store.do(claim())
            ids = await store.do(answer(answered=reply(text("a"), file("{}"))))
            a, b = await open_parts(store)
            assert a == OutboxPart(
                ids[0], ACCOUNT, "r", MessageId("m"), CHAT, "to", "handle", 0, 2, PartKind.TEXT, "a",
                "id of a", PartState.PENDING, False, 0, 2000, 0, 0, 0, False,
            )  # fmt: skip
            assert (b.part, b.kind, b.body, b.client_id) == (1, PartKind.FILE, "{}", "id of {}")

    async def test_ids_grow_and_none_is_used_again(self, opened: Open) -> None:
        async with opened() as store:
            first = await post(store, reply(text("a"), text("b")))
            for part_id in first:
                await store.do(Settle(part_id, PartState.SENT, 3000))
            await store.do(Prune(4000, 0))
            second = await post(store, reply())
            third = await post(store, reply(), OTHER)
            assert [*first, *second, *third] == sorted({*first, *second, *third})

    async def test_open_parts_are_listed_from_a_place_on(self, opened: Open) -> None:
        async with opened() as store:
            ids = [(await post(store, reply(text(str(number)))))[0] for number in range(5)]
            await store.do(Settle(ids[3], PartState.SENT, 3000))
            await post(store, reply(), OTHER)
            listed = await store.get(OpenParts(ACCOUNT, after=ids[0], limit=2))
            assert [part.part_id for part in listed] == [ids[1], ids[2]]
            assert [part.part_id for part in await open_parts(store)] == [ids[0], ids[1], ids[2], ids[4]]
            assert {part.message_id for part in listed} == {""}

    async def test_the_open_parts_of_one_reply_are_listed(self, opened: Open) -> None:
        async with opened() as store:
            await post(store, reply(reply_id="other"))
            ids = await post(store, reply(text("a"), text("b"), text("c"), reply_id="mine"))
            await store.do(Settle(ids[0], PartState.SENT, 3000))
            listed = await store.get(PartsOf(ACCOUNT, "mine"))
            assert [part.part_id for part in listed] == list(ids[1:])
            assert await store.get(PartsOf(OTHER, "mine")) == ()

    async def test_a_sending_is_recorded_before_its_first_byte(self, opened: Open) -> None:
        async with opened() as store:
            (part_id,) = await post(store, reply())
            assert await store.do(Sending(part_id, 3000)) is True
            assert await store.do(Sending(part_id, 4000)) is True
            (part,) = await open_parts(store)
            assert (part.state, part.attempts) == (PartState.SENDING, 2)
            assert (part.first_sent_ms, part.sending_since_ms) == (3000, 4000)
            await store.do(Settle(part_id, PartState.SENT, 5000))
            assert await store.do(Sending(part_id, 6000)) is False

    async def test_steps_on_a_part_that_does_not_exist_are_refused(self, opened: Open) -> None:
        nothing = PartId(99)
        steps = (
            Sending(nothing, 1), Later(nothing, 1, accepted_possible=True), Mark(nothing, "id", 1),
            Later(nothing, 1, accepted_possible=False), Settle(nothing, PartState.SENT, 1),
            Hold(nothing, PartState.REFUSED, "", 1),
        )  # fmt: skip
        async with opened() as store:
            for step in steps:
                with pytest.raises(StoreError, match="no such part"):
                    await store.do(step)

    async def test_a_try_that_surely_failed_is_taken_back(self, opened: Open) -> None:
        async with opened() as store:
            (part_id,) = await post(store, reply())
            await store.do(Sending(part_id, 3000))
            await store.do(Later(part_id, 9000, accepted_possible=False))
            (part,) = await open_parts(store)
            assert (part.state, part.attempts, part.due_ms) == (PartState.PENDING, 0, 9000)
            assert (part.first_sent_ms, part.sending_since_ms) == (0, 0)

    async def test_a_try_that_may_have_arrived_stays_one(self, opened: Open) -> None:
        async with opened() as store:
            (part_id,) = await post(store, reply())
            await store.do(Sending(part_id, 3000))
            await store.do(Later(part_id, 9000, accepted_possible=True))
            await store.do(Sending(part_id, 9000))
            await store.do(Later(part_id, 9500, accepted_possible=False))
            (part,) = await open_parts(store)
            assert (part.state, part.attempts, part.due_ms) == (PartState.SENDING, 1, 9500)
            assert part.first_sent_ms == 3000

    async def test_a_marked_part_is_sent_anew_under_another_client_id(self, opened: Open) -> None:
        async with opened() as store:
            (part_id,) = await post(store, reply())
            await store.do(Sending(part_id, 3000))
            await store.do(Mark(part_id, "second", 4000))
            (part,) = await open_parts(store)
            assert (part.state, part.marked, part.client_id) == (PartState.PENDING, True, "second")
            assert (part.attempts, part.first_sent_ms, part.sending_since_ms) == (0, 0, 0)

    async def test_what_is_final_stays_so(self, opened: Open) -> None:
        async with opened() as store:
            ids = await post(store, reply(text("a"), text("b")))
            await store.do(Settle(ids[0], PartState.UNKNOWN, 3000))
            await store.do(Later(ids[0], 9000, accepted_possible=False))
            await store.do(Mark(ids[0], "second", 4000))
            assert await store.do(Settle(ids[0], PartState.SENT, 4000)) == Settled(reply_done=False)
            assert await store.do(Hold(ids[0], PartState.REFUSED, "lost", 4000)) == Settled(reply_done=False)
            assert [part.part_id for part in await open_parts(store)] == [ids[1]]
            assert (await held(store), await dead(store)) == ([], 1)
            await store.do(Settle(ids[1], PartState.SENT, 4000))
            assert await store.do(Settle(ids[1], PartState.REFUSED, 4000)) == Settled(reply_done=True)
            assert await dead(store) == 1

    @pytest.mark.parametrize("state", [PartState.PENDING, PartState.SENDING])
    async def test_a_part_is_settled_with_a_final_state(self, opened: Open, state: PartState) -> None:
        async with opened() as store:
            (part_id,) = await post(store, reply())
            with pytest.raises(StoreError):
                await store.do(Settle(part_id, state, 3000))
            assert len(await open_parts(store)) == 1

    async def test_a_message_is_done_with_the_last_part_of_its_reply(self, opened: Open) -> None:
        async with opened() as store:
            await store.do(claim())
            ids = await store.do(answer(answered=reply(text("a"), text("b"), text("c"))))
            states = (PartState.SENT, PartState.EXPIRED, PartState.UNKNOWN)
            settled = [await store.do(Settle(i, s, 3000)) for i, s in zip(ids, states, strict=True)]
            assert [one.reply_done for one in settled] == [False, False, True]
            await store.do(Prune(2999, 0))
            assert await store.do(claim()) == (DUPLICATE,)
            await store.do(Prune(3001, 0))
            assert await store.do(claim()) == (NEW,)

    async def test_a_refused_file_leaves_the_rest_going_and_its_copy_can_go(self, opened: Open) -> None:
        async with opened() as store:
            ids = await post(store, reply(text(), file("one"), file("two"), file("three")))
            assert await store.do(Settle(ids[0], PartState.SENT, 3000)) == Settled(False)
            assert await store.do(Settle(ids[1], PartState.REFUSED, 3000)) == Settled(False, ("one",))
            kept = Settle(ids[2], PartState.SENT, 3000, keep_until_ms=4000)
            assert await store.do(kept) == Settled(False)
            over = Settle(ids[3], PartState.SENT, 3000, keep_until_ms=3000)
            assert await store.do(over) == Settled(True, ("three",))

    async def test_a_held_reply_ends_as_a_whole(self, opened: Open) -> None:
        async with opened() as store:
            await store.do(claim())
            parts = (text("a"), text("b"), file("one"), text("c"), file("two"))
            ids = await store.do(answer(answered=reply(*parts)))
            await store.do(Settle(ids[0], PartState.SENT, 3000))
            await store.do(Sending(ids[1], 3000))
            settled = await store.do(Hold(ids[1], PartState.REFUSED, "b c", 3000, "refused"))
            assert (settled.reply_done, sorted(settled.released)) == (True, ["one", "two"])
            assert await open_parts(store) == ()
            assert (await held(store), await dead(store)) == (["b c"], 1)
            await store.do(Prune(3001, 0))
            assert await store.do(claim()) == (NEW,)

    async def test_a_transient_reply_is_neither_held_nor_a_dead_letter(self, opened: Open) -> None:
        async with opened() as store:
            (part_id,) = await post(store, reply(transient=True))
            await store.do(Hold(part_id, PartState.REFUSED, "busy", 3000))
            assert (await held(store), await dead(store)) == ([], 0)

    async def test_a_withdrawn_reply_is_no_dead_letter(self, opened: Open) -> None:
        async with opened() as store:
            ids = await post(store, reply(text("a"), text("b")))
            await store.do(Hold(ids[0], PartState.SKIPPED, "", 3000))
            assert (await open_parts(store), await held(store), await dead(store)) == ((), [], 0)

    async def test_asking_collects_everything_up_to_a_place(self, opened: Open) -> None:
        async with opened() as store:
            ids = await post(store, reply(text("a"), file("one")))
            later = await post(store, reply(text("b"), text("c")))
            foreign = await post(store, reply(), OTHER)
            settled = await store.do(Collect(ACCOUNT, later[0], 3000))
            assert settled == (Settled(False), Settled(True, ("one",)), Settled(False))
            assert [part.part_id for part in await open_parts(store)] == [later[1]]
            assert await store.do(Collect(ACCOUNT, ids[1], 3000)) == ()
            assert [part.part_id for part in await open_parts(store, OTHER)] == list(foreign)

    async def test_asking_for_one_recipient_lists_and_collects_only_theirs(self, opened: Open) -> None:
        async with opened() as store:
            own = await post(store, reply(text("a"), to="me"))
            others = await post(store, reply(text("b"), to="other"))
            own += await post(store, reply(text("c"), to="me"))
            listed = await store.get(OpenParts(ACCOUNT, to="me"))
            assert [part.part_id for part in listed] == list(own)
            assert len(await store.do(Collect(ACCOUNT, own[-1], 3000, "me"))) == 2
            assert [part.part_id for part in await open_parts(store)] == list(others)
            assert await store.get(OpenParts(ACCOUNT, to="me")) == ()

    async def test_a_place_that_is_no_part_of_the_account_collects_nothing(self, opened: Open) -> None:
        async with opened() as store:
            ids = await post(store, reply(text("a")))
            (foreign,) = await post(store, reply(), OTHER)
            for place in (foreign, foreign + 1, 10**17):
                assert await store.do(Collect(ACCOUNT, place, 3000)) == ()
            assert [part.part_id for part in await open_parts(store)] == list(ids)

    async def test_what_waits_is_counted(self, opened: Open) -> None:
        async with opened() as store:
            await store.do(claim(message("a"), message("b"), message("s", MessageState.SEEN)))
            assert await store.get(CountsOf(ACCOUNT)) == Counts(2, 1000, 0, 0, 0)
            await store.do(answer("a", reply(text("x"), text("y"))))
            assert await store.get(CountsOf(ACCOUNT)) == Counts(1, 1000, 2, 0, 0)
            await store.do(answer("b"))
            assert await store.get(CountsOf(ACCOUNT)) == Counts(0, 2000, 2, 0, 0)
            assert await store.get(CountsOf(OTHER)) == Counts(0, 0, 0, 0, 0)

    async def test_how_a_part_ended_can_be_asked_once_it_has(self, opened: Open) -> None:
        async with opened() as store:
            sent, refused = await store.do(Post(ACCOUNT, reply(text("a"), text("b")), 1000))
            assert await store.get(EndOf(sent)) is None
            await store.do(Settle(sent, PartState.SENT, 2000, "om_1"))
            await store.do(Hold(refused, PartState.REFUSED, "", 3000, "no"))
            assert await store.get(EndOf(sent)) == EndedPart(PartState.SENT, 2000, "om_1")
            assert await store.get(EndOf(refused)) == EndedPart(PartState.REFUSED, 3000, "")
            assert await store.get(EndOf(PartId(99))) is None

    async def test_the_open_parts_for_a_reason_are_found_in_all_accounts(self, opened: Open) -> None:
        async with opened() as store:
            (first,) = await store.do(Post(ACCOUNT, reply(text("a")), 1000, "question"))
            (second,) = await store.do(Post(OTHER, reply(text("b"), reply_id="r2"), 1000, "question"))
            await store.do(Post(OTHER, reply(text("c"), reply_id="r3"), 1000, "disk"))
            assert await store.get(OpenPartsFor("question")) == (first, second)
            await store.do(Settle(first, PartState.SENT, 2000))
            assert await store.get(OpenPartsFor("question")) == (second,)
