"""What followers do, as the platform's fields; and bodies, in XML or JSON."""

import json
from collections.abc import Mapping
from dataclasses import dataclass
from xml.sax.saxutils import escape

from bridge.channel.testing.fakes.wechat_mp.world import ACCOUNT, OWNER, World

Value = str | int | float
Fields = dict[str, Value]


@dataclass(frozen=True, slots=True)
class FakeFile:
    """A file that a person sends."""

    name: str
    mime: str
    data: bytes


@dataclass(frozen=True, slots=True)
class Note:
    """What a person sends: a text, or one ``file``, or any ``fields`` of the platform's in place of these."""

    text: str = ""
    sender: str = OWNER
    file: FakeFile | None = None
    message_id: str = ""
    fields: Mapping[str, Value] | None = None


def written(world: World, note: Note) -> Fields:
    """The message that ``note`` becomes; its sender may be answered from now on."""
    head: Fields = {
        "ToUserName": ACCOUNT,
        "FromUserName": note.sender,
        "CreateTime": world.now_seconds(),
    }
    if note.fields is not None:
        fields = head | dict(note.fields)
    elif note.file is not None:
        fields = head | _file(world, note.file)
    else:
        fields = head | {"MsgType": "text", "Content": note.text}
    if fields["MsgType"] != "event":
        fields.setdefault("MsgId", int(note.message_id) if note.message_id.isdecimal() else note.message_id)
        fields["MsgId"] = fields["MsgId"] or int(world.new_id())
    return fields


def _file(world: World, file: FakeFile) -> Fields:
    """A picture, a voice or a video, as people's clients send them; anything else has no message type."""
    kind = {"image": "image", "audio": "voice", "video": "video"}.get(file.mime.partition("/")[0], "file")
    media = world.add_media(kind, file.name, file.mime, file.data)
    fields: Fields = {"MsgType": kind, "MediaId": media.media_id}
    if kind == "image":
        return fields | {"PicUrl": f"{world.base}/picture/{media.media_id}"}
    if kind == "voice":
        return fields | {"Format": "amr", "Recognition": ""}
    if kind == "video":
        cover = world.add_media("thumb", "cover.jpg", "image/jpeg", b"\xff\xd8\xff")
        return fields | {"ThumbMediaId": cover.media_id}
    return fields


def xml(fields: Mapping[str, Value]) -> bytes:
    """As the platform writes it: texts in CDATA, numbers plain."""
    return f"<xml>{''.join(_element(name, value) for name, value in fields.items())}\n</xml>".encode()


def _element(name: str, value: Value) -> str:
    if not isinstance(value, str):
        return f"\n<{name}>{value}</{name}>"
    shown = escape(value) if "]]>" in value else f"<![CDATA[{value}]]>"
    return f"\n<{name}>{shown}</{name}>"


def write(form: str, fields: Mapping[str, Value]) -> bytes:
    """``form`` is ``xml`` or ``json``."""
    return json.dumps(fields, ensure_ascii=False).encode() if form == "json" else xml(fields)
