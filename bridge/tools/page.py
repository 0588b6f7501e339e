"""The text of a web page. Runs in a worker, as others made the page: with the standard library alone."""

import base64
import codecs
import re
from collections.abc import Iterator
from html.parser import HTMLParser
from typing import Any
from urllib.parse import urljoin, urlsplit

MOST_LINKS = 200
LINK_CHARACTERS = 500
TITLE_CHARACTERS = 300
_SILENT = frozenset("script style noscript template svg math iframe object select".split())
_BLOCKS = frozenset(
    "address article aside blockquote br dd details div dl dt fieldset figcaption figure footer form h1 h2 "
    "h3 h4 h5 h6 header hr li main nav ol p pre section summary table tbody thead tr ul".split()
)
_CELLS = frozenset({"td", "th"})
_CHARSET = re.compile(rb"<meta[^>]{0,200}?charset\s{0,9}=\s{0,9}[\"']?([A-Za-z0-9_:.-]{1,40})", re.IGNORECASE)
_ODD = frozenset({"idna", "punycode", "raw-unicode-escape", "undefined", "unicode-escape", "utf-7"})
_MARKS = ((codecs.BOM_UTF8, "utf-8"), (codecs.BOM_UTF16_LE, "utf-16"), (codecs.BOM_UTF16_BE, "utf-16"))

Told = dict[str, Any]


def work(request: Told) -> Iterator[Told]:
    """Once: ``title``, ``text`` and ``links``, pairs of text and address.

    ``request`` holds ``page``, its bytes in base64, ``charset`` as the server said it, and ``url``.
    """
    data = base64.b64decode(request["page"])
    reader = Reader(request["url"])
    reader.feed(decoded(data, request["charset"] or _declared(data)))
    reader.close()
    yield {"title": reader.title(), "text": reader.text(), "links": reader.links}


def decoded(data: bytes, charset: str) -> str:
    """Text in the charset that its first bytes say, else in ``charset``, else in UTF-8."""
    name = next((name for mark, name in _MARKS if data.startswith(mark)), charset)
    try:
        codec = codecs.lookup(name)
    except (LookupError, ValueError):
        codec = codecs.lookup("utf-8")
    is_odd = codec.name in _ODD or not codec._is_text_encoding
    return data.decode("utf-8" if is_odd else codec.name, "replace").removeprefix("\ufeff")


def _declared(data: bytes) -> str:
    found = _CHARSET.search(data[:4096])
    return found[1].decode() if found else ""


class Reader(HTMLParser):
    """Collects what a person would read. ``links`` are those to the web, each address once."""

    def __init__(self, url: str) -> None:
        super().__init__(convert_charrefs=True)
        self._url = url
        self._parts: list[str] = []
        self._title: list[str] = []
        self._silent: list[str] = []  # the elements around whose text is not shown
        self._in_title = self._in_pre = False
        self._link: tuple[str, list[str]] | None = None
        self._seen: set[str] = set()
        self.links: list[tuple[str, str]] = []

    def handle_starttag(self, tag: str, attributes: list[tuple[str, str | None]]) -> None:
        self._in_title = tag == "title" and not self._silent
        if tag in _SILENT:
            self._silent.append(tag)
        if self._silent:
            return
        self._part(tag, "\n- " if tag == "li" else "\n")
        self._in_pre = self._in_pre or tag == "pre"
        if tag == "a":
            self._begin_link(dict(attributes).get("href") or "")
        if tag == "img" and (text := dict(attributes).get("alt")):
            self.handle_data(f"[{text}]")

    def handle_endtag(self, tag: str) -> None:
        self._in_title = False
        if tag in self._silent:
            while self._silent.pop() != tag:
                pass
        elif not self._silent:
            self._part(tag, "\n")
            self._in_pre = self._in_pre and tag != "pre"
            if tag == "a":
                self._end_link()

    def handle_data(self, data: str) -> None:
        if self._in_title:
            self._title.append(data)
        elif not self._silent:
            self._parts.append(data if self._in_pre else re.sub(r"\s+", " ", data))
            if self._link:
                self._link[1].append(data)

    def title(self) -> str:
        return " ".join("".join(self._title).split())[:TITLE_CHARACTERS]

    def text(self) -> str:
        """In lines, with at most one empty line between them."""
        kept: list[str] = []
        for line in "".join(self._parts).split("\n"):
            line = line.rstrip() if line.startswith("  ") else line.strip()  # a preformatted one
            if line or (kept and kept[-1]):
                kept.append(line)
        return "\n".join(kept).strip("\n")

    def _part(self, tag: str, line: str) -> None:
        if tag in _BLOCKS:
            self._parts.append(line)
        elif tag in _CELLS:
            self._parts.append(" ")

    def _begin_link(self, href: str) -> None:
        self._end_link()
        if not href.strip():
            return
        try:
            url = urljoin(self._url, href.strip())
            if urlsplit(url).scheme in ("http", "https") and len(url) <= LINK_CHARACTERS:
                self._link = url.partition("#")[0], []
        except ValueError:
            return

    def _end_link(self) -> None:
        if self._link is None:
            return
        url, words = self._link
        self._link = None
        text = " ".join("".join(words).split())[:TITLE_CHARACTERS]
        if url not in self._seen and text and len(self.links) < MOST_LINKS:
            self._seen.add(url)
            self.links.append((text, url))
