"""What every backend must do when it is asked what senders have used of a day."""

from __future__ import annotations

from dataclasses import replace

from bridge.ids import ConversationKey, MessageId
from bridge.store.contract import Claim, MessageState, NewMessage, SenderTurns, Start
from bridge.store.sender_turns import SenderTurn
from tests.store.backends import Open
from tests.store.values import ACCOUNT, CHAT, OTHER, SESSION, answer, message, reply, text

LIMIT = "turns_per_day"
ASK = SenderTurns(ACCOUNT, 1000, (LIMIT,))
ELSEWHERE = ConversationKey("elsewhere")


def told(message_id: str) -> NewMessage:
    return replace(
        message(message_id, MessageState.ANSWERED, reply=reply(text(), reply_id=message_id)), reason=LIMIT
    )


class SenderTurnsContract:
    async def test_turns_that_ran_or_will_run_and_refusals_that_were_told_are_found_after_a_restart(
        self, opened: Open
    ) -> None:
        async with opened() as store:
            assert await store.get(ASK) == ()
            await store.do(Claim(ACCOUNT, (message("ran"), message("dropped")), 1000))
            await store.do(Start(ACCOUNT, MessageId("ran"), SESSION, 1000))
            await store.do(answer("ran", reply(text("done"))))
            await store.do(answer("dropped"))
            await store.do(Claim(ACCOUNT, (replace(message("waits"), conversation=ELSEWHERE),), 2000))
            await store.do(Claim(ACCOUNT, (told("told"), message("seen", MessageState.SEEN)), 3000))
        async with opened() as store:
            assert await store.get(ASK) == (
                SenderTurn(CHAT, 1000),
                SenderTurn(ELSEWHERE, 2000),
                SenderTurn(CHAT, 3000, refused=LIMIT),
            )

    async def test_the_newest_of_the_account_since_then_are_found_the_oldest_first(
        self, opened: Open
    ) -> None:
        async with opened() as store:
            for at, name in enumerate("abcd"):
                await store.do(Claim(ACCOUNT, (message(name),), at * 1000))
                await store.do(Claim(OTHER, (message(name),), at * 1000))
            found = await store.get(replace(ASK, since_ms=2000))
            assert [turn.received_ms for turn in found] == [2000, 3000]
            assert [turn.received_ms for turn in await store.get(replace(ASK, limit=1))] == [3000]
