import json
from typing import Any

import pytest

from bridge.channel.testing.fakes.wechat_mp.messages import xml
from bridge.channel.testing.fakes.wechat_mp.replies import MalformedError, Secrets, read_reply
from bridge.channel.testing.fakes.wechat_mp.seal import new_key, seal, sign
from bridge.channel.testing.fakes.wechat_mp.world import ACCOUNT, OWNER, By, Shown, World

WORLD = World()
KEY = new_key()
SECURE = Secrets("wx1", "token1", KEY)
COMPAT = Secrets("wx1", "token1", KEY, "compat")
PLAIN = Secrets("wx1", "token1", KEY, "plaintext")


def reply(**changes: Any) -> dict[str, Any]:
    people: dict[str, Any] = {"ToUserName": OWNER, "FromUserName": ACCOUNT}
    return {**people, "CreateTime": 7, "MsgType": "text", "Content": "hi", **changes}


def sealed(body: bytes, **changes: Any) -> bytes:
    text = seal(KEY, "wx1", body)
    fields: dict[str, Any] = {
        "Encrypt": text,
        "MsgSignature": sign("token1", "7", "n", text),
        "TimeStamp": 7,
        "Nonce": "n",
    }
    return xml(fields | changes)


def read(raw: bytes, account: Secrets = PLAIN) -> Shown | None:
    return read_reply(raw, OWNER, "1", account, WORLD)


SHOWN = Shown(OWNER, By.REPLY, "text", "hi", answers="1")


@pytest.mark.parametrize("account", [SECURE, COMPAT, PLAIN])
def test_silence_is_success_or_nothing(account: Secrets) -> None:
    assert read(b"success", account) is read(b"", account) is None


def test_a_text_is_shown_as_the_mode_wants_it() -> None:
    assert read(xml(reply())) == SHOWN
    assert read(sealed(xml(reply())), SECURE) == read(sealed(xml(reply())), COMPAT) == SHOWN
    assert read(xml(reply()), COMPAT) == SHOWN
    for raw, account in ((xml(reply()), SECURE), (sealed(xml(reply())), PLAIN)):
        with pytest.raises(MalformedError):
            read(raw, account)


def test_in_json_it_has_the_same_names() -> None:
    account = Secrets("wx1", "token1", KEY, "plaintext", "json")
    assert read(json.dumps(reply()).encode(), account) == SHOWN
    with pytest.raises(MalformedError, match="no json"):
        read(xml(reply()), account)


@pytest.mark.parametrize(("kind", "name"), [("image", "Image"), ("voice", "Voice"), ("video", "Video")])
def test_files_are_shown_by_their_ids(kind: str, name: str) -> None:
    media = WORLD.add_media(kind, "a", "x/y", b"1")
    other = WORLD.add_media("thumb", "a", "x/y", b"1")

    def body(media_id: str) -> bytes:
        return xml(reply(MsgType=kind)).replace(
            b"\n</xml>", f"<{name}><MediaId>{media_id}</MediaId></{name}></xml>".encode()
        )

    shown = read(body(media.media_id))
    assert shown is not None
    assert (shown.kind, shown.media) == (kind, media)
    for wrong in (
        body("gone"),
        body(other.media_id),
        xml(reply(MsgType=kind)),
        xml(reply(MsgType=kind, **{name: "x"})),
    ):
        with pytest.raises(MalformedError, match="file"):
            read(wrong)


@pytest.mark.parametrize(
    "raw",
    [
        xml(reply(ToUserName=ACCOUNT, FromUserName=OWNER)),
        xml(reply(CreateTime="now")),
        xml(reply(MsgType="music")),
        xml(reply(Content="")),
        xml(reply(Content=" ")),
        xml(reply(Content="界" * 683)),
        xml(reply()).replace(b"Content", b"Other"),
        b"fail",
        b"{}",
        b"<xml>text</xml>",
        b'<!DOCTYPE x [<!ENTITY a "b">]><xml>&a;</xml>',
        b"\xff",
    ],
)
def test_anything_else_is_out_of_order(raw: bytes) -> None:
    with pytest.raises(MalformedError):
        read(raw)


def test_2048_bytes_are_shown() -> None:
    shown = read(xml(reply(Content="界" * 682 + "ab")))
    assert shown is not None
    assert len(shown.text.encode()) == 2048


@pytest.mark.parametrize(
    "raw",
    [
        sealed(xml(reply()), MsgSignature="0" * 40),
        sealed(xml(reply()), TimeStamp="now"),
        sealed(xml(reply()), Nonce=""),
        sealed(b"hello"),
        xml(
            {
                "Encrypt": "AAAA",
                "MsgSignature": sign("token1", "7", "n", "AAAA"),
                "TimeStamp": 7,
                "Nonce": "n",
            }
        ),
    ],
)
def test_a_seal_must_be_right(raw: bytes) -> None:
    with pytest.raises(MalformedError):
        read(raw, SECURE)
