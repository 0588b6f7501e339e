from typing import Any

import pytest

from bridge.channel import Answer, Delivered, Http, Identity, Ignored, Inbound, OutboundPart, Place, Reading
from bridge.channel.http import http_session
from bridge.channel.testing.kit import FilesKit, KitFile, KitMessage, PollsKit, PushedKit, Trouble
from bridge.channel.testing.kits.webhook import KIT, WebhookKit


def channel(kit: WebhookKit, http: Http) -> Any:
    spec = kit.spec
    settings = spec.settings.model_validate(kit.settings)
    return spec.create(settings, spec.credentials.model_validate(kit.credentials), http, Place("main"))


def test_it_is_a_kit_that_pushes_and_has_files() -> None:
    kit = KIT()
    assert isinstance(kit, PushedKit)
    assert isinstance(kit, FilesKit)
    assert not isinstance(kit, PollsKit)
    assert [trouble for trouble in Trouble if not kit.supports(trouble)] == [Trouble.GARBAGE]
    assert len({kit.person(0), kit.person(1), kit.chat(0), kit.chat(1), kit.chat(0, group=True)}) == 5


async def test_what_it_pushes_is_read_and_what_it_forges_is_not() -> None:
    async with KIT() as kit, http_session() as session:
        adapter = channel(kit, Http(session))
        file = KitFile("a.txt", "text/plain", b"AB")
        message = KitMessage("hi", "u1", "c1", group=True, message_id="m7", files=(file,))
        read = adapter.read(kit.push(message), Identity())
        assert isinstance(read, Reading)
        (item,) = read.items
        assert isinstance(item, Inbound)
        assert (item.text, item.sender, item.chat, item.group, item.message_id) == (
            "hi",
            "u1",
            "c1",
            True,
            "m7",
        )
        assert [each.name for each in item.files] == ["a.txt"]
        statuses = [adapter.read(each, Identity()).status for each in kit.forged(message)]
        assert statuses == [401, 401, 401, 401, 401, 400, 422, 415]
        for each in kit.uninteresting():
            assert isinstance(adapter.read(each, Identity()).items[0], Ignored)


async def test_it_shows_what_was_sent_and_makes_trouble_once() -> None:
    async with KIT() as kit, http_session() as session:
        adapter = channel(kit, Http(session))
        kit.trouble(Trouble.REFUSE)
        part = OutboundPart('["c1"]', "m1", "a" * 32, "hi")
        assert not isinstance(await adapter.send(part), Delivered)
        assert kit.sent() == []
        assert await adapter.send(part) == Delivered()
        (sent,) = kit.sent()
        assert (sent.client_id, sent.text, sent.reply_to, sent.to, sent.file) == (
            "a" * 32,
            "hi",
            "m1",
            "c1",
            None,
        )
        await adapter.typing('["c1"]', "m1")
        assert len(kit.sent()) == 1


async def test_its_files_can_be_fetched() -> None:
    async with KIT() as kit, http_session() as session:
        adapter = channel(kit, Http(session))
        async with adapter.fetch(kit.remote(KitFile("a", "x/y", b"bytes")), 100) as incoming:
            assert b"".join([chunk async for chunk in incoming.chunks]) == b"bytes"


async def test_forged_requests_stay_forged_without_the_kit() -> None:
    kit, other = KIT(), KIT()
    async with http_session() as session:
        settings = {"callback_url": "https://x.example"}
        spec = kit.spec
        credentials = spec.credentials.model_validate(other.credentials)
        adapter: Any = spec.create(
            spec.settings.model_validate(settings), credentials, Http(session), Place("a")
        )
        answer = adapter.read(kit.push(KitMessage("hi", "u", "c")), Identity())
    assert isinstance(answer, Answer)
    assert answer.status == 401
    with pytest.raises(ValueError, match="callback_secrets"):
        spec.credentials.model_validate({**kit.credentials, "callback_secrets": ["word"]})
