"""What people did, from an event's content: wrote, edited or took back a message. Pure; never fails.

Source: https://open.feishu.cn/document/server-docs/im-v1/message/events/receive and …/events/recalled
"""

import json
from dataclasses import replace

from pydantic import ValidationError

from bridge.channel import Edited, Identity, Ignored, Inbound, Item, Recalled, Unreadable
from channels.feishu.card import WITHHELD
from channels.feishu.content import Content, read_content
from channels.feishu.mentions import NOBODY, mentioned
from channels.feishu.references import Link
from channels.feishu.wire import (
    Fields,
    OldMessageEvent,
    id_of,
    instant,
    is_id,
    line_of,
    mentions_in,
    message_event,
    milliseconds,
)

_DIRECT = frozenset({"p2p", "private"})
_LACKS = "a message event lacks what every message has"


def received(event: object, identity: Identity) -> Item | None:
    """``im.message.receive_v1``; None: not before the bot's own id is known."""
    found = message_event(event)
    return _message(*found, identity) if found is not None else Unreadable(_LACKS, _message_id(event))


def edited(event: object, identity: Identity, sent: str) -> Item | None:
    """``im.message.updated_v1``, shaped as a received message; ``sent`` is the event's own stamp.

    What comes of it is stored under no id: a message that is still to come must not count as seen.
    """
    found = received(event, identity)
    if isinstance(found, Ignored | Unreadable):
        return replace(found, message_id="")
    if not isinstance(found, Inbound):
        return found
    parts = message_event(event)
    revision = milliseconds(line_of(parts[1], "update_time") if parts else "") or milliseconds(sent)
    return Edited(found, revision) if revision else Unreadable("an edit does not say when it was made")


def recalled(event: object) -> Item:
    """``im.message.recalled_v1``. It tells the chat, and not whose the message was."""
    fields = event if isinstance(event, dict) else {}
    message_id = fields.get("message_id")
    if not is_id(message_id):
        return Unreadable("a recall names no message")
    return Recalled(str(message_id), chat=line_of(fields, "chat_id"))


def old(event: object, identity: Identity, sent: str) -> Item:
    """A message in a 1.0 envelope, whose id is ``open_message_id``. It has no stamp of its own."""
    try:
        return _old_message(OldMessageEvent.model_validate(event), identity, sent)
    except ValidationError:
        return Unreadable(_LACKS, _message_id(event))


def _message_id(event: object) -> str:
    """The id of a message that is otherwise unusable, so that its repeats are known."""
    message = event.get("message", event) if isinstance(event, dict) else None
    found = message.get("message_id", message.get("open_message_id")) if isinstance(message, dict) else None
    return str(found) if is_id(found) else ""


def _message(sender: Fields, message: Fields, identity: Identity) -> Item | None:
    message_id, chat_id = message["message_id"], message["chat_id"]
    sender_id = sender.get("sender_id")
    open_id = line_of(sender_id, "open_id") if isinstance(sender_id, dict) else ""
    if open_id and open_id == identity.bot_id:
        return Ignored("own", message_id)
    if sender.get("sender_type") != "user":
        return Ignored("bot", message_id)
    if not open_id:
        return Unreadable("a message event names no sender", message_id)
    direct = message["chat_type"] in _DIRECT
    mentions = mentions_in(message)
    if not direct and mentions and not identity.bot_id:
        return None
    known = mentioned(mentions, identity.bot_id)
    if not direct and not known.bot:
        return Ignored("not_mentioned", message_id)
    kind, thread = line_of(message, "message_type"), line_of(message, "thread_id")
    content = read_content(message_id, kind, line_of(message, "content"), known)
    elsewhere = kind == "merge_forward" or content.text.endswith(WITHHELD)
    stamp = line_of(message, "create_time")
    return Inbound(
        message_id=message_id,
        sender=open_id,
        chat=chat_id,
        to=f"{'p2p' if direct else 'group'}:{chat_id}",
        reply_to=f"{message_id};thread" if thread else message_id,
        text="" if elsewhere else content.text,
        files=content.files,
        group=not direct,
        thread=thread,
        reference=_link(message, elsewhere, thread, open_id).encode(),
        sent_at=instant(stamp),
        stamp=stamp,
    )


def _link(message: Fields, elsewhere: bool, thread: str, sender: str) -> Link:
    """In a thread each message says that it replies to the first one, which is no quote then."""
    parent, root = id_of(message, "parent_id"), id_of(message, "root_id")
    if not thread or not root or root == message["message_id"]:
        return Link(elsewhere, parent)
    quoted = "" if parent == root else parent
    return Link(elsewhere, quoted, root, f"{thread} {sender}")


def _old_message(event: OldMessageEvent, identity: Identity, sent: str) -> Item:
    sender, message_id = event.open_id, event.open_message_id
    if sender and sender == identity.bot_id:
        return Ignored("own", message_id)
    if not sender:
        return Unreadable("a message event names no sender", message_id)
    direct = event.chat_type in _DIRECT
    if not direct and not event.is_mention:
        return Ignored("not_mentioned", message_id)
    chat = event.open_chat_id or (sender if direct else "")
    if not chat:
        return Unreadable("a message event names no chat", message_id)
    content = _old_content(event)
    return Inbound(
        message_id=message_id,
        sender=sender,
        chat=chat,
        to=f"{'p2p' if direct else 'group'}:{chat}",
        reply_to=message_id,
        text=content.text,
        files=content.files,
        group=not direct,
        reference=Link(event.msg_type == "merge_forward", event.parent_id).encode(),
        sent_at=instant(sent),
    )


def _old_content(event: OldMessageEvent) -> Content:
    if event.msg_type == "text":
        return Content((event.text_without_at_bot or event.text).strip())
    if event.msg_type == "merge_forward":
        return Content()
    fields = {"image_key": event.image_key, "file_key": event.file_key, "title": event.text}
    return read_content(event.open_message_id, event.msg_type, json.dumps(fields), NOBODY)
