from bridge.channel import Answer, Identity, Ignored, Inbound, OutboundPart, Reading
from bridge.channel.http import Http, http_session
from bridge.channel.spec import Place
from bridge.channel.testing.fakes.feishu import Button, Note, Sent
from bridge.channel.testing.fakes.feishu.events import write
from bridge.channel.testing.kit import ButtonsKit, FilesKit, Kit, KitFile, KitMessage, PushedKit, Trouble
from bridge.channel.testing.kits.feishu import KIT
from channels.feishu import SPEC, Feishu


def adapter(kit: KIT, http: Http) -> Feishu:
    settings = SPEC.settings.model_validate(kit.settings)
    credentials = SPEC.credentials.model_validate(kit.credentials)
    found = kit.spec.create(settings, credentials, http, Place("feishu:kit"))
    assert isinstance(found, Feishu)
    return found


async def test_it_plays_every_part_for_the_registered_channel() -> None:
    kit: Kit = KIT()
    assert isinstance(kit, PushedKit)
    assert isinstance(kit, FilesKit)
    assert isinstance(kit, ButtonsKit)
    assert kit.spec is SPEC
    assert all(kit.supports(each) for each in Trouble)


async def test_its_requests_are_right_wrong_or_uninteresting_as_they_say() -> None:
    async with KIT() as kit, http_session() as session:
        feishu = adapter(kit, Http(session))
        message = KitMessage("hi", kit.person(1), kit.chat(1), message_id="om_1")
        reading = feishu.read(kit.push(message), Identity("ou_fake_bot"))
        assert isinstance(reading, Reading)
        (item,) = reading.items
        assert isinstance(item, Inbound)
        assert (item.text, item.sender, item.chat, item.message_id) == (
            "hi",
            kit.person(1),
            kit.chat(1),
            "om_1",
        )
        for request in kit.forged(message):
            refused = feishu.read(request, Identity("ou_fake_bot"))
            assert isinstance(refused, Answer)
            assert 400 <= refused.status < 500
        for request in kit.uninteresting():
            seen = feishu.read(request, Identity("ou_fake_bot"))
            assert isinstance(seen, Reading)
            assert all(isinstance(each, Ignored) for each in seen.items)


async def test_its_files_can_be_fetched() -> None:
    async with KIT() as kit, http_session() as session:
        feishu = adapter(kit, Http(session))
        for mime in ("image/png", "audio/ogg", "video/mp4", "text/plain"):
            file = kit.remote(KitFile("名", mime, b"content"))
            async with feishu.fetch(file, 100) as incoming:
                assert [chunk async for chunk in incoming.chunks] == [b"content"]


async def test_it_shows_what_was_sent_and_where() -> None:
    async with KIT() as kit, http_session() as session:
        feishu = adapter(kit, Http(session))
        group = kit.chat(1, group=True)
        kit.push(KitMessage("hi", kit.person(0), group, group=True))
        await feishu.send(OutboundPart(f"group:{group}", "", "u1", "hello"))
        await feishu.send(OutboundPart(kit.person(0), "", "u2", "hello"))
        assert [(each.client_id, each.text, each.to) for each in kit.sent()] == [
            ("u1", "hello", f"group:{group}"),
            ("u2", "hello", f"p2p:{kit.chat(0)}"),
        ]


async def test_buttons_are_those_of_the_last_message_and_a_press_is_a_rightly_signed_request() -> None:
    async with KIT() as kit:
        card = write(kit.fake.world, Note("card"))
        buttons = (Button("Yes", {"v": 1}), Button("No", {"v": 2}))
        sent = Sent(card.message_id, "", "interactive", "", None, "", card.chat.chat_id, False, (), buttons)
        kit.fake.sent.append(sent)
        assert kit.buttons() == ["Yes", "No"]
        press = kit.press("No", kit.person(1))
        assert "X-Lark-Signature" in press.headers
        assert press.body != kit.press("No", kit.person(1)).body
