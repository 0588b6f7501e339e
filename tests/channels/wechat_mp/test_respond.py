import json
from typing import Any

import pytest

from bridge.channel import Answer
from bridge.channel.testing.clock import START
from bridge.channel.testing.fakes.wechat_mp import OWNER, By, Shown
from bridge.channel.testing.fakes.wechat_mp.replies import read_reply
from bridge.channel.testing.fakes.wechat_mp.world import ACCOUNT, World
from channels.wechat_mp.content import Content, text
from channels.wechat_mp.respond import reply, respond
from tests.channels.wechat_mp.support import PLAIN, SECURE, secrets

WORLD = World()
PROOFS = {"plaintext": PLAIN, "compat": SECURE, "secure": SECURE}


def content(kind: str) -> tuple[Content, Shown]:
    """A content, and what it shows."""
    if kind == "text":
        return text("你好 ]]> <b>"), Shown(OWNER, By.REPLY, "text", "你好 ]]> <b>", answers="7")
    media = WORLD.add_media(kind, f"a.{kind}", "x/y", b"data")
    fields = {"media_id": media.media_id} | ({"title": "标题"} if kind == "video" else {})
    return Content(kind, fields), Shown(OWNER, By.REPLY, kind, media=media, answers="7")


@pytest.mark.parametrize("kind", ["text", "image", "voice", "video"])
@pytest.mark.parametrize("form", ["xml", "json"])
@pytest.mark.parametrize("mode", PROOFS)
def test_the_platform_shows_it_to_the_sender_in_every_mode_and_form(mode: str, form: str, kind: str) -> None:
    made, shown = content(kind)
    answer = respond(made, form, OWNER, PROOFS[mode], START)
    assert answer.status == 200
    assert answer.content_type == f"application/{form}"
    assert read_reply(answer.body, OWNER, "7", secrets(mode, form), WORLD) == shown
    assert (b"Encrypt" in answer.body) is (mode != "plaintext")


def test_sender_and_account_are_swapped_and_the_time_is_ours() -> None:
    assert reply(text("a"), OWNER, ACCOUNT, 5) == {
        "ToUserName": OWNER,
        "FromUserName": ACCOUNT,
        "CreateTime": 5,
        "MsgType": "text",
        "Content": "a",
    }
    video = reply(Content("video", {"media_id": "m", "title": "t"}), OWNER, ACCOUNT, 5)
    assert video["Video"] == {"MediaId": "m", "Title": "t"}


def sealed_fields(answer: Answer) -> dict[str, Any]:
    found: dict[str, Any] = json.loads(answer.body)
    return found


def test_each_sealed_response_has_a_time_and_a_nonce_of_its_own() -> None:
    one, two = (sealed_fields(respond(text("a"), "json", OWNER, SECURE, START)) for _ in range(2))
    assert one["TimeStamp"] == two["TimeStamp"] == int(START.timestamp())
    assert one["Nonce"] != two["Nonce"]
    assert one["Encrypt"] != two["Encrypt"]


def test_a_response_with_a_link_keeps_its_file() -> None:
    answer = respond(Content("text", {"content": "a"}, 60.0), "xml", OWNER, PLAIN, START)
    assert answer.keep_file_seconds == 60.0
