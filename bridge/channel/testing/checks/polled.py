"""Checks of ``Polls``: batches follow a checkpoint, come again until it moves, and no item spoils another."""

import pytest

from bridge.channel.contract import Batch, Inbound, Item, Polls, Unreadable
from bridge.channel.testing.checks.stage import MOST_POLLS, Stage, scenario
from bridge.channel.testing.kit import KitMessage, PollsKit


def polled(stage: Stage) -> tuple[Polls, PollsKit]:
    if not isinstance(stage.channel, Polls) or not isinstance(stage.kit, PollsKit):
        pytest.skip("it does not poll")
    return stage.channel, stage.kit


def arrive(stage: Stage, kit: PollsKit, *texts: str) -> None:
    for text in texts:
        kit.arrive(KitMessage(text, sender=stage.kit.person(0), chat=stage.kit.chat(0)))


async def collect(channel: Polls, count: int, checkpoint: str = "") -> tuple[list[Item], list[Batch]]:
    """Poll until ``count`` items came, moving the checkpoint on as the core does."""
    items: list[Item] = []
    batches: list[Batch] = []
    while len(items) < count:
        assert len(batches) < MOST_POLLS, f"{len(items)} of {count} items came in {MOST_POLLS} polls"
        batches.append(await channel.receive(checkpoint))
        items += batches[-1].items
        new = batches[-1].checkpoint
        checkpoint = checkpoint if new is None else new
    return items, batches


def texts_of(items: list[Item]) -> list[str]:
    return [item.text for item in items if isinstance(item, Inbound)]


@scenario
async def test_what_waits_comes_once_and_in_order(stage: Stage) -> None:
    channel, kit = polled(stage)
    arrive(stage, kit, "one", "two", "你好 😀")
    items, batches = await collect(channel, 3)
    assert texts_of(items) == ["one", "two", "你好 😀"]
    ids = {item.message_id for item in items if isinstance(item, Inbound)}
    assert len(ids) == 3, "two messages got one id, so one would be lost"
    arrive(stage, kit, "four")
    more, _ = await collect(channel, 1, _last_checkpoint(batches))
    assert texts_of(more) == ["four"], "what was stored came again, or what is new did not come"


@scenario
async def test_a_batch_comes_again_until_its_checkpoint_is_used(stage: Stage) -> None:
    channel, kit = polled(stage)
    arrive(stage, kit, "one", "two")
    items, batches = await collect(channel, 2)
    if all(batch.checkpoint is None for batch in batches):
        pytest.skip("it keeps no checkpoint")
    other = stage.fresh()
    assert isinstance(other, Polls)
    again, _ = await collect(other, 2)
    assert again == items, "a crash before the items were stored would have lost them"


@scenario
async def test_an_unreadable_item_spoils_no_other(stage: Stage) -> None:
    channel, kit = polled(stage)
    arrive(stage, kit, "before")
    kit.arrive_unreadable()
    arrive(stage, kit, "after")
    items, _ = await collect(channel, 3)
    assert texts_of(items) == ["before", "after"]
    assert sum(isinstance(item, Unreadable) for item in items) == 1, (
        "what cannot be read is an item of its own"
    )


def _last_checkpoint(batches: list[Batch]) -> str:
    return next((batch.checkpoint for batch in reversed(batches) if batch.checkpoint is not None), "")
