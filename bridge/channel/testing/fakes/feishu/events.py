"""What people write, as messages and as the events that tell the bot of them."""

import json
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

from bridge.channel.testing.fakes.feishu.world import BOT, OWNER, Chat, Message, Upload, World


@dataclass(frozen=True, slots=True)
class FakeFile:
    """A file that a person sends."""

    name: str
    mime: str
    data: bytes


@dataclass(frozen=True, slots=True)
class Note:
    """One message of a person. ``chat`` empty: the direct chat, or with ``group`` one that all share.

    ``kind`` with ``content`` sends a message of any type as it is; ``card`` is then the whole of a card.
    ``parent`` quotes a message. ``thread`` is the thread on the message ``root``, or one of its own without.
    """

    text: str = ""
    sender: str = OWNER
    chat: str = ""
    group: bool = False
    mention: bool = True
    files: tuple[FakeFile, ...] = ()
    parent: str = ""
    root: str = ""
    thread: str = ""
    message_id: str = ""
    create_ms: int = 0
    sender_type: str = "user"
    kind: str = ""
    content: str = ""
    card: str = ""


Bundle = Sequence["Note | Bundle"]
"""What is forwarded as one: messages, and bundles within it."""

PLACEHOLDER = "Merged and Forwarded Message"


def write(world: World, note: Note) -> Message:
    """Put ``note`` into the world as the client applications do."""
    chat = place(world, note)
    kind, content = (note.kind, note.content) if note.kind else _content(world, note, chat)
    world.people.add(note.sender)
    message = Message(
        message_id=note.message_id or world.new_id("om"),
        chat=chat,
        sender=note.sender,
        kind=kind,
        content=content,
        create_ms=note.create_ms or world.now_ms(),
        sender_type=note.sender_type,
        parent=note.parent or note.root,
        root=note.root or _root_of(world, note.parent),
        thread=note.thread,
        card=note.card,
    )
    if chat.group and note.mention:
        message.mentions = [{"key": "@_user_1", "id": _ids(BOT), "name": "Turnbridge", "tenant_key": "t"}]
    return world.add(message)


def forward(world: World, bundle: Bundle, note: Note) -> Message:
    """Put a message into the world that forwards ``bundle``; ``note`` says who does so, and where."""
    head = write(world, replace(note, kind="merge_forward", content=PLACEHOLDER))
    _fill(world, bundle, head, head.message_id)
    return head


def _fill(world: World, bundle: Bundle, head: Message, upper: str) -> None:
    """Messages keep who wrote them and when; their ids are new, and are good for nothing by themselves."""
    for each in bundle:
        note = each if isinstance(each, Note) else Note(kind="merge_forward", content=PLACEHOLDER)
        inner = write(world, replace(note, chat=head.chat.chat_id, group=head.chat.group, mention=False))
        inner.upper = upper
        if not isinstance(each, Note):
            _fill(world, each, head, inner.message_id)


def edit(message: Message, text: str, at_ms: int) -> None:
    """Change what a message says, as its writer does; mentions stay where they were."""
    mention = "@_user_1 " if message.mentions else ""
    message.kind, message.content = "text", json.dumps({"text": mention + text}, ensure_ascii=False)
    message.update_ms = max(at_ms, message.create_ms + 1, message.update_ms + 1)


def _root_of(world: World, parent: str) -> str:
    replied = world.messages.get(parent)
    return (replied.root or parent) if replied is not None else parent


def place(world: World, note: Note) -> Chat:
    if note.group:
        return world.group(note.chat or "oc_fake_group")
    if not note.chat:
        return world.direct(note.sender)
    return world.chats.setdefault(note.chat, Chat(note.chat, group=False, person=note.sender))


def received(
    message: Message, event_id: str, app_id: str, token: str, kind: str = "im.message.receive_v1"
) -> dict[str, Any]:
    """``im.message.receive_v1``, or ``im.message.updated_v1``, which looks the same."""
    body: dict[str, Any] = {
        "message_id": message.message_id,
        "create_time": str(message.create_ms),
        "update_time": str(message.update_ms or message.create_ms),
        "chat_id": message.chat.chat_id,
        "chat_type": "group" if message.chat.group else "p2p",
        "message_type": message.kind,
        "content": message.content,
    }
    optional = {"parent_id": message.parent, "root_id": message.root, "thread_id": message.thread}
    body |= {key: value for key, value in optional.items() if value}
    if message.mentions:
        body["mentions"] = message.mentions
    sender = {"sender_id": _ids(message.sender), "sender_type": message.sender_type, "tenant_key": "t"}
    event = {"sender": sender, "message": body}
    return envelope(kind, event, event_id, app_id, token, message.update_ms or message.create_ms)


def pressed(
    value: dict[str, Any], card: Message, sender: str, event_id: str, app_id: str, token: str, at_ms: int
) -> dict[str, Any]:
    """``card.action.trigger``"""
    event = {
        "operator": {**_ids(sender), "tenant_key": "t"},
        "token": f"c-{event_id}",
        "action": {"value": value, "tag": "button"},
        "host": "im_message",
        "context": {"open_message_id": card.message_id, "open_chat_id": card.chat.chat_id},
    }
    return envelope("card.action.trigger", event, event_id, app_id, token, at_ms)


def recalled(message: Message, event_id: str, app_id: str, token: str, at_ms: int) -> dict[str, Any]:
    """``im.message.recalled_v1``"""
    event = {
        "message_id": message.message_id,
        "chat_id": message.chat.chat_id,
        "recall_time": str(at_ms),
        "recall_type": "message_owner",
    }
    return envelope("im.message.recalled_v1", event, event_id, app_id, token, at_ms)


def envelope(
    kind: str, event: dict[str, Any], event_id: str, app_id: str, token: str, at_ms: int
) -> dict[str, Any]:
    header = {
        "event_id": event_id,
        "event_type": kind,
        "create_time": str(at_ms),
        "token": token,
        "app_id": app_id,
        "tenant_key": "t",
    }
    return {"schema": "2.0", "header": header, "event": event}


def _ids(open_id: str) -> dict[str, str]:
    return {"open_id": open_id, "union_id": "on_" + open_id.removeprefix("ou_"), "user_id": ""}


def _content(world: World, note: Note, chat: Chat) -> tuple[str, str]:
    mention = "@_user_1 " if chat.group and note.mention else ""
    uploads = [_uploaded(world, file) for file in note.files]
    if len(uploads) == 1 and not note.text:
        return _alone(uploads[0])
    if not uploads:
        return "text", json.dumps({"text": mention + note.text}, ensure_ascii=False)
    # Words and files go together only in a post, which has no tag for other files than pictures and videos.
    rows: list[list[dict[str, str]]] = [[{"tag": "text", "text": note.text}]]
    rows += [[_element(each)] for each in uploads]
    if mention:
        rows[0].insert(0, {"tag": "at", "user_id": "@_user_1", "user_name": "Turnbridge"})
    return "post", json.dumps({"title": "", "content": rows}, ensure_ascii=False)


def _uploaded(world: World, file: FakeFile) -> Upload:
    return world.upload(
        "image" if file.mime.startswith("image/") else "stream", file.name, file.mime, file.data
    )


def _element(upload: Upload) -> dict[str, str]:
    if upload.kind == "image":
        return {"tag": "img", "image_key": upload.key}
    return {"tag": "media", "file_key": upload.key, "image_key": ""}


def _alone(upload: Upload) -> tuple[str, str]:
    if upload.kind == "image":
        return "image", json.dumps({"image_key": upload.key})
    named = {"file_key": upload.key, "file_name": upload.name}
    match upload.mime.partition("/")[0]:
        case "audio":
            return "audio", json.dumps({"file_key": upload.key, "duration": 3000})
        case "video":
            return "media", json.dumps(named | {"image_key": "", "duration": 3000}, ensure_ascii=False)
    return "file", json.dumps(named, ensure_ascii=False)
