"""Keys, and the signatures of Standard Webhooks: made, and verified strictly. Pure.

The signed content is ``<webhook-id>.<webhook-timestamp>.`` and the raw body. ``v1`` is an HMAC-SHA256 under a
shared secret (``whsec_…``), ``v1a`` an Ed25519 signature under a key pair whose public half is ``whpk_…``.

Source: the Standard Webhooks specification 1.0.0 (read 2026-11-30).
"""

import base64
import binascii
import hmac
import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Final, Generic, TypeVar

from cryptography.exceptions import InvalidSignature
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PublicKey
from multidict import CIMultiDictProxy

ID: Final = "webhook-id"
TIMESTAMP: Final = "webhook-timestamp"
SIGNATURE: Final = "webhook-signature"

TOLERANCE_SECONDS: Final = 300
MAX_TOKENS: Final = 10  # each costs a comparison with every key
MIN_SECRET_BYTES: Final = 24
PUBLIC_KEY_BYTES: Final = 32

_SECRET = "whsec_"  # noqa: S105 - the prefix, no secret
_PUBLIC = "whpk_"
_PLAIN = "plain:"
_ID = re.compile(r"[A-Za-z0-9_-]{1,256}", re.ASCII)
_TIME = re.compile(r"[0-9]{1,12}", re.ASCII)


@dataclass(frozen=True, slots=True)
class SharedKey:
    """The bytes of a ``whsec_`` secret."""

    raw: bytes = field(repr=False)

    def token(self, content: bytes) -> str:
        return "v1," + base64.b64encode(hmac.digest(self.raw, content, "sha256")).decode()

    def accepts(self, token: str, content: bytes) -> bool:
        """Compares the base64 text in constant time, so that one signature has one spelling."""
        return hmac.compare_digest(token.encode(errors="replace"), self.token(content).encode())


@dataclass(frozen=True, slots=True)
class PublicKey:
    """The bytes of a ``whpk_`` key: verifies, and cannot sign."""

    raw: bytes

    def accepts(self, token: str, content: bytes) -> bool:
        version, _, text = token.partition(",")
        try:
            signature = base64.b64decode(text, validate=True)
            if version != "v1a" or base64.b64encode(signature).decode() != text:
                return False
            Ed25519PublicKey.from_public_bytes(self.raw).verify(signature, content)
        except (ValueError, InvalidSignature):
            return False
        return True


@dataclass(frozen=True, slots=True)
class PlainKey:
    """The bytes of a text as it stands after ``plain:``, for senders that cannot sign in this way."""

    raw: bytes = field(repr=False)


Key = SharedKey | PublicKey
K = TypeVar("K", bound=SharedKey | PublicKey | PlainKey)
K_co = TypeVar("K_co", bound=SharedKey | PublicKey | PlainKey, covariant=True)


@dataclass(frozen=True, slots=True)
class Held(Generic[K_co]):
    """A key of an account, and when it ends by itself if it does."""

    key: K_co
    until: datetime | None = None


def current(held: Iterable[Held[K]], now: datetime) -> list[K]:
    """The keys that have not ended, in their order."""
    return [each.key for each in held if each.until is None or now < each.until]


@dataclass(frozen=True, slots=True)
class Signed:
    """What a verified request vouches for: its id, and when this attempt was made; "" or None for nothing."""

    webhook_id: str
    sent_at: datetime | None = None


def key_of(text: str) -> Key:
    """The key that ``text`` spells, padding and the prefix ``whsec_`` being optional.

    Raises:
        ValueError: it is no base64, or has the wrong length. The text holds nothing of the key.
    """
    if text.startswith(_PUBLIC):
        raw = _decode(text.removeprefix(_PUBLIC))
        if len(raw) != PUBLIC_KEY_BYTES:
            raise ValueError(f"a public key has {PUBLIC_KEY_BYTES} bytes")
        return PublicKey(raw)
    return shared_key(text)


def shared_key(text: str) -> SharedKey:
    """As ``key_of``, for a secret alone."""
    return SharedKey(_long_enough(_decode(text.removeprefix(_SECRET))))


def configured_key(text: str) -> Key | PlainKey:
    """As ``key_of``, and the text itself after ``plain:``."""
    if text.startswith(_PLAIN):
        return PlainKey(_long_enough(text.removeprefix(_PLAIN).encode()))
    return key_of(text)


def checked(text: str, *, verifies: bool = False) -> str:
    """``text`` as an operator may configure it: the prefix is required, since base64 decodes almost any text.

    Raises:
        ValueError: it is no ``whsec_`` secret, nor, for one that only verifies, a ``whpk_`` key or a
            ``plain:`` text.
    """
    allowed = (_SECRET, _PUBLIC, _PLAIN) if verifies else (_SECRET,)
    if not text.startswith(allowed):
        raise ValueError("must start with " + " or ".join(allowed))
    configured_key(text)
    return text


def sign(secret: str, webhook_id: str, timestamp: int, body: bytes) -> dict[str, str]:
    """The three headers for one attempt at ``timestamp`` (Unix seconds), under one ``whsec_`` secret.

    Raises:
        ValueError: the secret is none, or the id has characters that make the signed content ambiguous.
    """
    return sign_with([shared_key(secret)], webhook_id, timestamp, body)


def sign_with(keys: Iterable[SharedKey], webhook_id: str, timestamp: int, body: bytes) -> dict[str, str]:
    """As ``sign``, with a signature for every key: all the active ones while secrets rotate."""
    if not is_id(webhook_id):
        raise ValueError("a webhook-id has only letters, digits, _ and -")
    content = _content(webhook_id, str(timestamp), body)
    tokens = " ".join(key.token(content) for key in keys)
    return {ID: webhook_id, TIMESTAMP: str(timestamp), SIGNATURE: tokens}


def verify(keys: Sequence[Key], headers: CIMultiDictProxy[str], body: bytes, now: datetime) -> Signed | None:
    """What the request vouches for, or ``None``: never raises. No key: nothing is ever accepted.

    The time may be off by five minutes both ways. Malformed and unknown signatures are skipped.
    """
    webhook_id, timestamp, signature = (only(headers, name) for name in (ID, TIMESTAMP, SIGNATURE))
    if not is_id(webhook_id) or not _TIME.fullmatch(timestamp):
        return None
    seconds = int(timestamp)
    if abs(now.timestamp() - seconds) > TOLERANCE_SECONDS:
        return None
    content = _content(webhook_id, timestamp, body)
    tokens = [token for token in signature.split(" ") if token][:MAX_TOKENS]
    matches = [key.accepts(token, content) for token in tokens for key in keys]  # all of them, always
    return Signed(webhook_id, datetime.fromtimestamp(seconds, UTC)) if any(matches) else None


def _content(webhook_id: str, timestamp: str, body: bytes) -> bytes:
    return f"{webhook_id}.{timestamp}.".encode() + body


def is_id(text: str) -> bool:
    """Whether it may be a ``webhook-id``: nothing in it could blur the signed content."""
    return _ID.fullmatch(text) is not None


def only(headers: CIMultiDictProxy[str], name: str) -> str:
    """The header's value, or "" where it is missing or comes more than once."""
    values = headers.getall(name, [])
    return values[0] if len(values) == 1 else ""


def _long_enough(raw: bytes) -> bytes:
    if len(raw) < MIN_SECRET_BYTES:
        raise ValueError(f"a secret needs at least {MIN_SECRET_BYTES} bytes")
    return raw


def _decode(text: str) -> bytes:
    """Strict base64, in which padding may be missing."""
    try:
        return base64.b64decode(text + "=" * (-len(text) % 4), validate=True)
    except (binascii.Error, ValueError):
        raise ValueError("a key is not base64") from None
