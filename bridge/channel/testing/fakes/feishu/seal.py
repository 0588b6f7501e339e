"""What the platform does to an event before it leaves: seal and sign. Shares no code with the adapter."""

import base64
import hashlib
import json
import os

from cryptography.hazmat.primitives.ciphers import Cipher, algorithms, modes

_BLOCK = 16


def seal(encrypt_key: str, plain: bytes) -> bytes:
    """The body ``{"encrypt": …}`` for ``plain``, under a new IV."""
    pad = _BLOCK - len(plain) % _BLOCK
    iv = os.urandom(_BLOCK)
    cipher = Cipher(algorithms.AES(hashlib.sha256(encrypt_key.encode()).digest()), modes.CBC(iv)).encryptor()
    sealed = iv + cipher.update(plain + bytes([pad]) * pad) + cipher.finalize()
    return json.dumps({"encrypt": base64.b64encode(sealed).decode()}).encode()


def sign(encrypt_key: str, body: bytes, timestamp: str, nonce: str) -> dict[str, str]:
    """The headers that prove ``body``."""
    digest = hashlib.sha256(f"{timestamp}{nonce}{encrypt_key}".encode() + body).hexdigest()
    return {
        "X-Lark-Request-Timestamp": timestamp,
        "X-Lark-Request-Nonce": nonce,
        "X-Lark-Signature": digest,
    }
