"""Texts of our own into an owner's chat."""

from pathlib import Path

from bridge.channel.testing.clock import FakeClock
from bridge.ids import AccountId, ConversationKey
from bridge.relay.unprompted import note_to, say_in
from bridge.store.contract import OpenParts, OwnerChat
from bridge.store.sqlite import open_store
from bridge.store.workers import InlineWorker

A = AccountId("test:a")
CHAT = OwnerChat(A, "u1", ConversationKey("c"), "to", "handle", "en", 1000)


class Bot:
    def __init__(self) -> None:
        self.told: list[str] = []

    async def deliver(self, reply_id: str) -> None:
        self.told.append(reply_id)


async def test_it_goes_out_at_once_where_the_account_can_and_else_with_its_next_run(tmp_path: Path) -> None:
    async with open_store(tmp_path / "db", workers=InlineWorker) as store:
        bot = Bot()
        first = await say_in(CHAT, "one", "why", bot, store, FakeClock())
        second = await say_in(CHAT, "two", "why", None, store, FakeClock())
        assert bot.told == [first.reply_id]
        parts = await store.get(OpenParts(A))
        assert [(part.reply_id, part.part_id) for part in parts] == [
            (one.reply_id, one.part_id) for one in (first, second)
        ]
        assert [(part.to, part.reply_to, part.notice, part.transient) for part in parts] == [
            ("to", "", "why", True)
        ] * 2


def test_a_note_that_must_arrive_is_held_when_it_is_refused() -> None:
    assert not note_to(CHAT, "text").transient
