"""The platform's side of sealing and signing; it shares no code with any adapter. Pure."""

import base64
import hashlib
import secrets

from cryptography.hazmat.primitives import padding
from cryptography.hazmat.primitives.ciphers import Cipher, algorithms, modes

_BLOCK_BITS = 256


def sign(*parts: str) -> str:
    return hashlib.sha1("".join(sorted(parts, key=str.encode)).encode()).hexdigest()  # noqa: S324 - theirs


def new_key() -> str:
    """An EncodingAESKey, as the console makes one."""
    return base64.b64encode(secrets.token_bytes(32)).decode().rstrip("=")


def seal(encoding_aes_key: str, app_id: str, message: bytes) -> str:
    padder = padding.PKCS7(_BLOCK_BITS).padder()
    plain = secrets.token_bytes(16) + len(message).to_bytes(4, "big") + message + app_id.encode()
    encryptor = _cipher(encoding_aes_key).encryptor()
    padded = padder.update(plain) + padder.finalize()
    return base64.b64encode(encryptor.update(padded) + encryptor.finalize()).decode()


def unseal(encoding_aes_key: str, app_id: str, sealed: str) -> bytes:
    """The message in ``sealed``.

    Raises:
        ValueError: it was not sealed with this key for this app.
    """
    raw = base64.b64decode(sealed, validate=True)
    decryptor, unpadder = _cipher(encoding_aes_key).decryptor(), padding.PKCS7(_BLOCK_BITS).unpadder()
    padded = decryptor.update(raw) + decryptor.finalize()
    plain = unpadder.update(padded) + unpadder.finalize()
    end = 20 + int.from_bytes(plain[16:20], "big")
    if plain[end:] != app_id.encode():
        raise ValueError("sealed for another app")
    return plain[20:end]


def _cipher(encoding_aes_key: str) -> "Cipher[modes.CBC]":
    key = base64.b64decode(encoding_aes_key + "=")
    return Cipher(algorithms.AES(key), modes.CBC(key[:16]))
