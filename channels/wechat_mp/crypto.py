"""How WeChat signs what it pushes and seals messages, both ways. Pure.

Source: https://developers.weixin.qq.com/doc/offiaccount/Message_Management/Message_encryption_and_decryption_instructions.html
"""

import base64
import binascii
import hashlib
import hmac
import struct
from collections.abc import Sequence
from dataclasses import dataclass, field

from cryptography.hazmat.primitives.ciphers import Cipher, algorithms, modes

PAD_BYTES = 32  # a block of the padding, twice that of the cipher
RANDOM_BYTES = 16
_IV_BYTES = 16
_HEAD_BYTES = RANDOM_BYTES + 4  # and the message's length


def signature(*parts: str) -> str:
    """Hex SHA-1 of ``parts``, sorted by their bytes and put together."""
    return hashlib.sha1(b"".join(sorted(map(_raw, parts)))).hexdigest()  # noqa: S324 - theirs


def same(ours: str, theirs: str) -> bool:
    """Compare in a time that tells nothing."""
    return hmac.compare_digest(_raw(ours), _raw(theirs))


def aes_key(encoded: str) -> bytes:
    """The 32 bytes of an EncodingAESKey.

    Raises:
        ValueError: it has not 43 characters of base64.
    """
    key = binascii.a2b_base64(encoded + "=", strict_mode=True)
    if len(key) != 32:
        raise ValueError("an EncodingAESKey has 43 characters")
    return key


@dataclass(frozen=True, slots=True)
class Seal:
    """Seals with the first of ``keys`` and opens with any. ``receiver`` (an app id) is part of the seal."""

    receiver: str
    keys: Sequence[bytes] = field(repr=False)

    def close(self, message: bytes, random: bytes) -> str:
        """``message`` sealed, as base64. ``random`` has 16 bytes that are never used again."""
        plain = random + struct.pack(">I", len(message)) + message + self.receiver.encode()
        pad = PAD_BYTES - len(plain) % PAD_BYTES
        cipher = _cipher(self.keys[0]).encryptor()
        return base64.b64encode(cipher.update(plain + bytes([pad]) * pad) + cipher.finalize()).decode()

    def open(self, sealed: str) -> bytes:
        """The message in ``sealed``.

        Raises:
            ValueError: it was not sealed for us, or is damaged. The text tells nothing of how.
        """
        try:
            raw = binascii.a2b_base64(sealed, strict_mode=True)
        except ValueError:
            raw = b""
        for key in self.keys if raw and len(raw) % PAD_BYTES == 0 else ():
            message = self._opened(raw, key)
            if message is not None:
                return message
        raise ValueError("not sealed as it should be")

    def _opened(self, raw: bytes, key: bytes) -> bytes | None:
        cipher = _cipher(key).decryptor()
        plain = cipher.update(raw) + cipher.finalize()
        pad = plain[-1]
        if not 0 < pad <= PAD_BYTES or not plain.endswith(bytes([pad]) * pad):
            return None
        plain = plain[:-pad]
        if len(plain) < _HEAD_BYTES:
            return None
        end = _HEAD_BYTES + int(struct.unpack_from(">I", plain, RANDOM_BYTES)[0])
        if not hmac.compare_digest(plain[end:], self.receiver.encode()):
            return None
        return plain[_HEAD_BYTES:end]


def _cipher(key: bytes) -> Cipher[modes.CBC]:
    return Cipher(algorithms.AES(key), modes.CBC(key[:_IV_BYTES]))


def _raw(text: str) -> bytes:
    """Also of halves of surrogate pairs, which a query can hold: different texts stay different."""
    return text.encode("utf-8", "surrogatepass")
