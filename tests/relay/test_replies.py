"""How messages end, with a running account around them; ``test_conversation`` shows what for."""

from dataclasses import replace

from bridge.channel import Refused
from bridge.channel.testing.clock import settle, until
from bridge.clock import unix_ms
from bridge.ids import MessageId
from bridge.protocol.shared import ReplyAttachment
from bridge.relay.replies import Replies
from bridge.relay.session import Ended, TurnResult
from bridge.relay.texts import Language, Text, say
from bridge.relay.work import Message
from bridge.store.change_steps import ALONG
from bridge.store.contract import (
    Claim,
    HeldTexts,
    HoursOf,
    MessageOf,
    MessageState,
    NewMessage,
    OpenMessages,
    Recall,
    Used,
)
from tests.relay.harness import NAME, Desk, desk, message
from tests.relay.test_conversation import key_of


async def claimed(here: Desk, *message_ids: str, text: str = "hello") -> list[Message]:
    """Messages as they are worked on, which no conversation knows of."""
    run, now_ms = here.account._run, unix_ms(here.clock.now())
    assert run is not None
    new = [NewMessage(MessageId(one), MessageState.CLAIMED, conversation=key_of()) for one in message_ids]
    await here.store.do(Claim(NAME, tuple(new), now_ms))
    return [run.work.claimed(one.message_id, message(one.message_id, text), now_ms, now_ms) for one in new]


def replies(here: Desk) -> Replies:
    assert here.account._run is not None
    return Replies(key_of(), here.account._run.work)


async def reasons(here: Desk, *message_ids: str) -> list[str]:
    stored = [await here.store.get(MessageOf(NAME, MessageId(one))) for one in message_ids]
    return [one.reason for one in stored if one is not None]


async def test_several_messages_are_answered_by_one_reply_to_the_last() -> None:
    async with desk() as here:
        await replies(here).answer(await claimed(here, "a", "b"), TurnResult(Ended.COMPLETED, "both"))
        assert await here.answered(1) == ["both"]
        assert [part.reply_to for part in here.channel.sent] == ["b"]
        assert await reasons(here, "a", "b") == [ALONG, ""]
        assert await here.store.get(OpenMessages(NAME)) == ()


async def test_a_message_that_is_over_leaves_the_reply_to_the_one_before_it() -> None:
    async with desk() as here:
        both = await claimed(here, "a", "b")
        await here.store.do(Recall(NAME, MessageId("b"), key_of(), 0))
        await replies(here).answer(both, TurnResult(Ended.COMPLETED, "text"))
        assert await here.answered(1) == ["text"]
        assert [part.reply_to for part in here.channel.sent] == ["a"]


async def test_the_files_of_a_reply_that_nobody_takes_any_more_are_removed() -> None:
    async with desk() as here:
        path = here.home.outbox / "a.txt"
        path.write_bytes(b"data")
        file = ReplyAttachment(path=str(path), name="a.txt", mime="text/plain", size=4, caption="")
        gone = await claimed(here, "a")
        await here.store.do(Recall(NAME, MessageId("a"), key_of(), 0))
        await replies(here).answer(gone, TurnResult(Ended.COMPLETED, "text", (file,)))
        await until(lambda: not path.exists())
        assert here.channel.sent == []


async def test_a_message_can_end_in_silence() -> None:
    async with desk() as here:
        await replies(here).store(await claimed(here, "a"), None, "why")
        await settle()
        assert here.channel.sent == []
        assert await reasons(here, "a") == ["why"]


async def test_a_text_of_ours_is_in_the_language_of_what_was_written_last() -> None:
    async with desk() as here:
        first, second = await claimed(here, "a", "b")
        chinese = replace(first, inbound=message("a", "你好"))
        await replies(here).say([chinese, second], Text.UNREADABLE_SIZE, limit=5)
        assert await here.answered(1) == [say(Text.UNREADABLE_SIZE, Language.ZH, limit=5)]


async def test_missed_messages_are_listed_in_one_notice_which_ends_the_first() -> None:
    async with desk() as here:
        both = await claimed(here, "a", "b")
        assert await replies(here).say_missed(both) is True
        assert (await here.answered(1))[0].count("hello") == 2
        assert [one.message_id for one in await here.store.get(OpenMessages(NAME))] == ["b"]
        assert await replies(here).say_missed(both) is False


async def test_held_texts_that_do_not_fit_leave_ahead_of_the_reply() -> None:
    async with desk(limits={"part_bytes": 1024}) as here:
        here.channel.outcomes = [Refused("no")]
        await replies(here).answer(await claimed(here, "a"), TurnResult(Ended.COMPLETED, "x" * 900))
        await here.answered(1)
        assert len(await here.store.get(HeldTexts(NAME, key_of()))) == 1
        await replies(here).answer(await claimed(here, "b"), TurnResult(Ended.COMPLETED, "y" * 900))
        said = await here.answered(3)
        assert "x" * 900 in said[1]
        assert "y" * 900 in said[2]


async def test_what_a_turn_used_is_counted_with_the_end_of_its_claim_or_by_itself() -> None:
    async with desk() as here:
        used = Used("u-owner", "fast", 3, 4, 5)
        ending, alone = replies(here), replies(here)
        (first,) = await claimed(here, "m1")
        ending.owe(used)
        await ending.say([first], Text.FAILURE)
        await ending.settle()  # it is paid already
        alone.owe(used)
        await alone.settle()
        await alone.settle()
        hours = await here.store.get(HoursOf(NAME, 0))
        assert sum(one.tokens for one in hours) == 2 * (3 + 4)


async def test_others_words_end_a_claim_in_as_many_parts_as_they_take() -> None:
    async with desk(limits={"part_bytes": 1024}) as here:
        (one,) = await claimed(here, "m1")
        await replies(here).tell([one], "x" * 900 + "\n\n" + "y" * 900, "no_model")
        first, second = await here.answered(2)
        assert "x" * 900 in first
        assert "y" * 900 in second
        assert await reasons(here, "m1") == ["no_model"]
