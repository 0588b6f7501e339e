"""What every backend must do with the owner's last direct chats, and with what was told there."""

from __future__ import annotations

from dataclasses import replace

from bridge.ids import ConversationKey
from bridge.store.contract import Bind, NoteOwner, Notify, OwnerChat, OwnerChats, ToldOf
from tests.store.backends import Open
from tests.store.values import ACCOUNT, OTHER, open_parts, reply, text

CHAT = OwnerChat(ACCOUNT, "u1", ConversationKey("direct"), "to", "handle", "zh", 1000)


def tell(state: str, body: str = "hello", topic: str = "disk") -> Notify:
    return Notify(ACCOUNT, topic, state, reply(text(body)), 3000)


class OwnerChatsContract:
    async def test_the_last_chat_of_each_account_is_remembered_the_latest_first(self, opened: Open) -> None:
        other = replace(CHAT, account=OTHER, wrote_ms=2000)
        moved = replace(CHAT, to="elsewhere", language="en", wrote_ms=3000)
        async with opened() as store:
            assert await store.get(OwnerChats()) == ()
            await store.do(NoteOwner(CHAT))
            await store.do(NoteOwner(other))
            assert await store.get(OwnerChats()) == (other, CHAT)
            await store.do(NoteOwner(moved))
        async with opened() as store:
            assert await store.get(OwnerChats()) == (moved, other)

    async def test_another_identity_of_an_account_has_another_owner(self, opened: Open) -> None:
        async with opened() as store:
            await store.do(Bind(ACCOUNT, "one"))
            await store.do(NoteOwner(CHAT))
            await store.do(NoteOwner(replace(CHAT, account=OTHER)))
            await store.do(Bind(ACCOUNT, "two"))
            assert [chat.account for chat in await store.get(OwnerChats())] == [OTHER]

    async def test_each_change_is_told_once_also_over_a_restart(self, opened: Open) -> None:
        async with opened() as store:
            assert not await store.do(tell(""))
            assert await store.do(tell("full", "it is full"))
            assert not await store.do(tell("full"))
        async with opened() as store:
            assert await store.get(ToldOf("disk")) == "full"
            assert not await store.do(tell("full"))
            assert await store.do(tell("full", "another topic", topic="other"))
            assert await store.do(tell("", "it is not"))
            assert await store.get(ToldOf("disk")) == ""
            assert [part.body for part in await open_parts(store)] == [
                "it is full",
                "another topic",
                "it is not",
            ]
            assert all(part.message_id == "" for part in await open_parts(store))

    async def test_what_nobody_can_be_told_is_remembered_as_told(self, opened: Open) -> None:
        async with opened() as store:
            silent = replace(tell("full"), reply=None)
            assert await store.do(silent)
            assert not await store.do(silent)
            assert not await store.do(tell("full"))
        async with opened() as store:
            assert await store.get(ToldOf("disk")) == "full"
            assert not await open_parts(store)
