"""What every backend must do with dead letters: parts that were given up."""

from __future__ import annotations

import pytest

from bridge.ids import PartId
from bridge.store.contract import (
    Bury,
    DeadLetter,
    DeadLetters,
    HeldTexts,
    Hold,
    Mark,
    PartState,
    Post,
    Revive,
    Revived,
    Settle,
    Store,
)
from tests.store.backends import Open
from tests.store.values import ACCOUNT, CHAT, OTHER, dead, file, held, open_parts, post, reply, text


async def letters(store: Store, account: str = "") -> list[DeadLetter]:
    return list(await store.get(DeadLetters(account)))


async def given_up(store: Store, body: str = "hello", now_ms: int = 3000) -> PartId:
    (part_id,) = await post(store, reply(text(body)))
    await store.do(Hold(part_id, PartState.REFUSED, body, now_ms, "too long"))
    return part_id


class DeadContract:
    async def test_a_part_that_was_given_up_is_listed_with_what_it_was(self, opened: Open) -> None:
        async with opened() as store:
            part_id = await given_up(store, "你好")
            (one,) = await letters(store)
            assert one == DeadLetter(
                part_id, ACCOUNT, "to", "text", "refused", "too long", "你好", 6, 2000, 3000
            )
            assert await letters(store, OTHER) == []
            assert await letters(store, ACCOUNT) == [one]

    async def test_a_dead_file_is_listed_by_its_name(self, opened: Open) -> None:
        async with opened() as store:
            (part_id,) = await post(store, reply(file('{"path": "/x/a", "name": "图.png", "size": 7}')))
            await store.do(Settle(part_id, PartState.REFUSED, 3000))
            (one,) = await letters(store)
            assert (one.kind, one.text, one.size) == ("file", "图.png", 7)
            assert await store.do(Revive(part_id, "new", 4000)) is None

    async def test_a_letter_is_sent_once_more_with_what_was_skipped_behind_it(self, opened: Open) -> None:
        async with opened() as store:
            ids = await post(store, reply(text("a"), text("b"), text("c"), file('{"path": "/x"}')))
            await store.do(Settle(ids[0], PartState.SENT, 3000))
            await store.do(Hold(ids[1], PartState.EXPIRED, "b\nc", 3000))
            assert await store.do(Revive(ids[1], "new", 4000)) == Revived(ACCOUNT, "new")
            parts = await open_parts(store)
            assert [(one.body, one.part, one.parts, one.to, one.reply_to) for one in parts] == [
                ("b", 0, 2, "to", "handle"),
                ("c", 1, 2, "to", "handle"),
            ]
            assert len({one.client_id for one in parts}) == 2
            assert all(len(one.client_id) == 32 for one in parts)
            assert {one.message_id for one in parts} == {""}
            assert (await dead(store), await held(store)) == (0, [])
            assert await store.do(Revive(ids[1], "again", 5000)) is None

    async def test_what_may_have_arrived_is_sent_once_more_with_a_mark(self, opened: Open) -> None:
        async with opened() as store:
            ids = await post(store, reply(text("a"), text("b"), text("c")))
            await store.do(Settle(ids[0], PartState.UNKNOWN, 3000))
            await store.do(Mark(ids[1], "other id", 3000))
            await store.do(Hold(ids[1], PartState.REFUSED, "b\nc", 3000))
            await store.do(Revive(ids[0], "new", 4000))
            assert [(one.body, one.marked) for one in await open_parts(store)] == [
                ("a", True), ("b", True), ("c", False),
            ]  # fmt: skip

    async def test_what_was_sent_once_more_with_one_letter_is_not_with_another(self, opened: Open) -> None:
        async with opened() as store:
            ids = await post(store, reply(text("a"), text("b"), text("c")))
            await store.do(Settle(ids[0], PartState.UNKNOWN, 3000))
            await store.do(Hold(ids[1], PartState.REFUSED, "b\nc", 3000))
            for letter, reply_id in ((ids[1], "new"), (ids[0], "newer")):
                await store.do(Revive(letter, reply_id, 4000))
            assert [one.body for one in await open_parts(store)] == ["b", "c", "a"]

    async def test_a_letter_whose_text_rides_in_a_reply_is_left_alone(self, opened: Open) -> None:
        async with opened() as store:
            part_id = await given_up(store)
            (waiting,) = await store.get(HeldTexts(ACCOUNT, CHAT))
            await store.do(Post(ACCOUNT, reply(text("all"), carried=(waiting.held_id,), own_text="x"), 3500))
            assert await store.do(Revive(part_id, "new", 4000)) is None
            assert await dead(store) == 1

    async def test_what_is_no_dead_letter_is_not_sent_again(self, opened: Open) -> None:
        async with opened() as store:
            (part_id,) = await post(store, reply())
            assert await store.do(Revive(part_id, "new", 4000)) is None
            assert await store.do(Revive(PartId(999), "new", 4000)) is None

    async def test_letters_are_forgotten_with_what_was_held_of_them(self, opened: Open) -> None:
        async with opened() as store:
            first, second = await given_up(store, "a"), await given_up(store, "b")
            assert await store.do(Bury((first, PartId(999)))) == 1
            assert (await dead(store), await held(store)) == (1, ["b"])
            assert await store.do(Bury((first,))) == 0
            assert await store.do(Bury((second, second))) == 1
            assert (await letters(store), await held(store)) == ([], [])

    async def test_a_letter_is_forgotten_without_what_is_held_of_another(self, opened: Open) -> None:
        async with opened() as store:
            ids = await post(store, reply(text("a"), text("b")))
            await store.do(Settle(ids[0], PartState.UNKNOWN, 3000))
            await store.do(Hold(ids[1], PartState.REFUSED, "b", 3000))
            assert await store.do(Bury((ids[0],))) == 1
            assert (await dead(store), await held(store)) == (1, ["b"])
            assert await store.do(Bury((ids[1],))) == 1
            assert (await dead(store), await held(store)) == (0, [])

    async def test_letters_are_forgotten_by_their_age(self, opened: Open) -> None:
        async with opened() as store:
            await given_up(store, "old", 3000)
            await given_up(store, "new", 9000)
            assert await store.do(Bury(before_ms=9000)) == 1
            assert [one.text for one in await letters(store)] == ["new"]

    @pytest.mark.parametrize(("after", "limit", "expected"), [(0, 2, ["a", "b"]), (2, 9, ["c"])])
    async def test_letters_come_in_pages(
        self, opened: Open, after: int, limit: int, expected: list[str]
    ) -> None:
        async with opened() as store:
            for body in "abc":
                await given_up(store, body)
            page = await store.get(DeadLetters("", after, limit))
            assert [one.text for one in page] == expected
