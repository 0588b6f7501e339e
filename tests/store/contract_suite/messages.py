"""What every backend must do with messages: claimed once, started once, answered, forgotten."""

from __future__ import annotations

import asyncio
from dataclasses import replace

import pytest

from bridge.errors import StoreError
from bridge.ids import ConversationKey, MessageId, PartId, SessionId
from bridge.store.change_steps import ALONG, STOPPED
from bridge.store.contract import (
    Bind,
    BindSession,
    ClaimVerdict,
    Counts,
    CountsOf,
    Effect,
    MessageOf,
    MessageState,
    OpenMessage,
    OpenMessages,
    OpenParts,
    PartState,
    Prune,
    Sending,
    SessionOf,
    Settle,
    Start,
    Store,
    Used,
)
from bridge.store.usage_steps import Usage, UsageBy, UsageOf
from tests.store.backends import Open
from tests.store.values import (
    ACCOUNT,
    CHAT,
    CONFLICT,
    DUPLICATE,
    NEW,
    OTHER,
    SESSION,
    answer,
    claim,
    file,
    message,
    open_ids,
    open_parts,
    post,
    reply,
    text,
)


class MessagesContract:
    async def test_a_message_is_new_once(self, opened: Open) -> None:
        async with opened() as store:
            assert await store.do(claim(message("a"), message("b"), message("a"))) == (NEW, NEW, DUPLICATE)
            assert await store.do(claim(message("b"), message("c"))) == (DUPLICATE, NEW)
            assert await store.do(claim(message("a"), account=OTHER)) == (NEW,)
        async with opened() as store:
            assert await store.do(claim(message("a"))) == (DUPLICATE,)
            assert await open_ids(store) == ["a", "b", "c"]

    async def test_of_many_claims_at_once_one_is_new(self, opened: Open) -> None:
        async with opened() as store, asyncio.TaskGroup() as tasks:
            claims = [tasks.create_task(store.do(claim(message(f"m{number % 7}")))) for number in range(100)]
        verdicts = [task.result()[0] for task in claims]
        assert verdicts == [NEW] * 7 + [DUPLICATE] * 93

    async def test_a_redelivery_under_another_id_is_known_by_its_second_key(self, opened: Open) -> None:
        async with opened() as store:
            first = message("a", redelivery="sender 10:00 hello")
            assert await store.do(claim(first)) == (NEW,)
            assert await store.do(claim(message("b", redelivery="sender 10:00 hello"))) == (DUPLICATE,)
            older = message("c", redelivery="sender 09:00 hello")
            both = claim(older, message("d", redelivery="sender 09:00 hello"))
            assert await store.do(both) == (NEW, DUPLICATE)
            assert await store.do(claim(message("e"), message("f"))) == (NEW, NEW)
            assert await open_ids(store) == ["a", "c", "e", "f"]

    async def test_another_body_under_a_known_id_is_a_conflict(self, opened: Open) -> None:
        async with opened() as store:
            verdicts = await store.do(claim(message(digest="1"), message(digest="2"), message(digest="1")))
            assert verdicts == (NEW, CONFLICT, DUPLICATE)
            assert await store.do(claim(message())) == (DUPLICATE,)
            await store.do(claim(message("bare")))
            assert await store.do(claim(message("bare", digest="1"))) == (DUPLICATE,)

    async def test_open_messages_are_listed_in_the_order_of_their_claims(self, opened: Open) -> None:
        async with opened() as store:
            await store.do(
                claim(message("z"), message("seen", MessageState.SEEN), message("a", payload="[1]"))
            )
            await store.do(Start(ACCOUNT, MessageId("a"), SESSION, 1500))
            z, a = await store.get(OpenMessages(ACCOUNT))
            assert z == OpenMessage(MessageId("z"), MessageState.CLAIMED, CHAT, "{}", SessionId(""), 1000)
            assert a == OpenMessage(MessageId("a"), MessageState.RUNNING, CHAT, "[1]", SESSION, 1000)
            assert await store.get(OpenMessages(OTHER)) == ()

    async def test_a_batch_and_its_checkpoint_are_stored_whole_or_not_at_all(self, opened: Open) -> None:
        async with opened() as store:
            await store.do(Bind(ACCOUNT, "one"))
            bad = message("b", payload="\ud800")
            with pytest.raises(StoreError):
                await store.do(claim(message("a"), message("x"), bad, checkpoint="position"))
            assert await open_ids(store) == []
            assert await store.do(Bind(ACCOUNT, "one")) == ""
            assert await store.do(claim(message("a"), checkpoint="position")) == (NEW,)

    async def test_a_batch_of_thousands_is_taken(self, opened: Open) -> None:
        async with opened() as store:
            batch = claim(*(message(str(number)) for number in range(2047)), message("0"))
            assert await store.do(batch) == (*[NEW] * 2047, DUPLICATE)
            assert await open_ids(store) == [str(number) for number in range(2047)]

    async def test_a_message_can_be_answered_as_it_is_claimed(self, opened: Open) -> None:
        async with opened() as store:
            busy = message("busy", MessageState.ANSWERED, reply=reply(text("later"), transient=True))
            assert await store.do(claim(message("a"), busy, message("b"), busy)) == (NEW, NEW, NEW, DUPLICATE)
            assert await open_ids(store) == ["a", "b"]
            (part,) = await open_parts(store)
            assert (part.message_id, part.body, part.transient) == ("busy", "later", True)

    @pytest.mark.parametrize("state", [MessageState.RUNNING, MessageState.DONE, MessageState.ANSWERED])
    async def test_a_message_cannot_be_claimed_in_the_midst_of_its_way(
        self, opened: Open, state: MessageState
    ) -> None:
        async with opened() as store:
            with pytest.raises(StoreError):
                await store.do(claim(message("a", state)))
            with pytest.raises(StoreError):
                await store.do(claim(message("b"), message("c", reply=reply())))
            assert await open_ids(store) == []

    async def test_a_message_starts_once(self, opened: Open) -> None:
        async with opened() as store:
            await store.do(claim(message("m"), message("seen", MessageState.SEEN)))
            start = Start(ACCOUNT, MessageId("m"), SESSION, 1500)
            assert await store.do(start) is True
            assert await store.do(start) is False
            for unknown in ("seen", "other"):
                assert await store.do(Start(ACCOUNT, MessageId(unknown), SESSION, 1500)) is False

    @pytest.mark.parametrize("running", [False, True])
    async def test_an_answer_ends_the_claim_with_its_reply_once(self, opened: Open, running: bool) -> None:
        async with opened() as store:
            await store.do(claim())
            if running:
                await store.do(Start(ACCOUNT, MessageId("m"), SESSION, 1500))
            ids = await store.do(answer(answered=reply(text("a"), text("b"))))
            assert [part.part_id for part in await open_parts(store)] == list(ids)
            assert await open_ids(store) == []
            assert await store.do(answer(answered=reply(text("c")))) == ()
            assert await store.do(answer("other", reply(text("c")))) == ()
            assert len(await open_parts(store)) == 2
            assert await store.do(Start(ACCOUNT, MessageId("m"), SESSION, 1500)) is False

    async def test_an_answer_without_parts_ends_the_message(self, opened: Open) -> None:
        async with opened() as store:
            await store.do(claim(message("a"), message("b")))
            assert await store.do(answer("a")) == ()
            assert await store.do(answer("b", replace(reply(), parts=()))) == ()
            assert await store.get(CountsOf(ACCOUNT)) == Counts(0, 0, 0, 0, 0)

    async def test_what_an_answer_used_is_counted_as_it_ends_its_message_and_else_not(
        self, opened: Open
    ) -> None:
        used = replace(answer("a", reply()), used=Used("u1", "fast", 10, 5, 7))
        async with opened() as store:
            assert await store.do(used) == (), "there is no such message"
            assert await store.get(UsageOf(UsageBy.SENDER, 0)) == ()
            await store.do(claim(message("a"), message("b")))
            for _ in range(2):
                await store.do(used)
            await store.do(answer("b", reply()))
            assert await store.get(UsageOf(UsageBy.SENDER, 0)) == (Usage(ACCOUNT, "u1", 1, 10, 5, 7),)

    async def test_an_id_outlives_its_message(self, opened: Open) -> None:
        async with opened() as store:
            await store.do(claim(message("m", redelivery="key", digest="1")))
            ids = await store.do(answer(answered=reply()))
            await store.do(Settle(ids[0], PartState.SENT, 3000))
            assert await store.do(claim(message("m"))) == (DUPLICATE,)
            assert await store.do(claim(message("n", redelivery="key"))) == (DUPLICATE,)
            assert await store.do(claim(message("m", digest="2"))) == (CONFLICT,)

    async def test_hostile_texts_come_back_as_they_were(self, opened: Open) -> None:
        texts = [
            "",
            "\0",
            "a\0b",
            "'; DROP TABLE messages; --",
            "?1",
            "é",
            "e\u0301",
            "👩‍👩‍👧",
            "x" * 256,
            " a ",
            "\n",
        ]
        async with opened() as store:
            verdicts = await store.do(claim(*(message(one, payload=one) for one in texts)))
            assert verdicts == (NEW,) * len(texts)
            assert await open_ids(store) == texts
            assert [one.payload for one in await store.get(OpenMessages(ACCOUNT))] == texts

    async def test_what_cannot_be_stored_fails_alone(self, opened: Open) -> None:
        async with opened() as store:
            steps = [claim(message(one)) for one in ("a", "\ud800", "b", "a")]
            outcomes: list[object] = []
            async with asyncio.TaskGroup() as tasks:
                for step in steps:
                    tasks.create_task(_noted(store, step, outcomes))
            assert [type(outcome) for outcome in outcomes].count(StoreError) == 1
            assert await open_ids(store) == ["a", "b"]
            with pytest.raises(StoreError):
                await store.do(Sending(PartId(1 << 70), 0))
            with pytest.raises(StoreError):
                await store.get(OpenParts(ACCOUNT, after=1 << 70))

    async def test_pruning_forgets_what_ended_long_ago(self, opened: Open) -> None:
        async with opened() as store:
            await store.do(claim(message("seen", MessageState.SEEN), message("open"), message("done")))
            ids = await store.do(answer("done", reply(text(), file("kept"), file("gone"))))
            for part_id in ids:
                await store.do(Settle(part_id, PartState.SENT, 3000, keep_until_ms=9000))
            half = await post(store, reply(text("c"), text("d")))
            await store.do(Settle(half[0], PartState.SENT, 3000))
            assert await store.do(Prune(1000, 0)) == ()
            assert await store.do(claim(message("seen"))) == (DUPLICATE,)
            assert sorted(await store.do(Prune(3001, 0))) == ["gone", "kept"]
            assert await open_ids(store) == ["open"]
            assert await store.do(claim(message("seen"), message("open"), message("done"))) == (
                NEW,
                DUPLICATE,
                NEW,
            )
            await store.do(Settle(half[1], PartState.SENT, 4000))
            assert [part.part_id for part in await open_parts(store)] == []

    async def test_pruning_is_bounded(self, opened: Open) -> None:
        async with opened() as store:
            await store.do(claim(*(message(str(number), MessageState.SEEN) for number in range(5))))
            await store.do(Prune(2000, 0, limit=3))
            verdicts = await store.do(
                claim(*(message(str(number), MessageState.SEEN) for number in range(5)))
            )
            assert verdicts.count(ClaimVerdict.NEW) == 3

    async def test_what_is_answered_along_with_a_message_is_done_with_it(self, opened: Open) -> None:
        async with opened() as store:
            await store.do(claim(message("a"), message("b"), message("c"), message("d")))
            await store.do(Start(ACCOUNT, MessageId("b"), SESSION, 1500))
            ids = await store.do(replace(answer("c", reply(text("all"))), along=along("a", "b")))
            assert [part.part_id for part in await open_parts(store)] == list(ids)
            assert await open_ids(store) == ["d"]
            assert await ended(store, "a", "b", "c") == [ALONG, ALONG, ""]

    async def test_along_with_a_message_that_is_over_nothing_ends(self, opened: Open) -> None:
        async with opened() as store:
            await store.do(claim(message("a"), message("b")))
            await store.do(answer("b"))
            assert await store.do(replace(answer("b", reply()), along=along("a"))) == ()
            assert await open_ids(store) == ["a"]

    async def test_a_stop_ends_all_that_is_open_in_its_conversation_and_its_repeat_nothing(
        self, opened: Open
    ) -> None:
        stop = message("stop", MessageState.ANSWERED, reply=reply(text("stopped")))
        stop = replace(stop, effect=Effect.STOP)
        async with opened() as store:
            elsewhere = replace(message("z"), conversation=ConversationKey("another"))
            await store.do(claim(message("a"), message("b"), elsewhere))
            await store.do(claim(message("a"), account=OTHER))
            await store.do(Start(ACCOUNT, MessageId("a"), SESSION, 1500))
            assert await store.do(claim(stop, message("later"))) == (NEW, NEW)
            assert await open_ids(store) == ["z", "later"]
            assert await open_ids(store, OTHER) == ["a"]
            assert await ended(store, "a", "b", "stop") == [STOPPED, STOPPED, ""]
            assert await store.do(answer("a", reply())) == (), "its turn's answer comes too late"
            assert await store.do(claim(stop)) == (DUPLICATE,)
            assert await open_ids(store) == ["z", "later"]

    async def test_a_command_can_forget_its_conversation_s_session(self, opened: Open) -> None:
        fresh = replace(message("new", MessageState.ANSWERED, reply=reply()), effect=Effect.FORGET)
        async with opened() as store:
            await store.do(BindSession(ACCOUNT, CHAT, SESSION, "none", 1000))
            await store.do(BindSession(OTHER, CHAT, SESSION, "none", 1000))
            assert await store.do(claim(fresh)) == (NEW,)
            assert await store.get(SessionOf(ACCOUNT, CHAT)) is None
            assert await store.get(SessionOf(OTHER, CHAT)) is not None


def along(*message_ids: str) -> tuple[tuple[MessageId, int], ...]:
    return tuple((MessageId(one), 0) for one in message_ids)


async def ended(store: Store, *message_ids: str) -> list[str]:
    """The reasons that are remembered of messages."""
    found = [await store.get(MessageOf(ACCOUNT, MessageId(one))) for one in message_ids]
    return [one.reason for one in found if one is not None]


async def _noted(store: Store, step: object, outcomes: list[object]) -> None:
    try:
        outcomes.append(await store.do(step))  # type: ignore[arg-type]  # any step
    except StoreError as error:
        outcomes.append(error)
