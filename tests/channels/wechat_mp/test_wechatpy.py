"""Another implementation reads what we write, and writes what we read. It is a dependency of tests alone."""

import json
from typing import Any

import pytest
from wechatpy import parse_message, replies
from wechatpy.crypto import WeChatCrypto
from wechatpy.exceptions import InvalidSignatureException
from wechatpy.utils import check_signature

from bridge.channel import Answer, Inbound, Item, Reading
from bridge.channel.testing.clock import START
from bridge.channel.testing.fakes.wechat_mp import ACCOUNT, APP_ID, OWNER
from bridge.channel.testing.fakes.wechat_mp.messages import Fields, xml
from channels.wechat_mp.content import Content, text
from channels.wechat_mp.crypto import signature
from channels.wechat_mp.messages import MediaKey
from channels.wechat_mp.requests import read_request
from channels.wechat_mp.respond import respond
from channels.wechat_mp.wire import read_body
from tests.channels.wechat_mp.support import (
    KEY,
    PLAIN,
    SECURE,
    STAMP,
    TOKEN,
    message,
    request,
    signed,
)

TYPES: dict[str, dict[str, Any]] = {
    "text": {"Content": "你好 ]]> & <b>"},
    "image": {"PicUrl": "http://mmbiz.qpic.cn/x/0", "MediaId": "m1"},
    "voice": {"MediaId": "m1", "Format": "amr", "Recognition": "你好"},
    "video": {"MediaId": "m1", "ThumbMediaId": "t1"},
    "shortvideo": {"MediaId": "m1", "ThumbMediaId": "t1"},
    "location": {"Location_X": "23.1", "Location_Y": "113.3", "Scale": "20", "Label": "塔"},
    "link": {"Title": "标题", "Description": "d", "Url": "https://x.example/?a=1&b=2"},
}
CONTENTS = (
    text("你好 😀 ]]> & <b>"),
    Content("image", {"media_id": "m1"}),
    Content("voice", {"media_id": "m1"}),
    Content("video", {"media_id": "m1", "title": "标题"}),
)


def pushed(fields: Fields, *, secure: bool) -> Item:
    """What we make of a push that wechatpy sealed."""
    body, query = xml(fields), signed()
    if secure:
        outer = WeChatCrypto(TOKEN, KEY, APP_ID).encrypt_message(body.decode(), "nonce1", STAMP)
        sealed = parse_outer(outer)
        query |= {"encrypt_type": "aes", "msg_signature": sealed["MsgSignature"]}
        body = xml({"ToUserName": ACCOUNT, "Encrypt": sealed["Encrypt"]})
    reading = read_request(request(body, query), SECURE if secure else PLAIN)
    assert isinstance(reading, Reading), reading
    return reading.items[0]


def parse_outer(raw: str) -> dict[str, str]:
    body = read_body(raw.encode())
    assert body is not None
    return body.fields


@pytest.mark.parametrize("secure", [False, True])
@pytest.mark.parametrize("kind", TYPES)
def test_both_read_the_same_in_a_message(kind: str, secure: bool) -> None:
    fields = message(MsgType=kind, MsgId=7240000000000000001, **TYPES[kind])
    theirs, ours = parse_message(xml(fields)), pushed(fields, secure=secure)
    assert isinstance(ours, Inbound)
    assert (ours.message_id, ours.sender, theirs.target) == (str(theirs.id), theirs.source, ACCOUNT)
    assert ours.sent_at == theirs.create_time
    match kind:
        case "text":
            assert ours.text == theirs.content
        case "location":
            assert ours.text == f"[Location: {theirs.label}, {theirs.location_x}, {theirs.location_y}]"
        case "link":
            assert ours.text == f"[Link: {theirs.title}, {theirs.description}, {theirs.url}]"
        case _:
            (file,) = ours.files
            assert MediaKey.read(file.key).media_id == theirs.media_id
            assert file.transcript == getattr(theirs, "recognition", "")


def test_both_read_the_same_in_a_menus_button() -> None:
    fields = message(MsgType="event", Event="CLICK", EventKey="V1001")
    ours = pushed(fields, secure=True)
    assert isinstance(ours, Inbound)
    assert ours.text == parse_message(xml(fields)).key


@pytest.mark.parametrize("secure", [False, True])
@pytest.mark.parametrize("content", CONTENTS, ids=lambda content: content.kind)
def test_wechatpy_reads_what_we_answer(content: Content, secure: bool) -> None:
    answer = respond(content, "xml", OWNER, SECURE if secure else PLAIN, START)
    body = answer.body.decode()
    if secure:
        outer = parse_outer(body)
        crypto = WeChatCrypto(TOKEN, KEY, APP_ID)
        arguments = (outer["MsgSignature"], outer["TimeStamp"], outer["Nonce"])
        assert outer["TimeStamp"] == STAMP
        body = crypto.decrypt_message(answer.body.decode(), *arguments)
        with pytest.raises(InvalidSignatureException):
            crypto.decrypt_message(answer.body.decode(), "0" * 40, *arguments[1:])
    theirs = replies.deserialize_reply(body)
    assert (theirs.type, theirs.target, theirs.source) == (content.kind, OWNER, ACCOUNT)
    if content.kind == "text":
        assert theirs.content == content.fields["content"]
    else:
        found = theirs.media_id if content.kind == "video" else getattr(theirs, content.kind)
        assert found == content.fields["media_id"]


def test_each_takes_the_others_signature() -> None:
    check_signature(TOKEN, signature(TOKEN, "1", "2"), "1", "2")
    with pytest.raises(InvalidSignatureException):
        check_signature(TOKEN, signature("other", "1", "2"), "1", "2")


def test_an_answer_in_json_has_the_same_names() -> None:
    answer = respond(text("你好"), "json", OWNER, PLAIN, START)
    assert isinstance(answer, Answer)
    assert json.loads(answer.body) == {
        "ToUserName": OWNER, "FromUserName": ACCOUNT, "CreateTime": int(STAMP), "MsgType": "text",
        "Content": "你好",
    }  # fmt: skip
