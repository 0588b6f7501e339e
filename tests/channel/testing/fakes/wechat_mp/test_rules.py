import json
from typing import Any

import pytest

from bridge.channel.testing.fakes.wechat_mp.rules import (
    RefusedError,
    check_upload,
    read_object,
    service_message,
)
from bridge.channel.testing.fakes.wechat_mp.world import OWNER, WRITTEN, By, Shown, World

PNG = b"\x89PNG\r\n\x1a\n"


def world() -> World:
    found = World()
    found.follower(OWNER).may_be_sent(WRITTEN, found.clock.monotonic())
    return found


def raw(**changes: Any) -> bytes:
    body = {"touser": OWNER, "msgtype": "text", "text": {"content": "你好"}} | changes
    return json.dumps(body, ensure_ascii=False).encode()


def code(call: bytes, at: World | None = None) -> int:
    with pytest.raises(RefusedError) as refused:
        service_message(at or world(), call)
    return refused.value.code


def test_a_text_is_shown_and_escapes_are_shown_as_they_came() -> None:
    assert service_message(world(), raw()) == Shown(OWNER, By.SERVICE, "text", "你好")
    escaped = json.dumps(json.loads(raw())).encode()
    assert service_message(world(), escaped).text == "\\u4f60\\u597d"
    literal = raw(text={"content": "\\u4f60"})
    assert service_message(world(), literal).text == "\\u4f60"


@pytest.mark.parametrize(
    ("changes", "refused"),
    [
        ({"touser": "oNobody"}, 40003),
        ({"touser": None}, 40003),
        ({"msgtype": None}, 40008),
        ({"msgtype": "wxcard", "wxcard": {}}, 40008),
        ({"text": "x"}, 40008),
        ({"text": {}}, 44004),
        ({"text": {"content": " "}}, 44004),
        ({"text": {"content": "界" * 683}}, 45002),
        ({"msgtype": "image", "image": {"media_id": "gone"}}, 40007),
        ({"msgtype": "image", "image": {}}, 40007),
    ],
)
def test_what_is_wrong_with_a_message_is_told_by_code(changes: dict[str, Any], refused: int) -> None:
    assert code(raw(**changes)) == refused


def test_a_file_is_of_the_kind_that_the_message_says_and_a_video_has_a_cover() -> None:
    at = world()
    image = at.add_media("image", "a", "image/png", PNG)
    video = at.add_media("video", "a", "video/mp4", PNG)
    thumb = at.add_media("thumb", "a", "image/jpeg", PNG)
    assert service_message(at, raw(msgtype="image", image={"media_id": image.media_id})).media is image
    fields = {"media_id": video.media_id, "thumb_media_id": thumb.media_id, "title": "t"}
    assert service_message(at, raw(msgtype="video", video=fields)) == Shown(
        OWNER, By.SERVICE, "video", "t", video
    )
    assert code(raw(msgtype="voice", voice={"media_id": image.media_id}), at) == 40007
    assert code(raw(msgtype="video", video={"media_id": video.media_id}), at) == 40007
    assert code(raw(msgtype="video", video={**fields, "thumb_media_id": image.media_id}), at) == 40007


def test_the_sixth_message_and_one_without_a_question_are_refused() -> None:
    at = world()
    for _ in range(5):
        service_message(at, raw())
    assert code(raw(), at) == 45047
    at.follower("oSilent")
    assert code(raw(touser="oSilent"), at) == 45015


MIB = 1024 * 1024


@pytest.mark.parametrize(
    ("kind", "name", "data"),
    [
        ("image", "a.png", PNG), ("image", "a.jpg", b"\xff\xd8\xff"), ("image", "a.gif", b"GIF89a"),
        ("voice", "a.amr", b"#!AMR"), ("voice", "a.mp3", b"ID3"), ("video", "a.mp4", b"....ftyp"),
        ("thumb", "a.jpg", b"\xff\xd8\xff"), ("image", "a.png", PNG + bytes(10 * MIB - len(PNG))),
    ],
)  # fmt: skip
def test_files_within_the_limits_are_stored(kind: str, name: str, data: bytes) -> None:
    check_upload(kind, name, data)


@pytest.mark.parametrize(
    ("kind", "name", "data", "refused"),
    [
        ("file", "a.pdf", b"%PDF", 40004),
        ("image", "a.png", b"", 44001),
        ("image", "a.png", PNG + bytes(10 * MIB), 45001),
        ("voice", "a.mp3", b"ID3" + bytes(2 * MIB), 45001),
        ("thumb", "a.jpg", b"\xff\xd8\xff" + bytes(64 * 1024), 45001),
        ("image", "a.png", b"RIFF....WEBP", 40005),
        ("video", "a.mp4", b"RIFF....AVI", 40005),
        ("image", "a", PNG, 40005),
    ],
)
def test_other_files_are_refused(kind: str, name: str, data: bytes, refused: int) -> None:
    with pytest.raises(RefusedError) as found:
        check_upload(kind, name, data)
    assert found.value.code == refused


@pytest.mark.parametrize("body", [b"", b"[]", b"x", b"\xff"])
def test_a_body_that_is_no_object_is_refused(body: bytes) -> None:
    with pytest.raises(RefusedError) as found:
        read_object(body)
    assert found.value.code == 47001
