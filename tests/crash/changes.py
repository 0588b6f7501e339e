"""People who take back what they wrote, or change it."""

import asyncio
import json
import random
import time
from dataclasses import dataclass

from bridge.channel.testing.fakes.feishu import FakeFeishu
from bridge.channel.testing.fakes.webhook import FakeWebhookClient, message_event
from tests.crash.journal import Message
from tests.crash.wishes import EDITED

RECALLED, EDITED_SHARE, FIRST = 0.12, 0.08, 0.04  # of all messages; FIRST: their recall comes before them
SOON_SECONDS = 0.15  # a message is changed before it was answered, more often than not


@dataclass
class Changes:
    """``is_changed`` tells which messages are; the others may be repeated."""

    rng: random.Random

    async def feishu(self, fake: FakeFeishu, message: Message, text: str) -> bool:
        """Perhaps change a message that was sent."""
        recall = await self._chosen()
        if recall is None:
            return False
        if recall:
            push = await fake.recall(message.message_id)
        else:
            push = await fake.edit(message.message_id, text + EDITED)
        await push.over.wait()
        if recall and push.acknowledged:
            message.recalled_at = time.monotonic()
        return True

    async def webhook(self, client: FakeWebhookClient, message: Message, text: str) -> bool:
        """As ``feishu``."""
        recall = await self._chosen()
        if recall:
            await self._delete(client, message)
        elif recall is not None:
            body = message_event(text + EDITED, **about(message), is_direct=True, revision=1)
            await client.deliver(body.replace(b"message.created", b"message.updated"))
        return recall is not None

    async def webhook_first(self, client: FakeWebhookClient, message: Message) -> bool:
        """Perhaps take back a message that is still to come."""
        if self.rng.random() >= FIRST:
            return False
        await self._delete(client, message)
        message.recalled_first = message.recalled_at > 0
        return True

    async def _delete(self, client: FakeWebhookClient, message: Message) -> None:
        event = {"type": "message.deleted", "data": about(message)}
        if (await client.deliver(json.dumps(event).encode())).acknowledged:
            message.recalled_at = time.monotonic()

    async def _chosen(self) -> bool | None:
        """True to take it back, False to edit it, None to let it be; after a moment, as its turn begins."""
        chance = self.rng.random()
        if chance >= RECALLED + EDITED_SHARE:
            return None
        await asyncio.sleep(self.rng.random() ** 2 * SOON_SECONDS)
        return chance < RECALLED


def about(message: Message) -> dict[str, object]:
    """Which message of a system an event is about."""
    return {
        "conversation_id": f"conversation-of-{message.sender}",
        "message_id": message.handle,
        "webhook_id": message.message_id,
        "sender": {"id": message.sender},
    }
