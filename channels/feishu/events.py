"""From a pushed request to what it means: whose it is first, then what it says. Pure.

Only the check of the address comes unsigned, and every failure to prove who sent a request reads alike.
"""

import json
from dataclasses import dataclass

from pydantic import ValidationError

from bridge.channel import Answer, Identity, Ignored, Inbound, Item, Reading, Request, Unreadable
from channels.feishu.content import Content, read_content
from channels.feishu.crypto import decrypt, event_signature, legacy_card_signature, same
from channels.feishu.mentions import Mentioned, mentioned
from channels.feishu.settings import FeishuCredentials
from channels.feishu.wire import (
    Envelope,
    Fields,
    OldMessageEvent,
    envelope,
    instant,
    line_of,
    mentions_in,
    message_event,
    read_object,
    text_of,
)

CARD = "card"  # a note: a button's press, answered by an empty object
_DIRECT = frozenset({"p2p", "private"})
_WAIT_SECONDS = 5
_LEGACY_DIGITS = 40  # of SHA-1


@dataclass(frozen=True, slots=True)
class Proof:
    """What the platform shares with us, and the app that it pushes for."""

    app_id: str
    encrypt_key: str
    token: str

    @classmethod
    def of(cls, app_id: str, credentials: FeishuCredentials) -> "Proof":
        token = credentials.verification_token.get_secret_value()
        return cls(app_id, credentials.encrypt_key.get_secret_value(), token)


def read_request(request: Request, identity: Identity, proof: Proof) -> Reading | Answer:
    """What ``request`` brings, or the answer that ends it: a handshake, a refusal, or ``come again``."""
    if request.path or request.method != "POST":
        return _refusal(404 if request.path else 405, "events are POSTed to this address")
    outer = read_object(request.body)
    if outer is None:
        return _refusal(400, "the body is no JSON object")
    plain = _unsealed(outer, proof)
    if plain is None:
        return _UNPROVEN
    if plain.get("type") == "url_verification":
        return _handshake(plain, proof)
    if _is_old_card(request, plain):
        return Reading((Ignored("event"),), note=CARD) if _signed_card(request, proof) else _UNPROVEN
    frame = envelope(plain)
    if not _signed(request, proof) or (proof.token and not same(proof.token, frame.token)):
        return _UNPROVEN
    if frame.app_id not in ("", proof.app_id):
        return _refusal(403, "the event is of another app")
    return _meaning(frame, identity, proof)


def acknowledge(reading: Reading) -> Answer:
    """The platform asks for status 200 alone; the body is what its own kits send."""
    return _PRESSED if reading.note == CARD else _TAKEN


def _unsealed(outer: dict[str, object], proof: Proof) -> dict[str, object] | None:
    """The plain envelope, None where it was not sealed as this account's are."""
    sealed = outer.get("encrypt")
    if not proof.encrypt_key:
        return None if "encrypt" in outer else outer
    if sealed is None and "action" in outer:
        return outer  # the old card address seals nothing
    if not isinstance(sealed, str):
        return None
    try:
        return read_object(decrypt(proof.encrypt_key, sealed))
    except ValueError:
        return None


def _handshake(plain: dict[str, object], proof: Proof) -> Answer:
    if proof.token and not same(proof.token, text_of(plain, "token")):
        return _UNPROVEN
    return _json(200, {"challenge": text_of(plain, "challenge")})


def _signed(request: Request, proof: Proof) -> bool:
    if not proof.encrypt_key:
        return True
    timestamp, nonce, signature = _signature(request)
    return same(event_signature(timestamp, nonce, proof.encrypt_key, request.body), signature)


def _is_old_card(request: Request, plain: dict[str, object]) -> bool:
    return "action" in plain and "schema" not in plain and len(_signature(request)[2]) == _LEGACY_DIGITS


def _signed_card(request: Request, proof: Proof) -> bool:
    timestamp, nonce, signature = _signature(request)
    ours = legacy_card_signature(timestamp, nonce, proof.token, request.body)
    return bool(proof.token) and same(ours, signature)


def _signature(request: Request) -> tuple[str, str, str]:
    header = request.headers.get
    return (
        header("X-Lark-Request-Timestamp", ""),
        header("X-Lark-Request-Nonce", ""),
        header("X-Lark-Signature", ""),
    )


def _meaning(frame: Envelope, identity: Identity, proof: Proof) -> Reading | Answer:
    found: Item | Answer | None
    try:
        if frame.version == "2" and frame.kind == "im.message.receive_v1":
            event = message_event(frame.event)
            found = _message(*event, identity) if event is not None else None
        elif frame.version == "1" and frame.kind == "message":
            found = _old_message(OldMessageEvent.model_validate(frame.event), frame, identity)
        else:
            return Reading((Ignored("event"),), note=CARD if frame.kind.startswith("card.") else "")
    except ValidationError:
        found = None
    if found is None:
        found = Unreadable("a message event lacks what every message has", _message_id(frame.event))
    return found if isinstance(found, Answer) else Reading((found,))


def _message_id(event: object) -> str:
    """The id of a message that is otherwise unusable, so that its repeats are known."""
    message = event.get("message", event) if isinstance(event, dict) else None
    found = message.get("message_id", message.get("open_message_id")) if isinstance(message, dict) else None
    return found if isinstance(found, str) and len(found) <= 256 and found.isprintable() else ""


def _message(sender: Fields, message: Fields, identity: Identity) -> Item | Answer:
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
        return _NOT_YET
    known = mentioned(mentions, identity.bot_id)
    if not direct and not known.bot:
        return Ignored("not_mentioned", message_id)
    kind, thread = line_of(message, "message_type"), line_of(message, "thread_id")
    content = read_content(message_id, kind, line_of(message, "content"), known)
    bundle = message_id if kind == "merge_forward" else ""
    stamp = line_of(message, "create_time")
    return Inbound(
        message_id=message_id,
        sender=open_id,
        chat=chat_id,
        to=f"{'p2p' if direct else 'group'}:{chat_id}",
        reply_to=f"{message_id};thread" if thread else message_id,
        text="" if bundle else content.text,
        files=content.files,
        group=not direct,
        thread=thread,
        reference=bundle or line_of(message, "parent_id"),
        sent_at=instant(stamp),
        stamp=stamp,
    )


def _old_message(event: OldMessageEvent, frame: Envelope, identity: Identity) -> Item:
    """A message in a 1.0 envelope, whose id is ``open_message_id``. It has no stamp of its own."""
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
        reference=message_id if event.msg_type == "merge_forward" else event.parent_id,
        sent_at=instant(frame.sent),
    )


def _old_content(event: OldMessageEvent) -> Content:
    if event.msg_type == "text":
        return Content((event.text_without_at_bot or event.text).strip())
    if event.msg_type == "merge_forward":
        return Content()
    fields = {"image_key": event.image_key, "file_key": event.file_key, "title": event.text}
    return read_content(event.open_message_id, event.msg_type, json.dumps(fields), Mentioned(frozenset(), {}))


def _json(status: int, value: dict[str, str], **headers: str) -> Answer:
    return Answer(status, json.dumps(value).encode(), headers=headers)


def _refusal(status: int, reason: str) -> Answer:
    return _json(status, {"msg": reason}, **({"Allow": "POST"} if status == 405 else {}))


_TAKEN = _json(200, {"msg": "success"})
_PRESSED = _json(200, {})
_UNPROVEN = _refusal(403, "the request does not prove that the platform sent it")
_NOT_YET = _json(503, {"msg": "not ready for groups yet, try again"}, **{"Retry-After": str(_WAIT_SECONDS)})
