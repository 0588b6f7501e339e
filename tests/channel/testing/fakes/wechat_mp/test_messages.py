import json
from typing import Any

import pytest
from defusedxml.ElementTree import fromstring

from bridge.channel.testing.clock import FakeClock
from bridge.channel.testing.fakes.wechat_mp.messages import FakeFile, Note, write, written, xml
from bridge.channel.testing.fakes.wechat_mp.world import ACCOUNT, OWNER, World

WORLD = World(FakeClock())


def test_a_text_has_what_every_message_has() -> None:
    fields = written(WORLD, Note("hi"))
    assert {key: fields[key] for key in ("ToUserName", "FromUserName", "MsgType", "Content")} == {
        "ToUserName": ACCOUNT, "FromUserName": OWNER, "MsgType": "text", "Content": "hi",
    }  # fmt: skip
    assert fields["CreateTime"] == WORLD.now_seconds()
    assert isinstance(fields["MsgId"], int)


def test_an_id_can_be_chosen() -> None:
    assert written(WORLD, Note("hi", message_id="12"))["MsgId"] == 12
    assert written(WORLD, Note("hi", message_id="m-1"))["MsgId"] == "m-1"


@pytest.mark.parametrize(
    ("mime", "kind", "names"),
    [
        ("image/png", "image", {"MediaId", "PicUrl"}),
        ("audio/amr", "voice", {"MediaId", "Format", "Recognition"}),
        ("video/mp4", "video", {"MediaId", "ThumbMediaId"}),
        ("text/plain", "file", {"MediaId"}),
    ],
)
def test_a_file_lies_on_the_platform(mime: str, kind: str, names: set[str]) -> None:
    fields = written(WORLD, Note(file=FakeFile("a.x", mime, b"data")))
    media = WORLD.find_media(fields["MediaId"])
    assert media is not None
    assert (fields["MsgType"], media.kind, media.data) == (kind, kind, b"data")
    assert names <= set(fields)


def test_an_event_has_no_id() -> None:
    fields = written(WORLD, Note(fields={"MsgType": "event", "Event": "VIEW"}))
    assert "MsgId" not in fields
    assert fields["Event"] == "VIEW"


def test_other_types_are_what_their_fields_say() -> None:
    fields = written(WORLD, Note(fields={"MsgType": "location", "Location_X": 1.5}))
    assert (fields["MsgType"], fields["Location_X"], "MsgId" in fields) == ("location", 1.5, True)


@pytest.mark.parametrize("text", ["你好 <b> & \"'", "a]]>b", ""])
def test_bodies_say_the_same_in_both_forms(text: str) -> None:
    fields: dict[str, Any] = {"A": text, "N": 7, "F": 1.5}
    assert {each.tag: each.text or "" for each in fromstring(xml(fields))} == {
        "A": text,
        "N": "7",
        "F": "1.5",
    }
    assert write("xml", fields) == xml(fields)
    assert json.loads(write("json", fields)) == fields
