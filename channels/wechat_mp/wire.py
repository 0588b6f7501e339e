"""WeChat's bodies, XML or JSON: read into plain texts, and written. Unknown fields are ignored. Pure.

Source: https://developers.weixin.qq.com/doc/offiaccount/Message_Management/Receiving_standard_messages.html
"""

import json
import math
import re
from collections.abc import Mapping
from dataclasses import dataclass
from xml.etree.ElementTree import ParseError  # only the error: what is parsed goes through defusedxml

from defusedxml.common import DefusedXmlException
from defusedxml.ElementTree import fromstring

from bridge.channel.text import clean

XML, JSON = "xml", "json"
Fields = dict[str, str]
Value = str | int | Mapping[str, str]
_NO_XML = re.compile("[\ufffe\uffff]")
_MOST_DIGITS = 10**30
_LINK = re.compile(r"<(?=/?a(?:[\s/>]|$))", re.IGNORECASE)
_BREAK = "\u200b"  # zero width space


@dataclass(frozen=True, slots=True)
class Body:
    """A body's fields as texts, and the ``form`` that it came in and that its answer takes."""

    form: str
    fields: Fields

    def get(self, name: str) -> str:
        return self.fields.get(name, "")


def read_body(raw: bytes) -> Body | None:
    """What ``raw`` holds; None when it is neither XML nor a JSON object in UTF-8. Never raises.

    A field that holds others is no text and reads as blank; of two under one name the first counts.
    """
    try:
        text = raw.decode("utf-8-sig").strip()
    except UnicodeDecodeError:
        return None
    form, read = (JSON, _read_json) if text.startswith("{") else (XML, _read_xml)
    fields = read(text)
    return None if fields is None else Body(form, fields)


def _read_xml(text: str) -> Fields | None:
    try:
        root = fromstring(text, forbid_dtd=True)
    except (ParseError, DefusedXmlException, ValueError):
        return None
    fields: Fields = {}
    for child in root:
        fields.setdefault(child.tag, clean(child.text or ""))
    return fields


def _read_json(text: str) -> Fields | None:
    try:
        value = json.loads(text)
    except (ValueError, RecursionError):
        return None
    return {key: _text(each) for key, each in value.items()} if isinstance(value, dict) else None


def _text(value: object) -> str:
    match value:
        case str():
            return clean(value)
        case bool():
            return ""
        case int() if abs(value) < _MOST_DIGITS:
            return str(value)
        case float() if math.isfinite(value):
            return repr(value)
    return ""


def write(form: str, fields: Mapping[str, Value]) -> bytes:
    """``fields`` in ``form``, texts as they are."""
    if form == JSON:
        return json.dumps(fields, ensure_ascii=False, separators=(",", ":")).encode(errors="replace")
    return f"<xml>{_elements(fields)}</xml>".encode()


def _elements(fields: Mapping[str, Value]) -> str:
    return "".join(f"<{name}>{_element(value)}</{name}>" for name, value in fields.items())


def _element(value: Value) -> str:
    if isinstance(value, int):
        return str(value)
    return _cdata(value) if isinstance(value, str) else _elements(value)


def _cdata(text: str) -> str:
    """Text as it is: an end mark inside is divided over two sections, and what no XML takes is left out."""
    text = _NO_XML.sub("", clean(text)).replace("]]>", "]]]]><![CDATA[>")
    return f"<![CDATA[{text}]]>"


def harmless(text: str) -> str:
    """Make of every link's tag mere text: one can lead to a mini program, or say something as the reader.

    Done twice it changes nothing more, and no cut brings a tag back.
    """
    return _LINK.sub("<" + _BREAK, text)
