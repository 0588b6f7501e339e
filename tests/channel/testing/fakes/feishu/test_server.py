from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from email.utils import parsedate_to_datetime

import aiohttp
import pytest
from aiohttp import web

from bridge.channel.testing.clock import START, FakeClock, settle
from bridge.channel.testing.fakes.feishu import (
    OWNER,
    STRANGER,
    Button,
    FakeFeishu,
    Fault,
    Note,
    Refusal,
    Sent,
    throttled,
)
from bridge.channel.testing.fakes.feishu.events import write
from bridge.channel.testing.fakes.feishu.registration import PATH

INFO = "/open-apis/bot/v3/info"


@asynccontextmanager
async def bot(*statuses: int) -> AsyncIterator[tuple[str, list[bytes]]]:
    """Takes what is pushed and answers with ``statuses``, then with 200."""
    came: list[bytes] = []
    left = [*statuses]

    async def take(request: web.Request) -> web.Response:
        came.append(await request.read())
        return web.Response(status=left.pop(0) if left else 200)

    app = web.Application()
    app.router.add_post("/", take)
    runner = web.AppRunner(app, access_log=None)
    await runner.setup()
    try:
        await web.TCPSite(runner, "127.0.0.1", 0).start()
        yield f"http://127.0.0.1:{runner.addresses[0][1]}/", came
    finally:
        await runner.cleanup()


async def get(fake: FakeFeishu, session: aiohttp.ClientSession) -> tuple[int, str]:
    async with session.get(fake.base + INFO) as answer:
        return answer.status, await answer.text()


async def test_each_fault_befalls_one_request() -> None:
    async with FakeFeishu() as fake, aiohttp.ClientSession() as session:
        fake.next(Fault.BROKEN, Refusal(7, 418, "why", {"X-A": "b"}, {"data": 1}), throttled(7), at="info")
        assert (await get(fake, session))[0] == 502
        async with session.get(fake.base + INFO) as answer:
            assert (answer.status, answer.headers["X-A"]) == (418, "b")
            assert await answer.json() == {"code": 7, "msg": "why", "data": 1}
        async with session.get(fake.base + INFO) as answer:
            assert (answer.status, answer.headers["x-ogw-ratelimit-reset"]) == (429, "7")
        assert (await get(fake, session))[
            1
        ] == '{"code": 99991661, "msg": "Missing access token for authorization."}'
        assert fake.requests == [f"GET {INFO}"] * 4


@pytest.mark.parametrize(("fault", "calls"), [(Fault.DROP, 0), (Fault.DROP_AFTER, 1)])
async def test_a_connection_can_close_before_or_after_the_work(fault: Fault, calls: int) -> None:
    async with FakeFeishu() as fake, aiohttp.ClientSession() as session:
        fake.next(fault, at="token")
        body = {"app_id": fake.app_id, "app_secret": fake.app_secret}
        with pytest.raises(aiohttp.ClientError):
            await session.post(f"{fake.base}/open-apis/auth/v3/tenant_access_token/internal", json=body)
        assert fake.interface.token_calls == calls


async def test_it_can_stall_and_still_end() -> None:
    async with FakeFeishu() as fake, aiohttp.ClientSession() as session:
        fake.next(Fault.STALL, at="info")
        with pytest.raises(TimeoutError):
            await session.get(fake.base + INFO, timeout=aiohttp.ClientTimeout(total=0.1))


async def test_garbage_is_an_answer_that_is_none() -> None:
    async with FakeFeishu() as fake, aiohttp.ClientSession() as session:
        fake.next(Fault.GARBAGE, at="token")
        body = {"app_id": fake.app_id, "app_secret": fake.app_secret}
        async with session.post(
            f"{fake.base}/open-apis/auth/v3/tenant_access_token/internal", json=body
        ) as answer:
            assert (answer.status, await answer.text()) == (200, "<html>OK</html>")


async def test_its_date_is_its_clocks() -> None:
    async with FakeFeishu(clock=FakeClock()) as fake, aiohttp.ClientSession() as session:
        async with session.get(fake.base + INFO) as answer:
            assert parsedate_to_datetime(answer.headers["Date"]) == START


async def test_what_people_write_is_pushed_until_it_is_acknowledged() -> None:
    clock = FakeClock()
    async with bot(503, 500) as (to, came), FakeFeishu(to=to, clock=clock, delays=(0.2, 0.2, 0.2)) as fake:
        push = await fake.say("hi")
        assert push.statuses == [503]
        while not push.over.is_set():
            await clock.advance(0.2)
            await settle()
        assert push.statuses == [503, 500, 200]
        assert len(came) == 3
        assert push in fake.pusher.pushes


async def test_a_message_can_be_repeated_under_new_ids() -> None:
    async with bot() as (to, _), FakeFeishu(to=to) as fake:
        first = await fake.say("hi", sender=OWNER)
        again = await fake.repeat(first.message_id)
        renamed = await fake.repeat(first.message_id, as_new=True)
        events = [each.event for each in (first, again, renamed)]
        assert len({each["header"]["event_id"] for each in events}) == 3
        messages = [each["event"]["message"] for each in events]
        assert messages[0] == messages[1]
        assert messages[2]["message_id"] != messages[0]["message_id"]
        assert messages[2] | {"message_id": ""} == messages[0] | {"message_id": ""}


async def test_messages_can_be_held_and_pushed_in_another_order() -> None:
    async with bot() as (to, came), FakeFeishu(to=to) as fake:
        fake.holding = True
        one, two = await fake.say("1"), await fake.say("2")
        assert came == []
        assert await fake.release(backwards=True) == [two, one]
        fake.holding = True
        three = await fake.say("3")
        assert await fake.release() == [three]
        assert len(came) == 3


async def test_a_recalled_message_is_told_and_marked() -> None:
    async with bot() as (to, _), FakeFeishu(to=to) as fake:
        push = await fake.say("hi")
        recall = await fake.recall(push.message_id)
        assert recall.event["header"]["event_type"] == "im.message.recalled_v1"
        assert fake.world.messages[push.message_id].recalled


async def test_people_edit_quote_discuss_and_forward() -> None:
    async with bot() as (address, _), FakeFeishu(to=address) as fake:
        first = await fake.say("one", group=True)
        changed = await fake.edit(first.message_id, "two")
        assert changed.event["header"]["event_type"] == "im.message.updated_v1"
        assert changed.message_id == first.message_id
        quoted = (await fake.quote(first.message_id, "why")).event["event"]["message"]
        assert (quoted["parent_id"], quoted["chat_id"]) == (first.message_id, "oc_fake_group")
        assert "thread_id" not in quoted
        opened = await fake.discuss(first.message_id, "here")
        further = await fake.discuss(opened.message_id, "and here")
        for push in (opened, further):
            message = push.event["event"]["message"]
            assert (message["root_id"], message["parent_id"]) == (first.message_id, first.message_id)
            assert message["thread_id"] == fake.world.messages[first.message_id].thread
        bundle = await fake.forward(Note("a"), [Note("b")], group=True)
        assert bundle.event["event"]["message"]["message_type"] == "merge_forward"


async def test_waiting_for_what_the_bot_sends_has_an_end() -> None:
    async with FakeFeishu() as fake:
        assert await fake.wait_sent(0) == []
        with pytest.raises(TimeoutError):
            await fake.wait_sent(1, 0.01)


async def test_without_a_bot_a_push_has_no_answer_and_leaving_ends_what_is_left() -> None:
    async with FakeFeishu(to="http://127.0.0.1:1/", clock=FakeClock()) as fake:
        assert (await fake.say("hi")).statuses == [0]


async def test_a_button_is_pressed_by_whoever_and_told_again_as_it_was() -> None:
    async with bot() as (to, came), FakeFeishu(to=to, delays=()) as fake:
        card = write(fake.world, Note("card"))
        buttons = (Button("Yes", {"v": 1}), Button("No", {"v": 2}))
        sent = Sent(card.message_id, "", "interactive", "", None, "", card.chat.chat_id, False, (), buttons)
        push = await fake.press(sent, "No", STRANGER)
        event = push.event["event"]
        assert event["action"]["value"] == {"v": 2}
        assert event["operator"]["open_id"] == STRANGER
        assert event["context"] == {"open_message_id": card.message_id, "open_chat_id": card.chat.chat_id}
        again = await fake.again(push)
        assert again.event == push.event
        other = await fake.press(sent, "No", STRANGER)
        assert other.event["header"]["event_id"] != push.event["header"]["event_id"]
        assert len(came) == 3


async def test_it_gives_its_own_app_to_whoever_scans_a_code() -> None:
    async with FakeFeishu(delays=()) as fake, aiohttp.ClientSession() as client:
        async with client.post(fake.base + PATH, data={"action": "begin"}) as answer:
            begun = await answer.json()
        async with client.get(begun["verification_uri_complete"]) as answer:
            assert answer.status == 200
        asked = {"action": "poll", "device_code": begun["device_code"]}
        async with client.post(fake.base + PATH, data=asked) as answer:
            found = await answer.json()
    assert (found["client_id"], found["client_secret"]) == (fake.app_id, fake.app_secret)
    assert found["user_info"]["open_id"] == OWNER
