"""How Feishu seals and signs what it pushes. Pure.

Source: https://open.feishu.cn/document/server-docs/event-subscription-guide/event-subscription-configure-/encrypt-key-encryption-configuration-case
"""

import binascii
import hashlib
import hmac
from functools import lru_cache

from cryptography.hazmat.primitives.ciphers import Cipher, algorithms, modes

_BLOCK_BYTES = 16


def decrypt(encrypt_key: str, sealed: str) -> bytes:
    """What ``sealed`` holds: base64 of an IV and AES-256-CBC under the key's SHA-256, padded as PKCS7.

    Raises:
        ValueError: it was not sealed with ``encrypt_key``, or is damaged. The text tells nothing of how.
    """
    try:
        raw = binascii.a2b_base64(sealed, strict_mode=True)
    except ValueError:
        raise ValueError("not sealed as it should be") from None
    iv, body = raw[:_BLOCK_BYTES], raw[_BLOCK_BYTES:]
    if not body or len(body) % _BLOCK_BYTES:
        raise ValueError("not sealed as it should be")
    decryptor = Cipher(_aes(encrypt_key), modes.CBC(iv)).decryptor()
    padded = decryptor.update(body) + decryptor.finalize()
    fill = padded[-1]
    if not 0 < fill <= _BLOCK_BYTES or not padded.endswith(bytes([fill]) * fill):
        raise ValueError("not sealed as it should be")
    return padded[:-fill]


@lru_cache(maxsize=64)
def _aes(encrypt_key: str) -> algorithms.AES:
    return algorithms.AES(hashlib.sha256(encrypt_key.encode()).digest())


def event_signature(timestamp: str, nonce: str, encrypt_key: str, body: bytes) -> str:
    """``X-Lark-Signature`` of an event or callback: over the body exactly as it came, still encrypted."""
    return hashlib.sha256(_text(timestamp, nonce, encrypt_key) + body).hexdigest()


def legacy_card_signature(timestamp: str, nonce: str, verification_token: str, body: bytes) -> str:
    """``X-Lark-Signature`` of a button press on the old card request URL, which SHA-1 and the token make."""
    return hashlib.sha1(_text(timestamp, nonce, verification_token) + body).hexdigest()  # noqa: S324 - theirs


def same(ours: str, theirs: str) -> bool:
    """Compare in a time that tells nothing; an empty ``ours`` is never met."""
    return bool(ours) and hmac.compare_digest(_any_text(ours), _any_text(theirs))


def _text(*parts: str) -> bytes:
    return "".join(parts).encode("utf-8", "surrogateescape")


def _any_text(text: str) -> bytes:
    """Also of halves of surrogate pairs, which JSON can hold: different texts stay different."""
    return text.encode("utf-8", "surrogatepass")
