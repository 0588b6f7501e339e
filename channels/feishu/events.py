"""From a pushed request to what it means: whose it is first, then what it says. Pure.

Only the check of the address comes unsigned, and every failure to prove who sent a request reads alike.
"""

import json
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from bridge.channel import Answer, Claimed, Identity, Ignored, Inbound, Reading, Request
from channels.feishu import buttons, messages
from channels.feishu.crypto import decrypt, event_signature, legacy_card_signature, same
from channels.feishu.settings import FeishuCredentials
from channels.feishu.wire import Envelope, envelope, read_object, text_of

CARD = "card"  # a note: of a card, answered by an object that may hold a toast
OLD_CARD = "old card"  # pressed by way of the old address, which takes no toast
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
        return Reading((buttons.old(plain),), note=OLD_CARD) if _signed_card(request, proof) else _UNPROVEN
    frame = envelope(plain)
    if not _signed(request, proof) or (proof.token and not same(proof.token, frame.token)):
        return _UNPROVEN
    if frame.app_id not in ("", proof.app_id):
        return _refusal(403, "the event is of another app")
    return _meaning(frame, identity)


def acknowledge(reading: Reading, results: Sequence[Claimed]) -> Answer:
    """The platform asks for status 200 alone; the body is what its own kits send.

    Whoever pressed a button of ours sees at once that it did something; what, is told in the chat.
    """
    if reading.note not in (CARD, OLD_CARD):
        return _TAKEN
    ours = reading.note == CARD and isinstance(reading.items[0], Inbound)
    return _json(200, buttons.toast(results[0])) if ours else _PRESSED


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


def _meaning(frame: Envelope, identity: Identity) -> Reading | Answer:
    match frame.version, frame.kind:
        case "2", "im.message.receive_v1":
            found = messages.received(frame.event, identity)
        case "2", "im.message.updated_v1":
            found = messages.edited(frame.event, identity, frame.sent)
        case "2", "im.message.recalled_v1":
            found = messages.recalled(frame.event)
        case "2", "card.action.trigger":
            return Reading((buttons.pressed(frame),), note=CARD)
        case "1", "message":
            found = messages.old(frame.event, identity, frame.sent)
        case _:
            return Reading((Ignored("event"),), note=CARD if frame.kind.startswith("card.") else "")
    return _NOT_YET if found is None else Reading((found,))


def _json(status: int, value: dict[str, Any], **headers: str) -> Answer:
    return Answer(status, json.dumps(value).encode(), headers=headers)


def _refusal(status: int, reason: str) -> Answer:
    return _json(status, {"msg": reason}, **({"Allow": "POST"} if status == 405 else {}))


_TAKEN = _json(200, {"msg": "success"})
_PRESSED = _json(200, {})
_UNPROVEN = _refusal(403, "the request does not prove that the platform sent it")
_NOT_YET = _json(503, {"msg": "not ready for groups yet, try again"}, **{"Retry-After": str(_WAIT_SECONDS)})
