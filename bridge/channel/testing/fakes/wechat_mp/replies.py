"""What the platform takes as the response to a push, and what it shows of it."""

import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any
from xml.etree.ElementTree import Element, ParseError  # parsing itself goes through defusedxml

from defusedxml.common import DefusedXmlException
from defusedxml.ElementTree import fromstring

from bridge.channel.testing.fakes.wechat_mp.seal import sign, unseal
from bridge.channel.testing.fakes.wechat_mp.world import ACCOUNT, By, Shown, World

TEXT_BYTES = 2048
_KINDS = {"image": "Image", "voice": "Voice", "video": "Video"}


class MalformedError(Exception):
    """A response for which the platform shows that the account is out of order."""


@dataclass(frozen=True, slots=True)
class Secrets:
    """What the account's server settings in the console are."""

    app_id: str
    token: str = field(repr=False)
    encoding_aes_key: str = field(repr=False)
    mode: str = "secure"
    form: str = "xml"


def read_reply(raw: bytes, to: str, message_id: str, secrets: Secrets, world: World) -> Shown | None:
    """What ``raw`` shows to ``to``; None: the account keeps silent.

    Raises:
        MalformedError: it is no proper response.
    """
    if raw in (b"", b"success"):
        return None
    fields = _opened(_parsed(raw, secrets.form), secrets)
    if (fields.get("ToUserName"), fields.get("FromUserName")) != (to, ACCOUNT):
        raise MalformedError("it is not from the account to the sender")
    if not str(fields.get("CreateTime", "")).isdecimal():
        raise MalformedError("it has no time")
    kind = fields.get("MsgType")
    if kind == "text":
        text = fields.get("Content")
        if not isinstance(text, str) or not text.strip() or len(text.encode()) > TEXT_BYTES:
            raise MalformedError("its text is empty or too long")
        return Shown(to, By.REPLY, kind, text, answers=message_id)
    if kind not in _KINDS:
        raise MalformedError("it has no type that the platform knows")
    inner = fields.get(_KINDS[kind])
    media = world.find_media(inner.get("MediaId")) if isinstance(inner, dict) else None
    if media is None or media.kind != kind:
        raise MalformedError("its file is not on the platform, or of another kind")
    return Shown(to, By.REPLY, kind, media=media, answers=message_id)


def _opened(fields: dict[str, Any], secrets: Secrets) -> dict[str, Any]:
    if "Encrypt" not in fields:
        if secrets.mode == "secure":
            raise MalformedError("it is not sealed")
        return fields
    if secrets.mode == "plaintext":
        raise MalformedError("it is sealed")
    sealed, stamp, nonce = (str(fields.get(name, "")) for name in ("Encrypt", "TimeStamp", "Nonce"))
    if not stamp.isdecimal() or not nonce:
        raise MalformedError("it has no time or nonce of its own")
    if sign(secrets.token, stamp, nonce, sealed) != fields.get("MsgSignature"):
        raise MalformedError("its signature is wrong")
    try:
        return _parsed(unseal(secrets.encoding_aes_key, secrets.app_id, sealed), secrets.form)
    except ValueError:
        raise MalformedError("it is not sealed for the platform") from None


def _parsed(raw: bytes, form: str) -> dict[str, Any]:
    try:
        value = json.loads(raw) if form == "json" else _values(fromstring(raw.decode(), forbid_dtd=True))
    except (ValueError, ParseError, DefusedXmlException):
        value = None
    if not isinstance(value, dict):
        raise MalformedError(f"it is no {form}")
    return value


def _values(element: Element) -> Mapping[str, Any] | str:
    return {child.tag: _values(child) for child in element} if len(element) else element.text or ""
