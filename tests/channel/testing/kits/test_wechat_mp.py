import pytest

from bridge.channel import Answer, Identity, Ignored, Inbound, Reading, Sends
from bridge.channel.http import Http, http_session
from bridge.channel.spec import Place
from bridge.channel.testing.kit import FilesKit, Kit, KitFile, KitMessage, PushedKit, RespondsKit, Trouble
from bridge.channel.testing.kits.wechat_mp import KIT, KIT_WITHOUT_SERVICE
from channels.wechat_mp import SPEC, OfficialAccount
from tests.channels.wechat_mp.support import part


def adapter(kit: KIT, http: Http) -> OfficialAccount:
    settings = SPEC.settings.model_validate(kit.settings)
    credentials = SPEC.credentials.model_validate(kit.credentials)
    found = kit.spec.create(settings, credentials, http, Place("wechat_mp:kit", "https://b.example/c"))
    assert isinstance(found, OfficialAccount)
    return found


def test_they_play_every_part_for_the_registered_channel() -> None:
    for kit in (KIT(), KIT_WITHOUT_SERVICE()):
        same: Kit = kit
        assert isinstance(same, PushedKit)
        assert isinstance(same, FilesKit)
        assert isinstance(same, RespondsKit)
        assert kit.spec is SPEC
    assert all(KIT().supports(each) for each in Trouble)
    assert not any(KIT_WITHOUT_SERVICE().supports(each) for each in Trouble)


@pytest.mark.parametrize("make", [KIT, KIT_WITHOUT_SERVICE])
async def test_their_requests_are_right_wrong_or_uninteresting_as_they_say(make: type[KIT]) -> None:
    async with make() as kit, http_session() as session:
        channel = adapter(kit, Http(session))
        assert isinstance(channel, Sends) is kit.customer_service
        message = KitMessage("hi", kit.person(1), kit.chat(1), message_id="7")
        reading = channel.read(kit.push(message), Identity())
        assert isinstance(reading, Reading)
        (item,) = reading.items
        assert isinstance(item, Inbound)
        assert (item.message_id, item.sender) == ("7", kit.person(1))
        for request in kit.forged(message):
            refused = channel.read(request, Identity())
            assert isinstance(refused, Answer)
            assert 400 <= refused.status < 500
        for request in kit.uninteresting():
            seen = channel.read(request, Identity())
            assert isinstance(seen, Reading)
            assert all(isinstance(each, Ignored) for each in seen.items)


@pytest.mark.parametrize("make", [KIT, KIT_WITHOUT_SERVICE])
async def test_their_files_can_be_fetched(make: type[KIT]) -> None:
    async with make() as kit, http_session() as session:
        channel = adapter(kit, Http(session))
        async with channel.fetch(kit.remote(KitFile("名", "image/png", b"content")), 100) as incoming:
            assert [chunk async for chunk in incoming.chunks] == [b"content"]


async def test_they_show_what_was_sent_and_what_a_response_carries() -> None:
    async with KIT() as kit, http_session() as session:
        channel = adapter(kit, Http(session))
        request = kit.push(KitMessage("hi", kit.person(1)))
        assert isinstance(channel, Sends)
        await channel.send(part("sent", to=kit.person(1)))
        kit.trouble(Trouble.REFUSE)
        await channel.send(part("refused", to=kit.person(1)))
        assert [(each.client_id, each.text, each.to) for each in kit.sent()] == [("", "sent", kit.person(1))]
        reading = channel.read(request, Identity())
        assert isinstance(reading, Reading)
        answer = await channel.respond(reading, part("answered", to=kit.person(1)))
        assert isinstance(answer, Answer)
        assert [each.text for each in kit.shown_of(request, answer)] == ["answered"]
        assert kit.shown_of(request, Answer(200, b"success")) == []
        for wrong in (Answer(200, b"fail"), Answer(500)):
            with pytest.raises(AssertionError):
                kit.shown_of(request, wrong)


def test_accounts_are_in_no_groups() -> None:
    with pytest.raises(pytest.skip.Exception):
        KIT().chat(1, group=True)
