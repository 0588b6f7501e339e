"""From a pushed request to what it means: who sent it first, then what it says. Pure.

Every failure to prove who sent a request reads alike. What came before is known by its message's id, which
the core keeps: so a replay within the window of time is a repeat, and one after it is refused here.
"""

from dataclasses import dataclass, field
from datetime import datetime
from typing import Final

from bridge.channel import Answer, Reading, Request, Unreadable
from channels.wechat_mp.crypto import Seal, same, signature
from channels.wechat_mp.messages import instant, read_message
from channels.wechat_mp.wire import XML, Body, read_body

SILENT: Final = Answer(200, b"success", "text/plain")  # what keeps the platform from repeating
_PATHS = ("", "/")


@dataclass(frozen=True, slots=True)
class Proof:
    """What the platform shares with us, and the account that it pushes for. ``seal`` None: plaintext."""

    account: str
    token: str = field(repr=False)
    seal: Seal | None
    window_seconds: float


def read_request(request: Request, proof: Proof) -> Reading | Answer:
    """What ``request`` brings, or the answer that ends it: the check of the address, or a refusal.

    The reading's note is the form that an answer takes.
    """
    if request.path not in _PATHS:
        return _refusal(404, "no such route")
    if request.method == "GET":
        return _handshake(request, proof)
    if request.method != "POST":
        return Answer(405, b"use POST", "text/plain", {"Allow": "GET, POST"})
    outer = read_body(request.body)
    sealed = outer.get("Encrypt") if outer is not None and proof.seal is not None else ""
    if not _signed(request, proof, sealed):
        return _UNPROVEN
    sent_at = instant(_query(request, "timestamp"))
    if sent_at is None or not _fresh(request, sent_at, proof):
        return _STALE
    if proof.seal is None:
        return _meaning(outer, sent_at, proof)
    try:
        return _meaning(read_body(proof.seal.open(sealed)), sent_at, proof)
    except ValueError:
        return _UNPROVEN


def _handshake(request: Request, proof: Proof) -> Answer:
    """The console's check of the address. Its word is not sealed in any mode."""
    if not same(_plain_signature(request, proof), _query(request, "signature")):
        return _UNPROVEN
    sent_at = instant(_query(request, "timestamp"))
    if sent_at is None or not _fresh(request, sent_at, proof):
        return _STALE
    return Answer(200, _query(request, "echostr").encode(errors="replace"), "text/plain")


def _signed(request: Request, proof: Proof, sealed: str) -> bool:
    """Sealed bodies have a signature of their own; the plain one covers no body and then proves nothing."""
    encrypted = _query(request, "encrypt_type") not in ("", "raw")
    if proof.seal is None:
        return not encrypted and same(_plain_signature(request, proof), _query(request, "signature"))
    if _query(request, "encrypt_type") != "aes" or not sealed:
        return False
    timestamp, nonce = _query(request, "timestamp"), _query(request, "nonce")
    return same(signature(proof.token, timestamp, nonce, sealed), _query(request, "msg_signature"))


def _plain_signature(request: Request, proof: Proof) -> str:
    return signature(proof.token, _query(request, "timestamp"), _query(request, "nonce"))


def _fresh(request: Request, sent_at: datetime, proof: Proof) -> bool:
    return abs((request.received_at - sent_at).total_seconds()) <= proof.window_seconds


def _meaning(body: Body | None, sent_at: datetime, proof: Proof) -> Reading | Answer:
    if body is None:
        return Reading((Unreadable("a message is neither XML nor JSON"),), sent_at, XML)
    if body.get("ToUserName") != proof.account:
        return _refusal(403, "the message is to another account: compare original_id with the console")
    return Reading((read_message(body, proof.account),), sent_at, body.form)


def _query(request: Request, name: str) -> str:
    return request.query.get(name, "")


def _refusal(status: int, reason: str) -> Answer:
    return Answer(status, reason.encode(), "text/plain")


_UNPROVEN = _refusal(403, "the request does not prove that the platform sent it")
_STALE = _refusal(403, "the request is too old or from the future: compare the clocks")
