import json
from dataclasses import replace
from datetime import timedelta
from typing import Any

import pytest
from multidict import CIMultiDict, CIMultiDictProxy

from bridge.channel import Answer, Claimed, Http, Identity, Ignored, Inbound, Place, Reading
from bridge.channel.http import http_session
from bridge.channel.testing.clock import START
from channels.webhook.files import Shelf
from channels.webhook.inbound import UNAUTHORIZED, Webhook
from tests.channels.webhook.tools import INBOUND, OTHER, bare, credentials, event, request, settings

JSON = {"Content-Type": "application/json"}


async def webhook(signing: str = "standard", **secrets: Any) -> Webhook:
    async with http_session() as session:  # what is tested here asks nothing over the network
        return Webhook(
            settings(signing=signing), credentials(**secrets), Http(session), Shelf.of(Place("a"), [])
        )


async def test_a_signed_message_is_read_with_the_time_of_its_attempt() -> None:
    channel = await webhook()
    found = channel.read(request(event(), at=START), Identity())
    assert isinstance(found, Reading)
    assert isinstance(found.items[0], Inbound)
    assert (found.platform_time, found.note) == (START, "msg_1")
    assert channel.read(request(event(), at=START), Identity(bot_id="x")) == found


async def test_either_secret_verifies_while_they_rotate() -> None:
    channel = await webhook(secrets=[OTHER, INBOUND])
    for key in (OTHER, INBOUND):
        assert isinstance(channel.read(request(event(), key=key), Identity()), Reading)


async def test_the_old_secret_stops_by_itself_at_the_end_of_its_window() -> None:
    ending = {"secret": INBOUND, "until": START.isoformat()}
    channel = await webhook(secrets=[OTHER, ending])
    late, last = START, START - timedelta(seconds=1)
    assert isinstance(channel.read(request(event(), key=INBOUND, at=last), Identity()), Reading)
    assert channel.read(request(event(), key=INBOUND, at=late), Identity()) == UNAUTHORIZED
    assert isinstance(channel.read(request(event(), key=OTHER, at=late), Identity()), Reading)


async def test_the_note_is_the_id_of_what_was_read() -> None:
    channel = await webhook()
    for kind in ("message.updated", "message.deleted", "message.reacted"):
        found = channel.read(request(event(kind)), Identity())
        assert isinstance(found, Reading)
        assert found.note == "msg_1"
    plain = await webhook("bearer", secrets=["plain:" + "t" * 24])
    for kind in ("message.created", "message.updated", "message.deleted"):
        given = replace(bare("POST", "", Authorization="Bearer " + "t" * 24), body=event(kind))
        typed = replace(given, headers=CIMultiDictProxy(CIMultiDict({**given.headers, **JSON})))
        found = plain.read(typed, Identity())
        assert isinstance(found, Reading)
        assert len(found.note) == 32
        assert found.platform_time is None


async def test_every_reason_to_distrust_gives_the_same_answer() -> None:
    channel, good = await webhook(), request(event())
    distrusted = [
        request(event(), key=OTHER),
        replace(good, body=event() + b" "),
        replace(good, body=json.dumps(json.loads(event()), separators=(",", ":")).encode()),
        replace(good, received_at=START + timedelta(seconds=301)),
        replace(good, received_at=START - timedelta(seconds=301)),
        bare("POST", ""),
        request(event(), headers={"webhook-id": "msg_2"}),
        request(b"{", key=OTHER, headers={"Content-Type": "text/plain"}),
    ]
    assert {channel.read(each, Identity()) == UNAUTHORIZED for each in distrusted} == {True}
    assert UNAUTHORIZED.status == 401


@pytest.mark.parametrize(
    ("headers", "status"),
    [
        ({"Content-Type": "text/plain"}, 415),
        ({"Content-Type": ""}, 415),
        ({"Content-Type": "application/x-www-form-urlencoded"}, 415),
        ({"Content-Type": "text/x+json"}, 415),
        ({"Content-Encoding": "gzip"}, 415),
        ({"Content-Encoding": "identity", "Content-Type": "Application/JSON; charset=utf-8"}, None),
        ({"Content-Type": "application/cloudevents+json"}, None),
    ],
)
async def test_the_type_must_be_json(headers: dict[str, str], status: int | None) -> None:
    found = (await webhook()).read(request(event(), headers=headers), Identity())
    assert (found.status if isinstance(found, Answer) else None) == status


@pytest.mark.parametrize(
    ("body", "status"), [(b"{", 400), (b"", 400), (event(text=...), 422), (event(sender={}), 422)]
)
async def test_a_signed_body_that_cannot_be_used_is_refused_with_its_reason(body: bytes, status: int) -> None:
    found = (await webhook()).read(request(body), Identity())
    assert isinstance(found, Answer)
    assert found.status == status
    assert set(json.loads(found.body)) == {"error"}


async def test_other_routes_and_methods_are_refused_before_anything_else() -> None:
    channel = await webhook()
    wrong = channel.read(request(event(), path="/nothing"), Identity())
    assert isinstance(wrong, Answer)
    assert wrong.status == 404
    other = channel.read(request(event(), method="GET"), Identity())
    assert isinstance(other, Answer)
    assert (other.status, other.headers) == (405, {"Allow": "POST"})


@pytest.mark.parametrize(
    ("result", "status", "fields"),
    [
        (Claimed.ACCEPTED, 202, {"accepted": True, "id": "msg_1"}),
        (Claimed.BUSY, 202, {"accepted": True, "id": "msg_1", "busy": True}),
        (Claimed.IGNORED, 202, {"accepted": True, "id": "msg_1", "ignored": True}),
        (Claimed.DUPLICATE, 200, {"accepted": True, "id": "msg_1", "duplicate": True}),
        (Claimed.CONFLICT, 409, {"error": "this webhook-id was received with another body"}),
    ],
)
async def test_the_answer_says_what_became_of_it(
    result: Claimed, status: int, fields: dict[str, object]
) -> None:
    answer = (await webhook()).answer(Reading((Ignored("bot"),), note="msg_1"), [result])
    assert (answer.status, json.loads(answer.body)) == (status, fields)


async def test_files_are_served_and_fetched_here_for_both_forms() -> None:
    channel = await webhook()
    refused = channel.file(bare("GET", "/files/x"))
    assert isinstance(refused, Answer)
    assert refused.status == 404
    found = channel.read(request(event(attachments=[{"name": "a", "content_base64": "QUI="}])), Identity())
    assert isinstance(found, Reading)
    assert isinstance(found.items[0], Inbound)
    async with channel.fetch(found.items[0].files[0], 10) as incoming:
        assert [chunk async for chunk in incoming.chunks] == [b"AB"]
