import hashlib
import json

from bridge.channel.testing.fakes.feishu.seal import seal, sign
from channels.feishu.crypto import decrypt, event_signature


def test_the_adapter_opens_what_is_sealed_here() -> None:
    for length in (0, 1, 15, 16, 17, 1000):
        plain = b"x" * length
        assert decrypt("key", json.loads(seal("key", plain))["encrypt"]) == plain


def test_each_seal_is_another() -> None:
    assert seal("key", b"x") != seal("key", b"x")


def test_a_signature_is_what_the_adapter_computes() -> None:
    headers = sign("key", b"body", "1", "n")
    assert headers["X-Lark-Signature"] == event_signature("1", "n", "key", b"body")
    assert headers["X-Lark-Signature"] == hashlib.sha256(b"1nkeybody").hexdigest()
