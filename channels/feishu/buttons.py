"""Buttons: a card that has them, and what is told of a press. Pure; a press is never a mere text.

Source: https://open.feishu.cn/document/feishu-cards/card-json-v2-structure and …/card-callback-communication
"""

from collections.abc import Sequence
from hashlib import sha256
from typing import Any

from bridge.channel import Choice, Claimed, Ignored, Inbound, Item, Unreadable
from channels.feishu.mentions import defused
from channels.feishu.wire import Envelope, Fields, id_of, instant, line_of, read_object

_OURS = "choice"
_DIRECT = "p2p:"
_TOASTS = {
    Claimed.ACCEPTED: ("info", "已收到", "Got it"),
    Claimed.DUPLICATE: ("info", "已经收到过了", "That has arrived already"),
}
_NOT_YOURS = ("warning", "您不能回答这个问题", "You cannot answer this")


def card(text: str, to: str, choices: Sequence[Choice]) -> dict[str, Any]:
    """``text``, as it is, over a button for each choice. A button brings back where its card was sent to."""
    words = {"tag": "div", "text": {"tag": "plain_text", "content": defused(text)}}
    return {
        "schema": "2.0",
        "config": {"update_multi": True},
        "body": {"elements": [words, *(_button(one, to, first=not at) for at, one in enumerate(choices))]},
    }


def _button(choice: Choice, to: str, *, first: bool) -> dict[str, Any]:
    return {
        "tag": "button",
        "text": {"tag": "plain_text", "content": choice.label},
        "type": "primary" if first else "default",
        "behaviors": [{"type": "callback", "value": {_OURS: choice.value, "to": to}}],
    }


def pressed(frame: Envelope) -> Item:
    """What ``card.action.trigger`` tells: who pressed which button of ours, and where."""
    event = _fields(frame.event)
    context, operator = _fields(event.get("context")), _fields(event.get("operator"))
    return _press(event, context, id_of(operator, "open_id"), frame.event_id, frame.sent)


def old(event: Fields) -> Item:
    """The same from the old address: the press has no id but its token, which is not kept."""
    token = line_of(event, "token")
    press_id = f"press-{sha256(token.encode()).hexdigest()[:32]}" if token else ""
    return _press(event, event, id_of(event, "open_id"), press_id, "")


def _press(event: Fields, place: Fields, sender: str, press_id: str, sent: str) -> Item:
    action = _fields(event.get("action"))
    value = _fields(action.get("value"))
    choice, to = line_of(value, _OURS), line_of(value, "to")
    if not choice:
        return Ignored("event")  # of a card that is none of ours
    chat, card_id = id_of(place, "open_chat_id"), id_of(place, "open_message_id")
    if not (sender and press_id and chat and card_id):
        return Unreadable("a press tells not who pressed, or where", press_id)
    direct = to == f"{_DIRECT}{chat}"  # elsewhere it is a copy of the card, and other people's
    return Inbound(
        message_id=press_id,
        sender=sender,
        chat=chat,
        to=to if direct else f"group:{chat}",
        reply_to=card_id,
        group=not direct,
        sent_at=instant(sent),
        pressed=choice,
    )


def toast(result: Claimed) -> dict[str, Any]:
    """What whoever pressed sees for a moment."""
    kind, chinese, english = _TOASTS.get(result, _NOT_YOURS)
    told = {"zh_cn": chinese, "en_us": english}
    return {"toast": {"type": kind, "content": english, "i18n": told}}


def _fields(value: object) -> Fields:
    """An object, also one that was written as text."""
    if isinstance(value, str):
        return read_object(value) or {}
    return value if isinstance(value, dict) else {}
