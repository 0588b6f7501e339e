import base64
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from bridge.tools.page import LINK_CHARACTERS, MOST_LINKS, decoded, work

URL = "https://example.org/a/b?c"


def read(page: str | bytes, charset: str = "") -> dict[str, Any]:
    data = page.encode() if isinstance(page, str) else page
    (told,) = work({"page": base64.b64encode(data).decode(), "charset": charset, "url": URL})
    return told


def test_what_a_person_would_read_is_the_text() -> None:
    told = read("""<!doctype html><html><head><title> The
        title </title><style>p {}</style><script>var x = "<p>no</p>"</script></head>
        <body><h1>Head &amp; more</h1><p>One <b>two</b>
        three.<br>four</p><noscript>no</noscript><svg><text>no</text><title>no</title></svg>
        <ul><li>first<li>second</ul><pre>
def x():
    pass
</pre><table><tr><td>a</td><td>b</td></tr></table><img alt="A cat"><img></body></html>""")
    assert told["title"] == "The title"
    assert told["text"] == (
        "Head & more\n\nOne two three.\nfour\n\n- first\n- second\n\ndef x():\n    pass\n\na  b\n\n[A cat]"
    )


def test_links_are_whole_addresses_each_once() -> None:
    told = read(
        '<a href="../x#y">X</a> <a href="/x">again</a> <a href="//other.example/">O <i>ther</i></a>'
        '<a href="javascript:no">no</a> <a href="mailto:a@b">no</a> <a href="https://[bad">no</a><a>no</a>'
        f'<a href="/{"x" * LINK_CHARACTERS}">no</a> <a href="/blank"> </a> <a href="/open">open '
        '<a href="/z">z</a></a>'
    )
    assert told["links"] == [
        ("X", "https://example.org/x"),
        ("O ther", "https://other.example/"),
        ("open", "https://example.org/open"),
        ("z", "https://example.org/z"),
    ]
    many = read("".join(f'<a href="/{number}">x</a>' for number in range(MOST_LINKS + 9)))
    assert len(many["links"]) == MOST_LINKS


def test_what_is_left_open_or_closed_twice_does_no_harm() -> None:
    assert read("<p>a<svg><g>b</svg></svg></noscript>c</p></p>")["text"] == "ac"
    assert read("<head><title>t</title><p>a")["text"] == "a"


@pytest.mark.parametrize(
    ("data", "charset", "text"),
    [
        ("é".encode(), "", "é"),
        ("é".encode("latin-1"), "ISO-8859-1", "é"),
        ("\ufeffé".encode("utf-16"), "ascii", "é"),
        ("\ufeffé".encode(), "latin-1", "é"),
        ("中".encode("gb18030"), "gb18030", "中"),
        ("é".encode(), "none", "é"),
        ("é".encode(), "zip", "é"),
        ("é".encode(), "a\0b", "é"),
        (b"\xff", "utf-8", "\ufffd"),
        ("xn--é".encode(), "idna", "xn--é"),
        ("é".encode(), "punycode", "é"),
    ],
)
def test_bytes_become_text_by_what_is_said_of_them(data: bytes, charset: str, text: str) -> None:
    assert decoded(data, charset) == text


def test_the_page_itself_may_say_its_charset() -> None:
    page = '<meta charset="gbk"><p>中文'.encode("gbk")
    assert read(page)["text"] == "中文"
    assert (
        read('<meta http-equiv="x" content="text/html; charset=latin-1"><p>é'.encode("latin-1"))["text"]
        == "é"
    )


@given(st.lists(st.sampled_from([
    "<a href='x'>", "</a>", "<p", ">", "<![CDATA[", "<!--", "-->", "<script>", "</script", "&#x110000;",
    "&amp", "<title>", "<?", "<!", "</", "text", "<svg>", "</svg>", "<pre>", "\0", "<li>", "é",
]), max_size=30).map("".join))  # fmt: skip
def test_any_page_is_read(page: str) -> None:
    assert set(read(page)) == {"title", "text", "links"}
