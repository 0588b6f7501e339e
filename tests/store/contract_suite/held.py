"""What every backend must do with texts that never arrived."""

from __future__ import annotations

import pytest

from bridge.ids import ConversationKey, PartId
from bridge.store.contract import (
    CountsOf,
    HeldTexts,
    Hold,
    NewPart,
    PartKind,
    PartState,
    Prune,
    Settle,
    Store,
)
from tests.store.backends import Open
from tests.store.values import (
    ACCOUNT,
    CHAT,
    dead,
    file,
    held,
    post,
    reply,
    text,
)

DAY_MS = 24 * 3600 * 1000


class HeldContract:
    async def _refused(
        self, store: Store, body: str, now_ms: int = 3000, chat: ConversationKey = CHAT
    ) -> None:
        ids = await post(store, reply(text(body), chat=chat))
        await store.do(Hold(ids[0], PartState.REFUSED, body, now_ms))

    async def _carry(self, store: Store, *parts: NewPart, own_text: str = "own") -> tuple[PartId, ...]:
        waiting = await store.get(HeldTexts(ACCOUNT, CHAT))
        carried = tuple(one.held_id for one in waiting)
        new = parts or (text("all"),)
        return await post(store, reply(*new, carried=carried, own_text=own_text))

    async def test_what_was_refused_waits_oldest_first(self, opened: Open) -> None:
        async with opened() as store:
            await self._refused(store, "a", 3000)
            await self._refused(store, "b", 4000)
        async with opened() as store:
            waiting = await store.get(HeldTexts(ACCOUNT, CHAT))
            assert [(one.text, one.created_ms) for one in waiting] == [("a", 3000), ("b", 4000)]
            assert await held(store, ConversationKey("other")) == []
            assert (await store.get(CountsOf(ACCOUNT))).held == 2

    async def test_a_carried_text_is_gone_once_its_carrier_arrived(self, opened: Open) -> None:
        async with opened() as store:
            await self._refused(store, "a")
            await self._refused(store, "b")
            assert await dead(store) == 2
            (part_id,) = await self._carry(store)
            assert (await held(store), await dead(store)) == ([], 2)
            await store.do(Settle(part_id, PartState.SENT, 4000))
            assert (await held(store), await dead(store)) == ([], 0)

    async def test_a_refused_carrier_leaves_all_of_it_held_in_order(self, opened: Open) -> None:
        async with opened() as store:
            await self._refused(store, "a")
            (part_id,) = await self._carry(store, own_text="own")
            await store.do(Hold(part_id, PartState.REFUSED, "earlier: a, latest: own", 4000))
            assert (await held(store), await dead(store)) == (["a", "own"], 2)
            (again,) = await self._carry(store)
            await store.do(Settle(again, PartState.SENT, 5000))
            assert (await held(store), await dead(store)) == ([], 0)

    async def test_a_long_own_text_is_cut_before_it_is_held(self, opened: Open) -> None:
        async with opened() as store:
            await self._refused(store, "a")
            (part_id,) = await self._carry(store, own_text="é" * 5000)
            await store.do(Hold(part_id, PartState.REFUSED, "all", 4000))
            own = (await held(store))[1]
            assert own.startswith("é" * 4000)
            assert 8190 <= len(own.encode()) <= 8192

    async def test_a_withdrawn_carrier_gives_back_what_it_carried(self, opened: Open) -> None:
        async with opened() as store:
            await self._refused(store, "a")
            (part_id,) = await self._carry(store)
            await store.do(Hold(part_id, PartState.SKIPPED, "", 4000))
            assert await held(store) == ["a"]

    async def test_a_carrier_whose_text_arrived_has_delivered(self, opened: Open) -> None:
        async with opened() as store:
            await self._refused(store, "a")
            ids = await self._carry(store, text("all"), file("{}"))
            await store.do(Settle(ids[0], PartState.SENT, 4000))
            assert await dead(store) == 1
            await store.do(Hold(ids[1], PartState.REFUSED, "", 4000))
            assert (await held(store), await dead(store)) == ([], 1)

    @pytest.mark.parametrize("state", [PartState.UNKNOWN, PartState.EXPIRED])
    async def test_a_carrier_that_may_not_have_arrived_gives_back(
        self, opened: Open, state: PartState
    ) -> None:
        async with opened() as store:
            await self._refused(store, "a")
            (part_id,) = await self._carry(store)
            await store.do(Settle(part_id, state, 4000))
            assert await held(store) == ["a"]

    async def test_a_transient_carrier_gives_back_and_is_not_held_itself(self, opened: Open) -> None:
        async with opened() as store:
            await self._refused(store, "a")
            (waiting,) = await store.get(HeldTexts(ACCOUNT, CHAT))
            carrier = reply(transient=True, carried=(waiting.held_id,), own_text="busy")
            (part_id,) = await post(store, carrier)
            await store.do(Hold(part_id, PartState.REFUSED, "busy", 4000))
            assert await held(store) == ["a"]

    async def test_what_cannot_be_carried_is_left_alone(self, opened: Open) -> None:
        elsewhere = ConversationKey("elsewhere")
        async with opened() as store:
            await self._refused(store, "a", chat=elsewhere)
            waiting = await store.get(HeldTexts(ACCOUNT, elsewhere))
            stranger = reply(carried=(waiting[0].held_id, 999))
            (part_id,) = await post(store, stranger)
            assert await held(store, elsewhere) == ["a"]
            await store.do(Settle(part_id, PartState.REFUSED, 4000))
            assert await held(store, elsewhere) == ["a"]

    async def test_a_conversation_keeps_its_newest_four(self, opened: Open) -> None:
        async with opened() as store:
            for body in "abcdef":
                await self._refused(store, body)
            await self._refused(store, "z", chat=ConversationKey("other"))
            assert await held(store) == ["c", "d", "e", "f"]

    async def test_a_conversation_keeps_its_newest_32_kib(self, opened: Open) -> None:
        async with opened() as store:
            await self._refused(store, "a")
            for body in "bcd":
                await self._refused(store, body * 10_923)
            assert [one[0] for one in await held(store)] == ["c", "d"]
            await self._refused(store, "é" * 5461)  # exactly 32 KiB of UTF-8 with the two before
            assert [one[0] for one in await held(store)] == ["c", "d", "é"]
            await self._refused(store, "e")
            assert [one[0] for one in await held(store)] == ["d", "é", "e"]

    async def test_an_account_keeps_its_newest_128(self, opened: Open) -> None:
        async with opened() as store:
            for number in range(130):
                await self._refused(store, str(number), chat=ConversationKey(f"chat {number}"))
            assert (await store.get(CountsOf(ACCOUNT))).held == 128
            assert await held(store, ConversationKey("chat 1")) == []
            assert await held(store, ConversationKey("chat 2")) == ["2"]

    async def test_after_seven_days_a_held_text_is_dropped(self, opened: Open) -> None:
        async with opened() as store:
            await self._refused(store, "a", 3000)
            await self._refused(store, "b", 3001)
            await self._refused(store, "c", 3001 + 7 * DAY_MS)
            assert await held(store) == ["b", "c"]
            await store.do(Prune(0, 3002))
            assert await held(store) == ["c"]

    async def test_what_is_carried_is_not_pruned(self, opened: Open) -> None:
        async with opened() as store:
            await self._refused(store, "a")
            (part_id,) = await self._carry(store)
            await store.do(Prune(0, 9000))
            await store.do(Hold(part_id, PartState.REFUSED, "x", 9000))
            assert await held(store) == ["a", "own"]

    async def test_a_carrier_of_nothing_else_that_never_arrived_gives_back_what_it_carried(
        self, opened: Open
    ) -> None:
        async with opened() as store:
            await self._refused(store, "a")
            ids = await self._carry(store, text("earlier"), text("a"), own_text="")
            await store.do(Hold(ids[0], PartState.REFUSED, "earlier\na", 4000))
            assert (await held(store), await dead(store)) == (["a"], 1)

    async def test_what_is_left_of_a_carrier_of_nothing_else_takes_the_place_of_what_it_carried(
        self, opened: Open
    ) -> None:
        async with opened() as store:
            await self._refused(store, "a and the rest")
            await self._refused(store, "b")
            (first, _) = await store.get(HeldTexts(ACCOUNT, CHAT))
            carrier = reply(text("a"), text("and the rest"), carried=(first.held_id,), own_text="")
            ids = await post(store, carrier)
            await store.do(Settle(ids[0], PartState.SENT, 4000))
            await store.do(Hold(ids[1], PartState.REFUSED, "and the rest", 4001))
            left, _ = await store.get(HeldTexts(ACCOUNT, CHAT))
            assert (left.held_id, left.text, left.created_ms) == (first.held_id, "and the rest", 3000)
            assert (await held(store), await dead(store)) == (["and the rest", "b"], 2)

    @pytest.mark.parametrize("second", [text("rest"), file("{}")], ids=["a text", "a file"])
    async def test_a_carrier_has_delivered_when_any_of_its_texts_arrived(
        self, opened: Open, second: NewPart
    ) -> None:
        async with opened() as store:
            await self._refused(store, "a")
            ids = await self._carry(store, text("all"), second)
            await store.do(Settle(ids[0], PartState.UNKNOWN, 4000))
            await store.do(Settle(ids[1], PartState.SENT, 4001))
            assert await held(store) == ([] if second.kind is PartKind.TEXT else ["a"])
