"""What the channel owes as a whole, against a running daemon: every status, and what happens in between."""

import asyncio
import gzip
import hashlib
import json
from collections.abc import AsyncIterator
from datetime import timedelta
from typing import Any

import aiohttp
import pytest

from bridge.channel.testing.fakes.webhook_receiver import (
    Break,
    CallbackReceiver,
    breaks,
    fails,
)
from bridge.clock import SystemClock
from bridge.errors import StoreError
from bridge.store.contract import Claim, Store
from channels.webhook import files
from tests.channels.webhook.serving import (
    DEMO,
    ROUTE,
    Watched,
    answering,
    calling,
    keep,
    kept_texts,
    live,
    plain_event,
    unix,
)
from tests.channels.webhook.tools import CALLBACK, INBOUND, OTHER
from tests.daemons import SECRET, TOKEN, short_home


async def test_every_status_of_a_message_is_as_it_is_written_down() -> None:
    body = plain_event("hello")
    async with answering() as there:
        accepted = await there.post(body)
        assert (accepted.status, accepted.body) == (202, {"accepted": True, "id": "msg_1"})
        assert (await there.post(body)).status == 200
        assert (await there.post(plain_event("other"))).status == 409
        assert (await there.post(b"{", "msg_2")).status == 400
        assert (await there.post(plain_event(""), "msg_3")).status == 422
        assert (await there.post(body, "msg_4", headers={"Content-Type": "text/plain"})).status == 415
        assert (await there.post(body, "msg_5", path="/channels/webhook/nobody")).status == 404
        assert (await there.post(bytes(1_048_577), "msg_6")).status == 413
        assert (await there.post(plain_event("x", kind="message.reacted"), "msg_7")).status == 202
        told = [part["text"] for part in await there.replies()]
    assert told == ["You said: hello"]


async def test_every_reason_for_a_401_has_the_same_body() -> None:
    body = plain_event("hello")
    async with answering() as there:
        answers = [
            await there.post(body, secret=OTHER),
            await there.post(body, headers={"webhook-timestamp": str(unix() - 301)}),
            await there.post(body, headers={"webhook-signature": ""}),
            await there.post(json.dumps(json.loads(body), indent=1).encode(), signed=body),
        ]
    assert [(each.status, each.body) for each in answers] == [(401, {"error": "unauthorized"})] * 4


async def test_exactly_one_mebibyte_is_read() -> None:
    event = plain_event("hello")
    async with answering() as there:
        padded = event[:-1] + b" " * (1_048_576 - len(event)) + b"}"
        assert (await there.post(padded)).status == 202
        assert await there.replies()


async def test_two_deliveries_of_one_id_at_once_are_one_message() -> None:
    body = plain_event("hello")
    async with answering() as there:
        async with asyncio.TaskGroup() as tasks:
            posts = [tasks.create_task(there.post(body)) for _ in range(8)]
        assert sorted(post.result().status for post in posts) == [200] * 7 + [202]
        (part,) = await there.replies()
        assert await there.replies(part["cursor"], 0) == []


async def test_one_id_with_another_body_is_refused_and_never_run() -> None:
    async with answering() as there:
        assert (await there.post(plain_event("first"))).status == 202
        (part,) = await there.replies()
        assert (await there.post(plain_event("second"))).status == 409
        assert part["text"] == "You said: first"
        assert await there.replies(part["cursor"], 0) == []


async def test_202_comes_only_after_the_message_is_on_disk() -> None:
    watched: list[Watched] = []

    def wrap(store: Store) -> Store:
        watched.append(Watched(store, Claim))
        return watched[0]

    with short_home() as home:
        async with live(home, store_wrap=wrap) as there, asyncio.TaskGroup() as tasks:
            posting = tasks.create_task(there.post(plain_event("hello")))
            await watched[0].held.wait()
            await asyncio.wait([posting], timeout=0.05)
            assert not posting.done()
            watched[0].goes_on.set()
            assert (await posting).status == 202
            assert watched[0].done
            assert await there.replies()


async def test_503_says_when_to_come_again_while_nothing_can_be_stored() -> None:
    watched: list[Watched] = []

    def wrap(store: Store) -> Store:
        watched.append(Watched(store, Claim))
        watched[0].error = StoreError("the disk is full")
        return watched[0]

    with short_home() as home:
        async with live(home, store_wrap=wrap) as there:
            refused = await there.post(plain_event("hello"))
            assert (refused.status, refused.headers["Retry-After"]) == (503, "5")
            watched[0].goes_on.set()
            assert (await there.post(plain_event("hello"))).status == 202
            assert await there.replies()


async def pieces(body: bytes, pause: float) -> AsyncIterator[bytes]:
    for at in range(0, len(body), 16):
        yield body[at : at + 16]
        await asyncio.sleep(pause)


async def test_a_body_in_chunks_is_read_whole() -> None:
    body = plain_event("hello")
    async with answering() as there:
        assert (await there.post(pieces(body, 0), signed=body)).status == 202
        assert [part["text"] for part in await there.replies()] == ["You said: hello"]


async def test_a_body_that_dribbles_is_cut_and_nothing_of_it_is_kept() -> None:
    body = plain_event("hello")
    with short_home() as home:
        async with live(home, "body_seconds = 0.3\n[media]\nmin_free_percent = 0\n" + DEMO) as there:
            try:
                status = (await there.post(pieces(body, 0.2), signed=body)).status
            except aiohttp.ClientError:  # cut while it still wrote
                status = 408
            assert status == 408
            assert await there.replies(wait=0) == []


async def test_a_packed_body_is_refused_even_if_it_was_signed_as_it_is() -> None:
    packed = gzip.compress(plain_event("hello"))
    async with answering() as there:
        refused = await there.post(packed, headers={"Content-Encoding": "gzip"})
    assert refused.status == 415


async def test_a_file_is_given_out_whole_in_parts_and_by_its_head(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(files, "INLINE_BYTES", 1000)
    async with answering('owner = "u1"\nremote_tools = "owner"\n') as there:
        assert (await there.post(plain_event("picture 图.png 48x30"))).status == 202
        found: list[dict[str, Any]] = []
        async with asyncio.timeout(20):
            while not found:
                found = [part for part in await there.replies() if part["attachments"]]
        (file,) = found[0]["attachments"]
        address = f"{there.running.address}{ROUTE}/{file['url']}"
        async with there.http.get(address) as response:
            data = await response.read()
            assert (response.status, len(data)) == (200, file["size"])
        assert hashlib.sha256(data).hexdigest() == file["sha256"]
        async with there.http.get(address, headers={"Range": "bytes=100-199"}) as response:
            assert (response.status, await response.read()) == (206, data[100:200])
        async with there.http.head(address) as response:
            assert (response.status, response.headers["Content-Length"]) == (200, str(len(data)))
        async with there.http.get(address.replace("files/", "files/x")) as response:
            assert response.status == 404


async def test_other_ways_to_sign_are_served_whole() -> None:
    body, token = plain_event("hello"), "a-token-of-24-letters-or-more"
    with short_home() as home:
        async with live(home, DEMO + 'signing = "bearer"\n', secrets=[f"plain:{token}"]) as there:
            headers = {"Authorization": f"Bearer {token}"}
            first = await there.post(body, headers=headers)
            assert (first.status, len(first.body["id"])) == (202, 32)
            assert (await there.post(body, "another", headers=headers)).status == 200
            assert (await there.post(plain_event("changed"), headers=headers)).status == 409
            assert (await there.post(body)).status == 401
            (part,) = await there.replies()
            assert (part["text"], part["in_reply_to"]) == ("You said: hello", "m1")


# --- rotation ----------------------------------------------------------------------------------


async def test_rotating_by_reload_in_the_middle_of_a_callback_loses_nothing() -> None:
    """The old secret signs the try that hangs, the new one its repeat; both messages are answered once."""
    async with CallbackReceiver([CALLBACK, OTHER]) as receiver:
        receiver.plan(breaks(Break.HANG))
        with short_home() as home:
            async with live(home, calling(receiver), callback_secrets=[CALLBACK]) as there:
                assert (await there.post(plain_event("before"))).status == 202
                await _until(lambda: bool(receiver.attempts))
                receiver.secrets = [OTHER]
                until = (SystemClock().now() + timedelta(hours=24)).isoformat()
                keep(
                    home,
                    secrets=[INBOUND, {"secret": SECRET, "until": until}],
                    callback_secrets=[OTHER, {"secret": CALLBACK, "until": until}],
                )
                await there.reload()
                for webhook_id, secret in (("msg_2", SECRET), ("msg_3", INBOUND)):
                    await _accepted(there, plain_event(webhook_id), webhook_id, secret)
                async with asyncio.timeout(20):
                    await receiver.wait_for(3)
        assert sorted(kept_texts(receiver)) == [f"You said: {text}" for text in ("before", "msg_2", "msg_3")]
        assert len(receiver.attempts[-1].signature.split(" ")) == 2


async def test_a_window_that_has_ended_is_over_without_a_reload() -> None:
    ending = {"secret": SECRET, "until": SystemClock().now().isoformat()}
    async with answering(secrets=[INBOUND, ending]) as there:
        assert (await there.post(plain_event("old"))).status == 401
        assert (await there.post(plain_event("new"), secret=INBOUND)).status == 202
        assert await there.replies()


# --- 410 -----------------------------------------------------------------------------------------


async def test_a_callback_that_is_gone_ends_the_account_and_a_restart_asks_it_before_anything_else() -> None:
    """The part that met the 410 waits and is the first that a restart sends: the callback's word decides."""
    async with CallbackReceiver([CALLBACK]) as receiver:
        receiver.plan(fails(410), fails(410))
        with short_home() as home:
            async with live(home, calling(receiver), callback_secrets=[CALLBACK]) as there:
                assert (await there.post(plain_event("hello"))).status == 202
                await _until_failed(there)
                refused = await there.post(plain_event("more"), "msg_2")
                assert (refused.status, refused.headers["Retry-After"]) == (503, "5")
                assert len(receiver.attempts) == 1
            async with live(home, calling(receiver), callback_secrets=[CALLBACK]) as there:
                await _until_failed(there)
                assert len(receiver.attempts) == 2
            async with live(home, calling(receiver), callback_secrets=[CALLBACK]) as there:
                async with asyncio.timeout(20):
                    await receiver.wait_for(1)
                assert await there.state() == "connected"
    assert kept_texts(receiver) == ["You said: hello"]


async def test_another_secret_for_asking_is_known_after_a_reload() -> None:
    async with answering() as there:
        keep(there.home, ask_token="another-token-of-the-tests")
        await there.reload()
        address = f"{there.running.address}{ROUTE}/replies"
        for token, status in ((TOKEN, 401), ("another-token-of-the-tests", 200)):
            async with there.http.get(address, headers={"Authorization": f"Bearer {token}"}) as response:
                assert response.status == status


async def _accepted(there: Any, body: bytes, webhook_id: str, secret: str) -> None:
    """Send as a sender does: again, as long as it is told to come again."""
    async with asyncio.timeout(20):
        while (status := (await there.post(body, webhook_id, secret)).status) == 503:
            await asyncio.sleep(0.01)
    assert status == 202


async def _until(condition: Any) -> None:
    async with asyncio.timeout(20):
        while not condition():
            await asyncio.sleep(0.002)


async def _until_failed(there: Any) -> None:
    async with asyncio.timeout(20):
        while await there.state() != "failed":
            await asyncio.sleep(0.01)


# --- changes ------------------------------------------------------------------------------------


async def test_a_message_that_waits_can_be_changed_and_taken_back_by_its_sender_alone() -> None:
    async with answering() as there:
        for webhook_id, text in (("first", "slow 1"), ("second", "before"), ("third", "not this")):
            sent = await there.post(plain_event(text, message_id=webhook_id), webhook_id)
            assert sent.status == 202
        changes: list[tuple[str, dict[str, Any]]] = [
            ("message.updated", {"message_id": "second", "text": "after", "revision": 2}),
            ("message.updated", {"message_id": "second", "text": "too old", "revision": 1}),
            ("message.updated", {"message_id": "second", "text": "x", "revision": 3, "sender": {"id": "u2"}}),
            ("message.deleted", {"message_id": "third", "text": ..., "sender": {"id": "u2"}}),
            ("message.deleted", {"message_id": "third"}),
        ]
        for number, (kind, fields) in enumerate(changes):
            told = await there.post(plain_event(**{"text": "x", **fields}, kind=kind), f"change_{number}")
            assert told.status in (200, 202)
        texts: list[tuple[str, str]] = []
        cursor = 0
        while "second" not in [about for about, _ in texts]:
            for part in await there.replies(cursor):
                texts.append((part["in_reply_to"], part["text"]))
                cursor = part["cursor"]
        assert texts[-1] == ("second", "You said: after")
        assert await there.replies(cursor, 0) == []
