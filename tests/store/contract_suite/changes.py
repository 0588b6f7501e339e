"""What every backend must do with messages that are taken back or changed."""

from __future__ import annotations

from dataclasses import replace

import pytest

from bridge.ids import ConversationKey, MessageId
from bridge.store.change_steps import RECALLED
from bridge.store.contract import (
    Answer,
    Changed,
    Counts,
    CountsOf,
    Edit,
    HeldText,
    HeldTexts,
    Hold,
    MessageOf,
    MessageState,
    OpenMessages,
    PartState,
    Prune,
    Recall,
    Revive,
    Sending,
    Settle,
    Settled,
    Start,
    Store,
    StoredMessage,
    TakenBack,
)
from tests.store.backends import Open
from tests.store.values import (
    ACCOUNT,
    CHAT,
    DUPLICATE,
    NEW,
    OTHER,
    SESSION,
    answer,
    claim,
    dead,
    file,
    held,
    message,
    open_ids,
    open_parts,
    post,
    reply,
    text,
)

M = MessageId("m")
DONE, LATE = TakenBack(Changed.DONE), TakenBack(Changed.TOO_LATE)
START = Start(ACCOUNT, M, SESSION, 1500)
ELSEWHERE = ConversationKey("elsewhere")


def recall(message_id: str = "m", conversation: ConversationKey | None = CHAT) -> Recall:
    return Recall(ACCOUNT, MessageId(message_id), conversation, 1600)


def edit(revision: int, payload: str = "new", conversation: ConversationKey = CHAT) -> Edit:
    return Edit(ACCOUNT, M, conversation, payload, revision)


async def stored(store: Store, message_id: str = "m") -> StoredMessage | None:
    return await store.get(MessageOf(ACCOUNT, MessageId(message_id)))


class ChangesContract:
    async def test_a_recalled_message_that_waits_never_starts(self, opened: Open) -> None:
        async with opened() as store:
            await store.do(claim(message("m"), message("n")))
            assert await store.do(recall()) == DONE
            assert await store.do(START) is False
            assert await open_ids(store) == ["n"]
            assert await stored(store) == StoredMessage(MessageState.DONE, RECALLED, CHAT, 1000)
            assert await store.do(recall()) == TakenBack(Changed.KNOWN)
        async with opened() as store:
            assert await store.do(claim()) == (DUPLICATE,)
            assert await open_ids(store) == ["n"]

    async def test_a_recalled_message_that_runs_gets_no_answer(self, opened: Open) -> None:
        async with opened() as store:
            await store.do(claim())
            await store.do(START)
            assert await store.do(recall()) == DONE
            assert await store.do(answer(answered=reply())) == ()
            assert await store.get(CountsOf(ACCOUNT)) == Counts(0, 0, 0, 0, 0)

    async def test_an_unsent_reply_to_a_recalled_message_is_dropped_with_its_files(
        self, opened: Open
    ) -> None:
        async with opened() as store:
            await store.do(claim(message("m"), message("n")))
            ids = await store.do(answer(answered=reply(text("a"), text("b"), file("one"), file("two"))))
            other = await store.do(answer("n", reply(reply_id="s")))
            await store.do(Settle(ids[0], PartState.SENT, 1550))
            await store.do(Sending(ids[1], 1560))
            taken = await store.do(recall())
            assert (taken.change, sorted(taken.released)) == (Changed.DONE, ["one", "two"])
            assert [part.part_id for part in await open_parts(store)] == list(other)
            assert await store.do(Sending(ids[2], 1700)) is False
            assert await store.do(Settle(ids[1], PartState.SENT, 1700)) == Settled(True)
            assert await held(store) == []
            counts = await store.get(CountsOf(ACCOUNT))
            assert (counts.dead, counts.waiting, counts.open_parts) == (0, 0, 1)
            assert await stored(store) == StoredMessage(MessageState.DONE, RECALLED, CHAT, 1000)

    @pytest.mark.parametrize(("arrived", "left"), [(False, ["old"]), (True, [])])
    async def test_what_a_recalled_reply_carried_is_held_again_unless_it_arrived(
        self, opened: Open, arrived: bool, left: list[str]
    ) -> None:
        async with opened() as store:
            await lose(store, "old")
            (old,) = [one.held_id for one in await waiting(store)]
            await store.do(claim())
            carrier = reply(text("old and new"), file("f"), carried=(old,), own_text="new")
            ids = await store.do(answer(answered=carrier))
            assert await held(store) == []
            if arrived:
                await store.do(Settle(ids[0], PartState.SENT, 1550))
            assert (await store.do(recall())).released == ("f",)
            assert await held(store) == left

    async def test_what_is_held_of_an_answer_goes_with_its_message(self, opened: Open) -> None:
        async with opened() as store:
            await store.do(claim(message("m"), message("n")))
            for name in ("m", "n"):
                (part_id,) = await store.do(answer(name, reply(text(name), reply_id=name)))
                await store.do(Hold(part_id, PartState.REFUSED, f"lost {name}", 2500))
            assert await store.do(recall()) == DONE
            assert await held(store) == ["lost n"]
            assert await store.do(recall()) == TakenBack(Changed.KNOWN)

    async def test_what_was_given_up_of_an_answer_goes_with_its_message(self, opened: Open) -> None:
        async with opened() as store:
            await store.do(claim())
            ids = await store.do(answer(answered=reply(text("a"), text("b"))))
            await store.do(Settle(ids[0], PartState.UNKNOWN, 1550))
            assert await dead(store) == 1
            assert await store.do(recall()) == DONE
            assert await dead(store) == 0
            assert await store.do(Revive(ids[0], "new", 1700)) is None

    async def test_a_recall_that_comes_first_makes_the_message_a_duplicate(self, opened: Open) -> None:
        async with opened() as store:
            assert await store.do(recall("m", None)) == DONE
            assert await store.do(recall("m", ConversationKey(""))) == TakenBack(Changed.KNOWN)
            assert await store.do(claim(message("m"), message("n"))) == (DUPLICATE, NEW)
            assert await store.do(claim(message("m"), account=OTHER)) == (NEW,)
            await store.do(Prune(2000, 0))
            assert await store.do(claim(message("m"))) == (NEW,)

    async def test_a_recall_from_elsewhere_changes_nothing(self, opened: Open) -> None:
        async with opened() as store:
            await store.do(claim())
            for conversation in (ELSEWHERE, None):
                assert await store.do(recall("m", conversation)) == TakenBack(Changed.OTHER)
            assert await store.do(START) is True

    async def test_what_is_over_cannot_be_recalled(self, opened: Open) -> None:
        async with opened() as store:
            await store.do(claim(message("seen", MessageState.SEEN), message("m")))
            await store.do(answer())
            assert await store.do(recall("seen")) == LATE
            assert await store.do(recall()) == LATE

    async def test_an_edited_message_starts_as_it_is_now(self, opened: Open) -> None:
        async with opened() as store:
            await store.do(claim())
            assert await store.do(edit(7)) is Changed.DONE
            assert await store.do(START) is False
        async with opened() as store:
            (one,) = await store.get(OpenMessages(ACCOUNT))
            assert (one.payload, one.revision, one.state) == ("new", 7, MessageState.CLAIMED)
            assert await store.do(Start(ACCOUNT, M, SESSION, 1500, 7)) is True

    async def test_no_edit_undoes_a_later_one(self, opened: Open) -> None:
        async with opened() as store:
            await store.do(claim())
            assert await store.do(edit(7)) is Changed.DONE
            for revision in (0, 6, 7):
                assert await store.do(edit(revision, "older")) is Changed.KNOWN
            assert await store.do(edit(8, "newest")) is Changed.DONE
            assert [one.payload for one in await store.get(OpenMessages(ACCOUNT))] == ["newest"]

    async def test_only_what_waits_can_be_edited(self, opened: Open) -> None:
        async with opened() as store:
            assert await store.do(edit(1)) is Changed.TOO_LATE
            await store.do(claim())
            assert await store.do(edit(1, conversation=ELSEWHERE)) is Changed.OTHER
            await store.do(START)
            assert await store.do(edit(1)) is Changed.TOO_LATE
            await store.do(answer(answered=reply()))
            assert await store.do(edit(1)) is Changed.TOO_LATE

    async def test_what_was_edited_is_not_ended_by_who_does_not_know_of_it(self, opened: Open) -> None:
        async with opened() as store:
            await store.do(claim())
            await store.do(edit(2))
            assert await store.do(answer(answered=reply())) == ()
            await store.do(answer())
            assert (await store.get(OpenMessages(ACCOUNT)))[0].state is MessageState.CLAIMED
            assert len(await store.do(Answer(ACCOUNT, M, reply(), 2000, revision=2))) == 1

    async def test_what_runs_is_ended_whatever_was_edited_before(self, opened: Open) -> None:
        async with opened() as store:
            await store.do(claim())
            await store.do(edit(2))
            assert await store.do(replace(START, revision=2))
            assert len(await store.do(answer(answered=reply()))) == 1

    async def test_a_message_is_told_as_it_is_stored(self, opened: Open) -> None:
        async with opened() as store:
            assert await stored(store) is None
            await store.do(claim())
            assert await stored(store) == StoredMessage(MessageState.CLAIMED, "", CHAT, 1000)


async def waiting(store: Store) -> tuple[HeldText, ...]:
    return await store.get(HeldTexts(ACCOUNT, CHAT))


async def lose(store: Store, body: str) -> None:
    """Hold a text."""
    (part_id,) = await post(store, reply(text(body), reply_id="lost"))
    await store.do(Hold(part_id, PartState.REFUSED, body, 1100))
