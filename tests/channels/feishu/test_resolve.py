import json
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import pytest

from bridge.channel import ChannelError, Context, Http, UnreachableError
from bridge.channel.http import http_session
from bridge.channel.testing.clock import FakeClock
from bridge.channel.testing.fakes.feishu import STRANGER, Bundle, FakeFeishu, FakeFile, Fault, Note, Refusal
from bridge.channel.testing.fakes.feishu.events import forward, write
from channels.feishu.api import Api
from channels.feishu.references import Link
from channels.feishu.resolve import Resolver, Told
from tests.channels.feishu.platform import api_of

PNG = FakeFile("a.png", "image/png", b"\x89PNG\r\n\x1a\n" + bytes(50))
CARD = {"schema": "2.0", "body": {"elements": [{"tag": "markdown", "content": "the **whole** card"}]}}
DIGEST = {"title": None, "elements": [[{"tag": "text", "text": "请升级至最新版本客户端，以查看内容"}]]}


@asynccontextmanager
async def stage() -> AsyncIterator[tuple[FakeFeishu, Resolver, FakeClock]]:
    clock = FakeClock()
    async with FakeFeishu(clock=clock) as fake, http_session() as session:
        api: Api = api_of(fake, Http(session))
        yield fake, Resolver(api, fake.app_id, clock.monotonic), clock


def quote(message_id: str) -> str:
    return Link(quoted=message_id).encode()


async def test_a_quoted_message_comes_with_its_words_and_files() -> None:
    async with stage() as (fake, resolver, _):
        post = write(fake.world, Note("look", files=(PNG,), sender=STRANGER))
        found = await resolver.resolve("om_own", quote(post.message_id))
        assert found.text == "[In reply to ou_fake_stranger: look [Image]]"
        key = json.loads(post.content)["content"][1][0]["image_key"]
        assert [json.loads(file.key) for file in found.files] == [[post.message_id, key, "image"]]


async def test_a_quoted_answer_of_the_bot_is_its_own() -> None:
    async with stage() as (fake, resolver, _):
        own = write(fake.world, Note("my answer", sender=fake.app_id, sender_type="app"))
        assert (
            await resolver.resolve("om_own", quote(own.message_id))
        ).text == "[In reply to you: my answer]"


async def test_case_12_a_quoted_bundle_is_listed_with_all_that_is_inside() -> None:
    async with stage() as (fake, resolver, _):
        inside: Bundle = [
            Note("one", create_ms=1000),
            [Note("two", create_ms=2000), Note(files=(PNG,), create_ms=3000)],
        ]
        bundle = forward(fake.world, inside, Note(sender=STRANGER, create_ms=5000))
        found = await resolver.resolve("om_own", quote(bundle.message_id))
        assert [line.partition(" (")[0] for line in found.text.split("\n")] == [
            "[In reply to messages forwarded by ou_fake_stranger:]",
            "- ou_fake_owner",
            "- ou_fake_owner",
            "  - ou_fake_owner",
            "  - ou_fake_owner",
        ]
        assert json.loads(found.files[0].key)[0] == bundle.message_id
        assert sum(request.startswith("GET") for request in fake.requests) == 1


async def test_case_12_a_failed_look_up_is_a_failure_and_not_an_empty_bundle() -> None:
    async with stage() as (fake, resolver, _):
        bundle = forward(fake.world, [Note("one")], Note())
        fake.next(Fault.BROKEN, at="get")
        with pytest.raises(UnreachableError):
            await resolver.resolve(bundle.message_id, Link(own=True).encode())
        with pytest.raises(ChannelError, match="not in this chat"):
            await resolver.resolve("om_own", quote("om_nowhere"))
        cases: list[dict[str, Any]] = [{}, {"items": []}, {"items": "x"}]
        for data in cases:
            fake.next(Refusal(0, 200, fields={"data": data}), at="get")
            with pytest.raises(ChannelError, match="cannot be read"):
                await resolver.resolve("om_own", quote("om_2"))


async def test_a_quoted_card_is_read_whole_where_the_platform_gives_it() -> None:
    async with stage() as (fake, resolver, _):
        card = write(
            fake.world,
            Note(kind="interactive", content=json.dumps(DIGEST), card=json.dumps(CARD), sender=STRANGER),
        )
        found = await resolver.resolve("om_own", quote(card.message_id))
        assert found.text == "[In reply to ou_fake_stranger: [Card]\nthe **whole** card]"
        fake.next(
            Refusal(0, 200, fields={"data": {"items": [item(card.message_id)]}}), Fault.BROKEN, at="get"
        )
        found = await resolver.resolve("om_own", quote(card.message_id))
        assert found.text == "[In reply to ou_fake_stranger: [Card]\n(its content is shown to people only)]"


async def test_a_card_that_was_sent_itself_is_read_whole() -> None:
    async with stage() as (fake, resolver, _):
        card = write(fake.world, Note(kind="interactive", content=json.dumps(DIGEST), card=json.dumps(CARD)))
        found = await resolver.resolve(card.message_id, Link(own=True).encode())
        assert found.text == "[What this message holds: [Card]\nthe **whole** card]"


def item(message_id: str) -> dict[str, Any]:
    sender = {"id": STRANGER, "id_type": "open_id", "sender_type": "user"}
    body = {"content": json.dumps(DIGEST)}
    return {"message_id": message_id, "msg_type": "interactive", "sender": sender, "body": body}


async def test_a_message_that_was_taken_back_or_deleted_is_said_to_be_so() -> None:
    async with stage() as (fake, resolver, _):
        card = write(fake.world, Note(kind="interactive", content=json.dumps(DIGEST)))
        card.recalled = True
        found = await resolver.resolve("om_own", quote(card.message_id))
        assert found.text == "[In reply to ou_fake_owner: [Message taken back]]"
        assert sum(request.startswith("GET") for request in fake.requests) == 1
        for code in (230011, 230110, 231003):
            fake.next(Refusal(code), at="get")
            found = await resolver.resolve("om_own", quote(card.message_id))
            assert found == Context("[The message that this one replies to was taken back or deleted.]")


async def test_a_threads_first_message_is_told_once_to_each_listener() -> None:
    async with stage() as (fake, resolver, clock):
        root = write(fake.world, Note("the topic"))
        told = Context("[In a thread on a message of ou_fake_owner: the topic]")
        ann, bob = (Link(root=root.message_id, listener=f"omt_1 {who}").encode() for who in ("ann", "bob"))
        assert await resolver.resolve("om_1", ann) == told
        assert await resolver.resolve("om_1", ann) == told  # its turn is tried again
        assert await resolver.resolve("om_2", ann) == Context()
        assert await resolver.resolve("om_3", bob) == told
        await clock.advance(1700)
        assert await resolver.resolve("om_4", ann) == Context()
        await clock.advance(1700)
        assert await resolver.resolve("om_5", ann) == Context()
        await clock.advance(1801)
        assert await resolver.resolve("om_6", ann) == told
        assert await resolver.resolve("om_7", ann) == Context()


async def test_a_quote_within_a_thread_comes_after_what_the_thread_is_on() -> None:
    async with stage() as (fake, resolver, _):
        root, other = write(fake.world, Note("the topic")), write(fake.world, Note("a detail"))
        both = Link(False, other.message_id, root.message_id, "omt_1 ann").encode()
        first = await resolver.resolve("om_1", both)
        assert first.text.split("\n\n") == [
            "[In a thread on a message of ou_fake_owner: the topic]",
            "[In reply to ou_fake_owner: a detail]",
        ]
        assert (await resolver.resolve("om_2", both)).text == "[In reply to ou_fake_owner: a detail]"


async def test_of_several_a_missing_one_is_said_and_tried_with_the_next_message() -> None:
    async with stage() as (fake, resolver, _):
        root, other = write(fake.world, Note("the topic")), write(fake.world, Note("a detail"))
        both = Link(False, other.message_id, root.message_id, "omt_1 ann").encode()
        fake.next(Refusal(230027), at="get")
        found = await resolver.resolve("om_1", both)
        assert found.text.split("\n\n") == [
            "[The message that this thread is on could not be fetched.]",
            "[In reply to ou_fake_owner: a detail]",
        ]
        assert "the topic" in (await resolver.resolve("om_2", both)).text
        fake.next(Refusal(230027), Refusal(230027), at="get")
        with pytest.raises(ChannelError, match="lacks a permission"):
            await resolver.resolve("om_3", Link(False, "om_a", "om_b", "omt_2 ann").encode())


@pytest.mark.parametrize("reference", ["[", "[1]", '["a"'])
async def test_a_reference_of_another_channel_is_refused(reference: str) -> None:
    async with stage() as (fake, resolver, _):
        with pytest.raises(ChannelError, match="not one of this channel"):
            await resolver.resolve("om_1", reference)
        assert fake.requests == []


def test_the_memory_of_listeners_is_bounded() -> None:
    told = Told(lambda: 0.0)
    for n in range(2001):
        told.remember(f"listener {n}", "om_1")
    assert not told.already("listener 0", "om_2")
    assert told.already("listener 1", "om_2")
