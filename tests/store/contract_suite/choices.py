"""What every backend must do with what was chosen in conversations."""

from __future__ import annotations

from bridge.ids import ConversationKey
from bridge.store.contract import Bind, Choose, Chosen, ChosenIn, Forget, UnbindSession
from tests.store.backends import Open
from tests.store.values import ACCOUNT, CHAT, OTHER

FAST = Chosen("fast", "small", "plan", "/work")


class ChoicesContract:
    async def test_what_was_chosen_is_kept_for_its_conversation_alone(self, opened: Open) -> None:
        async with opened() as store:
            assert await store.get(ChosenIn(ACCOUNT, CHAT)) == Chosen()
            await store.do(Choose(ACCOUNT, CHAT, Chosen(agent="slow")))
            await store.do(Choose(ACCOUNT, CHAT, FAST))
            await store.do(UnbindSession(ACCOUNT, CHAT))
        async with opened() as store:
            assert await store.get(ChosenIn(ACCOUNT, CHAT)) == FAST
            assert await store.get(ChosenIn(OTHER, CHAT)) == Chosen()
            assert await store.get(ChosenIn(ACCOUNT, ConversationKey("another"))) == Chosen()

    async def test_a_choice_can_be_taken_back(self, opened: Open) -> None:
        async with opened() as store:
            await store.do(Choose(ACCOUNT, CHAT, FAST))
            for _ in range(2):
                await store.do(Choose(ACCOUNT, CHAT, Chosen()))
                assert await store.get(ChosenIn(ACCOUNT, CHAT)) == Chosen()

    async def test_another_identity_of_an_account_has_chosen_nothing(self, opened: Open) -> None:
        async with opened() as store:
            await store.do(Bind(ACCOUNT, "one"))
            await store.do(Choose(ACCOUNT, CHAT, FAST))
            await store.do(Choose(OTHER, CHAT, FAST))
            await store.do(Bind(ACCOUNT, "two"))
            assert await store.get(ChosenIn(ACCOUNT, CHAT)) == Chosen()
            assert await store.get(ChosenIn(OTHER, CHAT)) == FAST

    async def test_many_choices_of_an_account_go_in_small_pieces(self, opened: Open) -> None:
        chats = [ConversationKey(name) for name in "abc"]
        async with opened() as store:
            for chat in chats:
                await store.do(Choose(ACCOUNT, chat, FAST))
            first = await store.do(Forget(ACCOUNT, 0, 2))
            assert first.after is not None
            left = [chat for chat in chats if await store.get(ChosenIn(ACCOUNT, chat)) != Chosen()]
            assert len(left) == 1
            while (await store.do(Forget(ACCOUNT, 0, 2))).after is not None:
                pass
            assert await store.get(ChosenIn(ACCOUNT, left[0])) == Chosen()
