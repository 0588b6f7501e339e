"""How Feishu seals and signs what it pushes. Pure.

Source: https://open.feishu.cn/document/server-docs/event-subscription-guide/event-subscription-configure-/encrypt-key-encryption-configuration-case
"""

import binascii
import hashlib
import hmac
from functools import lru_cache

from cryptography.hazmat.primitives.ciphers import Cipher, CipherContext, algorithms, modes

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
    if len(raw) <= _BLOCK_BYTES or len(raw) % _BLOCK_BYTES:
        raise ValueError("not sealed as it should be")
    padded = _decryptor(encrypt_key).update(raw)[_BLOCK_BYTES:]
    fill = padded[-1]
    if not 0 < fill <= _BLOCK_BYTES or not padded.endswith(padded[-1:] * fill):
        raise ValueError("not sealed as it should be")
    return padded[:-fill]


@lru_cache(maxsize=64)
def _decryptor(encrypt_key: str) -> CipherContext:
    """One for all that is sealed with the key, since to make one costs as much as to use it.

    In CBC a block's plain text hangs on itself and the block before it alone. So an IV that is decrypted as
    if it were a block comes out as noise, which is dropped, and what follows it comes out as it should.
    """
    key = hashlib.sha256(encrypt_key.encode()).digest()
    return Cipher(algorithms.AES(key), modes.CBC(bytes(_BLOCK_BYTES))).decryptor()


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
