import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from bridge.channel.text import clean
from channels.wechat_mp.wire import JSON, XML, Body, harmless, read_body, write

LAUGHS = b"""<?xml version="1.0"?><!DOCTYPE lolz [<!ENTITY lol "lol"><!ENTITY lol2 "&lol;&lol;&lol;&lol;">
<!ENTITY lol3 "&lol2;&lol2;&lol2;&lol2;&lol2;&lol2;&lol2;">]><xml><Content>&lol3;</Content></xml>"""
OUTSIDE = b"""<?xml version="1.0"?><!DOCTYPE x [<!ENTITY f SYSTEM "file:///etc/passwd">]>
<xml><Content>&f;</Content></xml>"""


def fields(raw: bytes) -> dict[str, str]:
    body = read_body(raw)
    assert body is not None
    return body.fields


def test_an_element_may_be_cdata_or_plain() -> None:
    one = b"<xml><Content><![CDATA[a<b]]></Content><MsgId>12</MsgId></xml>"
    two = b"<xml><Content>a&lt;b</Content><MsgId><![CDATA[12]]></MsgId></xml>"
    assert fields(one) == fields(two) == {"Content": "a<b", "MsgId": "12"}


def test_json_has_texts_and_numbers_and_all_are_texts() -> None:
    raw = json.dumps(
        {
            "a": "x",
            "n": 7240000000000000001,
            "f": 23.5,
            "t": True,
            "z": None,
            "l": [1],
            "big": 10**40,
            "inf": 1e400,
        }
    ).encode()
    assert read_body(b"\xef\xbb\xbf \n" + raw) == Body(
        JSON,
        {"a": "x", "n": "7240000000000000001", "f": "23.5", "t": "", "z": "", "l": "", "big": "", "inf": ""},
    )


def test_fields_that_hold_others_are_blank_and_of_two_the_first_counts() -> None:
    raw = b"<xml><A><B>1</B></A><C>1</C><C>2</C></xml>"
    assert fields(raw) == {"A": "", "C": "1"}
    assert read_body(raw) == Body(XML, {"A": "", "C": "1"})
    assert Body(XML, {}).get("A") == ""


@pytest.mark.parametrize(
    "raw",
    [
        LAUGHS,
        OUTSIDE,
        b"<!DOCTYPE xml><xml/>",
        b"",
        b"x",
        b"<xml>",
        b"<xml/><xml/>",
        b"<xml><A>&nbsp;</A></xml>",
        b"{",
        b"[]",
        b'{"a":' * 100_000,
        "<xml><Content>你好</Content></xml>".encode("gbk"),
        '<?xml version="1.0" encoding="gbk"?><xml><Content>你好</Content></xml>'.encode("gbk"),
        "<xml/>".encode("utf-16"),
        b"<xml>\xff</xml>",
        b"<xml><A>\x00</A></xml>",
    ],
)
def test_hostile_and_broken_bodies_are_none_and_never_raise(raw: bytes) -> None:
    assert read_body(raw) is None


def test_deep_and_large_bodies_are_read_in_no_time() -> None:
    assert read_body(b"<a>" * 80_000 + b"</a>" * 80_000) == Body(XML, {"a": ""})
    assert fields(b"<xml><A>" + b"x" * 1_000_000 + b"</A></xml>")["A"] == "x" * 1_000_000


def test_a_body_that_names_another_encoding_and_is_utf_8_is_read() -> None:
    assert fields('<?xml version="1.0" encoding="GBK"?><xml><A>你</A></xml>'.encode()) == {"A": "你"}


@given(st.binary(max_size=300))
def test_no_bytes_make_reading_raise(raw: bytes) -> None:
    read_body(raw)
    read_body(b"<xml>" + raw + b"</xml>")
    read_body(b"{" + raw)


@given(st.sampled_from([XML, JSON]), st.text(max_size=100))
def test_what_is_written_is_read_as_it_was(form: str, text: str) -> None:
    kept = clean(text)
    if form == XML:  # XML has other line ends, and two characters fewer
        kept = kept.replace("\r\n", "\n").replace("\r", "\n").replace("\ufffe", "").replace("\uffff", "")
    read = read_body(write(form, {"A": clean(text), "N": 7, "I": {"M": "m"}}))
    assert read == Body(form, {"A": kept, "N": "7", "I": ""})


def test_an_end_mark_inside_a_text_does_not_end_it() -> None:
    raw = write(XML, {"A": "a]]>b]]]>>", "I": {"M": "<m>"}})
    assert raw.endswith(b"<I><M><![CDATA[<m>]]></M></I></xml>")
    assert fields(raw)["A"] == "a]]>b]]]>>"


def test_chinese_is_written_as_itself() -> None:
    assert write(JSON, {"A": "你好"}) == '{"A":"你好"}'.encode()


@pytest.mark.parametrize(
    "tag",
    [
        '<a href="weixin://bizmsgmenu?msgmenucontent=yes&msgmenuid=1">yes</a>',
        '<A HREF="http://x" data-miniprogram-appid="wx1">x</A>',
        "<a\thref=x>x</a\n>",
        "<a/href=x>",
        "<a>",
        "<a",
    ],
)
def test_links_tags_are_shown_as_text(tag: str) -> None:
    shown = harmless(f"say {tag}")
    assert shown.replace("\u200b", "") == f"say {tag}"
    assert "<a" not in shown.lower()
    assert "</a" not in shown.lower()
    assert harmless(shown) == shown


def test_other_tags_stay() -> None:
    assert harmless("<abbr> <b>a</b> 1<a2") == "<abbr> <b>a</b> 1<a2"
