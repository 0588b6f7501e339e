import json
from datetime import timedelta
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from bridge.channel import FileKind, Ignored, Inbound, RemoteFile, Unreadable
from bridge.channel.testing.clock import START
from bridge.channel.testing.fakes.wechat_mp import ACCOUNT, OWNER
from channels.wechat_mp.messages import MediaKey, read_message
from channels.wechat_mp.wire import XML, Body
from tests.channels.wechat_mp.support import STAMP, item, message


def inbound(**changes: Any) -> Inbound:
    found = item(message(**changes))
    assert isinstance(found, Inbound), found
    return found


def event(name: str, **changes: Any) -> Any:
    fields = message(MsgType="event", Event=name, **changes)
    del fields["MsgId"], fields["Content"]
    return item(fields)


def test_a_text_is_a_message_in_the_direct_chat_of_its_sender() -> None:
    assert inbound(Content="你好 😀") == Inbound(
        message_id="12345", sender=OWNER, chat=OWNER, to=OWNER, text="你好 😀", sent_at=START
    )


def test_a_button_of_a_menu_message_says_what_is_on_it() -> None:
    assert inbound(Content="approve", bizmsgmenuid="101").text == "approve"


def test_xml_and_json_say_the_same() -> None:
    fields = message(MsgId=7240000000000000001)
    assert item(fields) == item(fields, "json")


def the_file(**changes: Any) -> RemoteFile:
    found = inbound(**changes)
    assert found.text == ""
    (file,) = found.files
    return file


def test_a_picture_has_its_id_and_its_address() -> None:
    file = the_file(MsgType="image", MediaId="m1", PicUrl="http://mmbiz.qpic.cn/x/0")
    assert (file.kind, MediaKey.read(file.key)) == (
        FileKind.IMAGE,
        MediaKey("m1", address="http://mmbiz.qpic.cn/x/0"),
    )


def test_a_voice_without_recognition_is_a_file_to_be_recognized() -> None:
    file = the_file(MsgType="voice", MediaId="m1", Format="amr", MediaId16K="m2")
    assert (file.kind, file.mime, file.transcript) == (FileKind.AUDIO, "audio/amr", "")
    assert MediaKey.read(file.key) == MediaKey("m1", better="m2")


def test_a_voice_with_recognition_brings_it_along() -> None:
    file = the_file(MsgType="voice", MediaId="m1", Format="speex", Recognition=" 你好。 ")
    assert (file.mime, file.transcript) == ("", "你好。")


@pytest.mark.parametrize("kind", ["video", "shortvideo"])
def test_videos_are_files(kind: str) -> None:
    file = the_file(MsgType=kind, MediaId="m1", ThumbMediaId="t1")
    assert (file.kind, MediaKey.read(file.key)) == (FileKind.VIDEO, MediaKey("m1"))


@pytest.mark.parametrize(
    ("fields", "text"),
    [
        (
            {
                "MsgType": "location",
                "Location_X": 23.134521,
                "Location_Y": 113.358803,
                "Scale": 20,
                "Label": "塔",
            },
            "[Location: 塔, 23.134521, 113.358803]",
        ),
        ({"MsgType": "location"}, "[Location]"),
        (
            {
                "MsgType": "link",
                "Title": "公众平台",
                "Description": " a\nb ",
                "Url": "https://x.example/?a=1&b=2",
            },
            "[Link: 公众平台, a b, https://x.example/?a=1&b=2]",
        ),
        ({"MsgType": "link", "Title": "t" * 5000}, f"[Link: {'t' * 2000}]"),
        ({"MsgType": "music_new"}, "[Message of a kind that cannot be shown: music_new]"),
        ({"MsgType": "a b"}, "[Message of a kind that cannot be shown: unnamed]"),
    ],
)
def test_what_is_no_text_and_no_file_is_said_in_a_line(fields: dict[str, Any], text: str) -> None:
    found = inbound(**fields)
    assert (found.text, found.files) == (text, ())


def test_a_menus_button_says_its_key() -> None:
    found = event("CLICK", EventKey="V1001_TODAY")
    assert isinstance(found, Inbound)
    assert (found.text, found.sender, found.sent_at) == ("V1001_TODAY", OWNER, START)


@pytest.mark.parametrize(
    ("name", "fields"),
    [
        ("subscribe", {"EventKey": "qrscene_123", "Ticket": "t"}),
        ("unsubscribe", {}),
        ("SCAN", {"EventKey": 123, "Ticket": "t"}),
        ("LOCATION", {"Latitude": 23.1, "Longitude": 113.3, "Precision": 119.3}),
        ("VIEW", {"EventKey": "https://x.example"}),
        ("CLICK", {"EventKey": " "}),
        ("something_new", {}),
        ("", {}),
    ],
)
def test_other_events_start_nothing(name: str, fields: dict[str, Any]) -> None:
    found = event(name, **fields)
    assert isinstance(found, Ignored)
    assert found.reason == "event"


def test_an_event_is_known_by_sender_time_and_what_it_is_and_its_id_tells_no_sender() -> None:
    first = event("CLICK", EventKey="a")
    assert event("CLICK", EventKey="a").message_id == first.message_id
    others = [
        event("CLICK", EventKey="b"),
        event("CLICK", EventKey="a", CreateTime=int(STAMP) + 1),
        event("CLICK", EventKey="a", FromUserName="oOther"),
        event("VIEW", EventKey="a"),
    ]
    assert len({first.message_id, *(other.message_id for other in others)}) == 5
    assert OWNER not in first.message_id


def test_what_the_account_itself_sends_is_its_own() -> None:
    assert item(message(FromUserName=ACCOUNT)) == Ignored("own")


@pytest.mark.parametrize(
    ("fields", "reason"),
    [
        ({"FromUserName": ""}, "a message lacks its sender or its type"),
        ({"FromUserName": "a b"}, "a message lacks its sender or its type"),
        ({"FromUserName": "o" * 129}, "a message lacks its sender or its type"),
        ({"MsgType": ""}, "a message lacks its sender or its type"),
        ({"MsgId": ""}, "a message has no id"),
        ({"MsgId": "1 2"}, "a message has no id"),
    ],
)
def test_what_lacks_what_every_message_has_is_unreadable(fields: dict[str, Any], reason: str) -> None:
    assert item(message(**fields)) == Unreadable(reason)


def test_a_time_that_is_none_leaves_the_message() -> None:
    assert inbound(CreateTime="soon").sent_at is None
    assert inbound(CreateTime=int(STAMP) + 1).sent_at == START + timedelta(seconds=1)


@given(
    st.dictionaries(st.sampled_from(["MsgType", "Event", "FromUserName", "MsgId", "CreateTime"]), st.text())
)
def test_no_fields_make_reading_fail(fields: dict[str, str]) -> None:
    read_message(Body(XML, {"FromUserName": OWNER, "MsgType": "text", "MsgId": "1", **fields}), ACCOUNT)


@pytest.mark.parametrize("key", ["", "x", "[]", '["a"]', "7", "null", json.dumps({"a": 1})])
def test_a_key_that_is_none_of_ours_is_told(key: str) -> None:
    with pytest.raises((ValueError, TypeError)):
        MediaKey.read(key)
