import json
from typing import Any

import aiohttp

from bridge.channel.testing.clock import FakeClock
from bridge.channel.testing.fakes.feishu import BOT, OWNER, FakeFeishu, FakeFile, Note
from bridge.channel.testing.fakes.feishu.events import forward, write
from bridge.channel.testing.fakes.feishu.rules import EDITS

API = "/open-apis"
TEXT = {"msg_type": "text", "content": '{"text": "x"}'}
PNG = b"\x89PNG\r\n\x1a\n" + bytes(16)


class Client:
    """Raw requests, as somebody else's bot would make them."""

    def __init__(self, fake: FakeFeishu, session: aiohttp.ClientSession) -> None:
        self.fake = fake
        self.session = session
        self.headers: dict[str, str] = {}

    async def login(self) -> dict[str, Any]:
        body = {"app_id": self.fake.app_id, "app_secret": self.fake.app_secret}
        answer = await self.ask("POST", "/auth/v3/tenant_access_token/internal", json=body)
        self.headers = {"Authorization": f"Bearer {answer['tenant_access_token']}"}
        return answer

    async def ask(self, method: str, path: str, **options: Any) -> dict[str, Any]:
        headers = options.pop("headers", self.headers)
        url = self.fake.base + API + path
        async with self.session.request(method, url, headers=headers, **options) as answer:
            found: dict[str, Any] = await answer.json()
            return found | {"status": answer.status}

    async def code(self, method: str, path: str, **options: Any) -> int:
        return int((await self.ask(method, path, **options))["code"])


async def test_the_same_token_is_given_until_it_has_under_half_an_hour() -> None:
    clock = FakeClock()
    async with FakeFeishu(clock=clock) as fake, aiohttp.ClientSession() as session:
        client = Client(fake, session)
        first = await client.login()
        await clock.advance(5400)
        second = await client.login()
        assert second["tenant_access_token"] == first["tenant_access_token"]
        assert (first["expire"], second["expire"]) == (7200, 1800)
        await clock.advance(1)
        third = await client.login()
        assert third["tenant_access_token"] != first["tenant_access_token"]
        old = {"Authorization": f"Bearer {first['tenant_access_token']}"}
        assert await client.code("GET", "/bot/v3/info", headers=old) == 0
        await clock.advance(1800)
        assert await client.code("GET", "/bot/v3/info", headers=old) == 99991663


async def test_who_is_not_the_app_gets_no_token() -> None:
    async with FakeFeishu() as fake, aiohttp.ClientSession() as session:
        client, path = Client(fake, session), "/auth/v3/tenant_access_token/internal"
        assert await client.code("POST", path, json={"app_id": "x"}) == 10003
        assert await client.code("POST", path, json={"app_id": fake.app_id, "app_secret": "x"}) == 10014
        assert (
            await client.code("POST", path, data=b"{", headers={"Content-Type": "application/json"}) == 9499
        )
        assert await client.code("POST", path, data=b"{}") == 9499


async def test_every_call_needs_a_good_token() -> None:
    async with FakeFeishu() as fake, aiohttp.ClientSession() as session:
        client = Client(fake, session)
        for header, code in (
            (None, 99991661),
            ("x", 99991671),
            ("Bearer x", 99991671),
            ("Bearer t-x", 99991663),
        ):
            headers = {"Authorization": header} if header else {}
            assert await client.code("GET", "/bot/v3/info", headers=headers) == code
        await client.login()
        assert (await client.ask("GET", "/bot/v3/info"))["bot"]["open_id"] == BOT


async def test_a_message_goes_only_where_it_can() -> None:
    async with FakeFeishu() as fake, aiohttp.ClientSession() as session:
        client = Client(fake, session)
        await client.login()
        fake.world.group("oc_left").bot_inside = False
        for kind, receiver, code in (
            ("open_id", OWNER, 0),
            ("open_id", "ou_unknown", 230013),
            ("email", "a@b", 230013),
            ("chat_id", "oc_unknown", 230002),
            ("chat_id", "oc_left", 230002),
            ("phone", "1", 99992402),
        ):
            body = TEXT | {"receive_id": receiver}
            assert await client.code("POST", f"/im/v1/messages?receive_id_type={kind}", json=body) == code
        assert await client.code("POST", "/im/v1/messages?receive_id_type=open_id", json=TEXT) == 99992402


async def test_a_reply_needs_its_message_and_a_uuid_sends_once() -> None:
    async with FakeFeishu() as fake, aiohttp.ClientSession() as session:
        client = Client(fake, session)
        await client.login()
        message = write(fake.world, Note("hi", group=True))
        path = f"/im/v1/messages/{message.message_id}/reply"
        assert await client.code("POST", "/im/v1/messages/om_x/reply", json=TEXT) == 230001
        first = await client.ask("POST", path, json=TEXT | {"uuid": "u"})
        message.recalled = True
        assert await client.ask("POST", path, json=TEXT | {"uuid": "u"}) == first
        assert (await client.ask("POST", path, json=TEXT))["status"] == 200
        assert await client.code("POST", path, json=TEXT) == 230011
        message.recalled = False
        message.chat.takes_threads = False
        assert await client.code("POST", path, json=TEXT | {"reply_in_thread": True}) == 230071
        assert [each.uuid for each in fake.sent] == ["u"]


async def test_videos_may_need_a_cover() -> None:
    async with FakeFeishu() as fake, aiohttp.ClientSession() as session:
        client = Client(fake, session)
        await client.login()
        video, cover = fake.world.upload("mp4", "a", "", b"x"), fake.world.upload("image", "a", "", b"x")
        fake.interface.media_needs_cover = True
        for content, code in (
            ({"file_key": video.key}, 230001),
            ({"file_key": video.key, "image_key": cover.key}, 0),
        ):
            body = {"receive_id": OWNER, "msg_type": "media", "content": json.dumps(content)}
            assert await client.code("POST", "/im/v1/messages?receive_id_type=open_id", json=body) == code
        assert fake.sent[0].file == video


async def test_messages_are_shown_in_the_interfaces_own_shape() -> None:
    async with FakeFeishu() as fake, aiohttp.ClientSession() as session:
        client = Client(fake, session)
        await client.login()
        bundle = write(fake.world, Note(kind="merge_forward", content="placeholder"))
        child = write(fake.world, Note("inside", group=True))
        child.upper = bundle.message_id
        (head, inner) = (await client.ask("GET", f"/im/v1/messages/{bundle.message_id}"))["data"]["items"]
        assert (head["msg_type"], "upper_message_id" in head) == ("merge_forward", False)
        assert (inner["upper_message_id"], inner["mentions"][0]["id"]) == (bundle.message_id, BOT)
        assert inner["sender"] == {
            "id": OWNER,
            "id_type": "open_id",
            "sender_type": "user",
            "tenant_key": "t",
        }
        assert await client.code("GET", f"/im/v1/messages/{child.message_id}") == 230002
        assert await client.code("GET", "/im/v1/messages/om_x") == 230002
        bundle.recalled = True
        (gone, *_) = (await client.ask("GET", f"/im/v1/messages/{bundle.message_id}"))["data"]["items"]
        assert (gone["deleted"], "placeholder" in gone["body"]["content"]) == (True, False)


async def test_resources_belong_to_their_message() -> None:
    async with FakeFeishu() as fake, aiohttp.ClientSession() as session:
        client = Client(fake, session)
        await client.login()
        message = write(fake.world, Note(files=(FakeFile("图.png", "image/png", PNG),)))
        other = write(fake.world, Note("no file"))
        key = json.loads(message.content)["image_key"]
        path = f"/im/v1/messages/{message.message_id}/resources/{key}"
        assert await client.code("GET", path) == 234001
        assert (
            await client.code("GET", f"/im/v1/messages/{other.message_id}/resources/{key}?type=image")
            == 234003
        )
        assert (
            await client.code("GET", f"/im/v1/messages/{message.message_id}/resources/x?type=image") == 234003
        )
        async with session.get(f"{fake.base}{API}{path}?type=image", headers=client.headers) as answer:
            assert (await answer.read(), answer.content_type) == (PNG, "image/png")
            assert "%E5%9B%BE.png" in answer.headers["Content-Disposition"]
        other.kind, other.content, message.upper = "merge_forward", "x", other.message_id
        assert await client.code("GET", path + "?type=image") == 234003
        bundled = f"{fake.base}{API}/im/v1/messages/{other.message_id}/resources/{key}?type=image"
        async with session.get(bundled, headers=client.headers) as answer:
            assert await answer.read() == PNG
        message.upper, message.recalled = "", True
        assert await client.code("GET", path + "?type=image") == 230110


def form(field: str, data: bytes, **fields: str) -> aiohttp.FormData:
    made = aiohttp.FormData(quote_fields=False)
    for name, value in fields.items():
        made.add_field(name, value)
    made.add_field(field, data, filename="名.bin", content_type="image/png")
    return made


async def test_uploads_are_forms_with_the_right_fields() -> None:
    async with FakeFeishu() as fake, aiohttp.ClientSession() as session:
        client = Client(fake, session)
        await client.login()
        images, files = "/im/v1/images", "/im/v1/files"
        answer = await client.ask("POST", images, data=form("image", PNG, image_type="message"))
        assert fake.world.uploads[answer["data"]["image_key"]].data == PNG
        stored = await client.ask("POST", files, data=form("file", b"x", file_type="pdf", file_name="名.pdf"))
        assert fake.world.uploads[stored["data"]["file_key"]].name == "名.pdf"
        assert await client.code("POST", images, data=form("image", PNG)) == 234001
        assert await client.code("POST", images, data=form("file", PNG, image_type="message")) == 234001
        assert await client.code("POST", images, json={}) == 234001
        assert (
            await client.code("POST", files, data=form("file", b"", file_type="pdf", file_name="a")) == 234010
        )
        assert await client.code("POST", files, data=form("file", b"x", file_type="pdf")) == 234001


async def test_a_card_comes_whole_where_that_is_asked_for_and_a_bundle_then_not_at_all() -> None:
    async with FakeFeishu() as fake, aiohttp.ClientSession() as session:
        client = Client(fake, session)
        await client.login()
        card = write(fake.world, Note(kind="interactive", content='{"title": "T"}', card='{"schema": "2.0"}'))
        path, whole = f"/im/v1/messages/{card.message_id}", {"card_msg_content_type": "user_card_content"}
        for params, content in (({}, card.content), (whole, card.card)):
            answer = await client.ask("GET", path, params=params)
            assert answer["data"]["items"][0]["body"]["content"] == content
        card.recalled = True
        answer = await client.ask("GET", path, params=whole)
        assert answer["data"]["items"][0]["body"]["content"] == '{"text":"This message was recalled"}'
        bundle = forward(fake.world, [Note("a")], Note())
        answer = await client.ask("GET", f"/im/v1/messages/{bundle.message_id}", params=whole)
        assert answer["status"] == 500


async def test_what_is_inside_a_bundle_is_had_and_answered_only_through_it() -> None:
    async with FakeFeishu() as fake, aiohttp.ClientSession() as session:
        client = Client(fake, session)
        await client.login()
        bundle = forward(
            fake.world, [Note("a"), [Note(files=(FakeFile("a.png", "image/png", PNG),))]], Note()
        )
        answer = await client.ask("GET", f"/im/v1/messages/{bundle.message_id}")
        *_, nested, image = fake.world.below(bundle.message_id)
        assert [item.get("upper_message_id") for item in answer["data"]["items"]] == [
            None,
            bundle.message_id,
            bundle.message_id,
            nested.message_id,
        ]
        assert await client.code("GET", f"/im/v1/messages/{nested.message_id}") == 230002
        assert await client.code("POST", f"/im/v1/messages/{image.message_id}/reply", json=TEXT) == 230001
        key = json.loads(image.content)["image_key"]
        resource = f"/resources/{key}?type=image"
        assert await client.code("GET", f"/im/v1/messages/{image.message_id}{resource}") == 234003
        url = f"{fake.base}{API}/im/v1/messages/{bundle.message_id}{resource}"
        async with session.get(url, headers=client.headers) as found:
            assert await found.read() == PNG


async def test_outside_the_chat_nothing_is_shown_and_an_answer_joins_the_replies() -> None:
    async with FakeFeishu() as fake, aiohttp.ClientSession() as session:
        client = Client(fake, session)
        await client.login()
        asked = write(fake.world, Note("a", group=True))
        await client.ask("POST", f"/im/v1/messages/{asked.message_id}/reply", json=TEXT)
        answer = await client.ask("GET", f"/im/v1/messages/{fake.sent[0].message_id}")
        item = answer["data"]["items"][0]
        assert (item["parent_id"], item["root_id"]) == (asked.message_id, asked.message_id)
        asked.chat.bot_inside = False
        assert await client.code("GET", f"/im/v1/messages/{asked.message_id}") == 230002


async def test_a_sound_may_tell_its_length_in_whole_ms() -> None:
    async with FakeFeishu() as fake, aiohttp.ClientSession() as session:
        client = Client(fake, session)
        await client.login()
        for duration, code in (("2500", 0), ("2.5 s", 234001)):
            form = aiohttp.FormData({"file_type": "opus", "file_name": "a.opus", "duration": duration})
            form.add_field("file", b"x", filename="a.opus")
            assert await client.code("POST", "/im/v1/files", data=form) == code
        assert [upload.ms for upload in fake.world.uploads.values()] == [2500]


async def test_what_the_app_may_do_is_listed_with_whether_it_was_granted() -> None:
    async with FakeFeishu() as fake, aiohttp.ClientSession() as session:
        client = Client(fake, session)
        assert await client.code("GET", "/application/v6/scopes") == 99991661
        await client.login()
        fake.interface.scopes = {"im:resource": True, "im:message": False}
        scopes = (await client.ask("GET", "/application/v6/scopes"))["data"]["scopes"]
        assert scopes == [
            {"scope_name": "im:resource", "scope_type": "tenant", "grant_status": 1},
            {"scope_name": "im:message", "scope_type": "tenant", "grant_status": 2},
        ]


async def test_a_token_ends_at_once_where_that_is_asked_for() -> None:
    async with FakeFeishu() as fake, aiohttp.ClientSession() as session:
        client = Client(fake, session)
        first = await client.login()
        fake.interface.expire_tokens()
        assert await client.code("GET", "/bot/v3/info") == 99991663
        assert (await client.login())["tenant_access_token"] != first["tenant_access_token"]


async def test_the_bot_edits_its_own_texts_and_only_so_often() -> None:
    async with FakeFeishu() as fake, aiohttp.ClientSession() as session:
        client = Client(fake, session)
        await client.login()
        asked = write(fake.world, Note("hi"))
        reply = await client.ask("POST", f"/im/v1/messages/{asked.message_id}/reply", json=TEXT)
        message_id = reply["data"]["message_id"]
        path, body = f"/im/v1/messages/{message_id}", TEXT | {"content": '{"text": "y"}'}
        assert await client.code("PUT", "/im/v1/messages/om_x", json=body) == 230071
        assert await client.code("PUT", f"/im/v1/messages/{asked.message_id}", json=body) == 230071
        assert await client.code("PUT", path, json=TEXT | {"content": "{}"}) == 230001
        answers = [await client.code("PUT", path, json=body) for _ in range(EDITS + 1)]
        assert answers == [0] * EDITS + [230072]
        item = (await client.ask("GET", path))["data"]["items"][0]
        assert (item["body"]["content"], item["updated"]) == ('{"text": "y"}', True)


async def test_an_image_is_neither_edited_nor_made_by_an_edit() -> None:
    async with FakeFeishu() as fake, aiohttp.ClientSession() as session:
        client = Client(fake, session)
        await client.login()
        key = fake.world.upload("image", "a.png", "image/png", PNG).key
        image = {"msg_type": "image", "content": json.dumps({"image_key": key})}
        for sent, edited in ((image, TEXT), (TEXT, image)):
            path = "/im/v1/messages?receive_id_type=open_id"
            made = await client.ask("POST", path, json=sent | {"receive_id": OWNER})
            edit = f"/im/v1/messages/{made['data']['message_id']}"
            assert await client.code("PUT", edit, json=edited) == 230054


async def test_a_reaction_is_set_found_by_its_emoji_and_taken_back_once() -> None:
    async with FakeFeishu() as fake, aiohttp.ClientSession() as session:
        client = Client(fake, session)
        await client.login()
        message = write(fake.world, Note("hi"))
        path = f"/im/v1/messages/{message.message_id}/reactions"
        ids = {}
        for emoji in ("Typing", "OK"):
            made = await client.ask("POST", path, json={"reaction_type": {"emoji_type": emoji}})
            ids[emoji] = made["data"]["reaction_id"]
        for wanted, found in (("", [*ids.values()]), ("OK", [ids["OK"]]), ("DONE", [])):
            items = (await client.ask("GET", f"{path}?reaction_type={wanted}"))["data"]["items"]
            assert [item["reaction_id"] for item in items] == found
        assert await client.code("DELETE", f"{path}/{ids['OK']}") == 0
        assert await client.code("DELETE", f"{path}/{ids['OK']}") == 231007
        assert message.reactions == {ids["Typing"]: "Typing"}
        assert fake.world.reacted == [(message.message_id, "Typing"), (message.message_id, "OK")]


async def test_a_reaction_needs_its_scope_its_message_and_an_emoji_that_there_is() -> None:
    async with FakeFeishu() as fake, aiohttp.ClientSession() as session:
        client = Client(fake, session)
        await client.login()
        message = write(fake.world, Note("hi"))
        path, good = f"/im/v1/messages/{message.message_id}/reactions", {"emoji_type": "OK"}
        for kind in ({"emoji_type": "NoSuch"}, {}, "OK", None):
            assert await client.code("POST", path, json={"reaction_type": kind}) == 231001
        assert await client.code("POST", "/im/v1/messages/om_x/reactions", json={}) == 231003
        fake.interface.scopes["im:message.reactions:write_only"] = False
        assert await client.code("POST", path, json={"reaction_type": good}) == 99991672
        assert await client.code("GET", path) == 0
        fake.interface.scopes["im:message"] = True  # the wide one has it in it
        assert await client.code("POST", path, json={"reaction_type": good}) == 0
        message.recalled = True
        assert await client.code("POST", path, json={"reaction_type": good}) == 231003


async def test_a_form_within_the_form_is_passed_over() -> None:
    async with FakeFeishu() as fake, aiohttp.ClientSession() as session:
        client = Client(fake, session)
        await client.login()
        with aiohttp.MultipartWriter("form-data") as outer, aiohttp.MultipartWriter("mixed") as inner:
            inner.append("avatar")
            outer.append(inner)
            outer.append("message").set_content_disposition("form-data", name="image_type")
            outer.append(PNG).set_content_disposition("form-data", name="image", filename="a.png")
        answer = await client.ask("POST", "/im/v1/images", data=outer)
        assert fake.world.uploads[answer["data"]["image_key"]].data == PNG
