"""Case 29 as well: half of all messages are padded with more than 16 bytes."""

import base64
import json
from pathlib import Path
from typing import Any

import pytest
from cryptography.hazmat.primitives.ciphers import Cipher, algorithms, modes
from hypothesis import given
from hypothesis import strategies as st

from bridge.channel.testing.fakes.wechat_mp import new_key
from bridge.channel.testing.fakes.wechat_mp.seal import seal, unseal
from channels.wechat_mp.crypto import Seal, aes_key, same, signature

VECTORS: dict[str, Any] = json.loads(
    (Path(__file__).parents[2] / "vectors" / "wechat_crypto.json").read_text(encoding="utf-8")
)
KEY = new_key()
SEAL = Seal("wx1", [aes_key(KEY)])


def rows(*names: str) -> pytest.MarkDecorator:
    return pytest.mark.parametrize(
        "row", [pytest.param(row, id=row["name"]) for n in names for row in VECTORS[n]]
    )


def sealed_as(row: dict[str, Any]) -> Seal:
    return Seal(row["receive_id"], [aes_key(row["encoding_aes_key"])])


def message_signature(row: dict[str, Any], sealed: str) -> str:
    return signature(row["token"], row["timestamp"], row["nonce"], sealed)


@rows("plain_signature")
def test_plain_signatures_are_the_published_ones(row: dict[str, Any]) -> None:
    assert signature(row["token"], row["timestamp"], row["nonce"]) == row["signature"]


@rows("echostr_encrypted")
def test_sealed_echoes_open(row: dict[str, Any]) -> None:
    assert message_signature(row, row["echostr"]) == row["msg_signature"]
    assert sealed_as(row).open(row["echostr"]).decode() == row["reply_body"]


@rows("messages", "replies")
def test_messages_open_and_close_to_the_same_bytes(row: dict[str, Any]) -> None:
    assert message_signature(row, row["encrypt"]) == row["msg_signature"]
    assert sealed_as(row).open(row["encrypt"]).decode() == row["plaintext"]
    random = bytes.fromhex(row["random16_hex"]) if "random16_hex" in row else row["random16_ascii"].encode()
    assert sealed_as(row).close(row["plaintext"].encode(), random) == row["encrypt"]


def test_case_29_the_rows_that_need_pads_above_16_are_among_them() -> None:
    named = {row["name"]: row["pad"] for row in VECTORS["messages"]}
    assert all(named[name] > 16 for name in VECTORS["needs_pad_above_16"])


@rows("must_fail")
def test_what_must_fail_fails(row: dict[str, Any]) -> None:
    def verified() -> bytes:
        if not same(message_signature(row, row["encrypt"]), row["msg_signature"]):
            raise ValueError("signature")
        return sealed_as(row).open(row["encrypt"])

    with pytest.raises(ValueError):
        verified()


@given(st.binary(max_size=200))
def test_both_sides_understand_each_other(message: bytes) -> None:
    assert SEAL.open(seal(KEY, "wx1", message)) == message
    assert unseal(KEY, "wx1", SEAL.close(message, bytes(16))) == message


def padded(plain: bytes) -> str:
    cipher = Cipher(algorithms.AES(aes_key(KEY)), modes.CBC(aes_key(KEY)[:16])).encryptor()
    return base64.b64encode(cipher.update(plain) + cipher.finalize()).decode()


def plain_of(message: bytes, pad: int, fill: int | None = None) -> bytes:
    return (
        bytes(16)
        + len(message).to_bytes(4, "big")
        + message
        + b"wx1"
        + bytes([fill if fill is not None else pad]) * pad
    )


@pytest.mark.parametrize("pad", [1, 16, 17, 32])
def test_case_29_pads_of_1_to_32_are_accepted(pad: int) -> None:
    message = b"m" * ((-23 - pad) % 32)
    assert SEAL.open(padded(plain_of(message, pad))) == message


@pytest.mark.parametrize(
    "plain",
    [
        plain_of(b"m" * 9, 32, 0),  # a pad of 0
        plain_of(b"m" * 8, 33),  # of 33
        plain_of(b"m" * 9, 32, 5)[:-1] + b"\x20",  # inconsistent
        b"\x20" * 32,  # nothing but a pad
        b"\x00" * 31 + b"\x1f",
        bytes(16) + b"\xff\xff\xff\xff" + b"wx1" + b"\x09" * 9,  # a length beyond the end
    ],
)  # fmt: skip
def test_case_29_other_pads_are_refused_with_one_fixed_text(plain: bytes) -> None:
    with pytest.raises(ValueError, match="not sealed as it should be"):
        SEAL.open(padded(plain))


@pytest.mark.parametrize("sealed", ["", "A", "é", "AAAA", "!" * 44, "A" * 64 + "=", "\ud800"])
def test_what_is_no_seal_is_refused_with_the_same_text(sealed: str) -> None:
    with pytest.raises(ValueError, match="not sealed as it should be"):
        SEAL.open(sealed)


def test_the_previous_key_still_opens_and_the_current_one_closes() -> None:
    old, new = new_key(), new_key()
    both = Seal("wx1", [aes_key(new), aes_key(old)])
    assert both.open(seal(old, "wx1", b"a")) == both.open(seal(new, "wx1", b"a")) == b"a"
    assert unseal(new, "wx1", both.close(b"b", bytes(16))) == b"b"
    with pytest.raises(ValueError):
        both.open(seal(new_key(), "wx1", b"a"))


def test_another_accounts_message_does_not_open() -> None:
    for other in ("wx2", "wx", "wx11", ""):
        with pytest.raises(ValueError):
            SEAL.open(seal(KEY, other, b"a"))


@pytest.mark.parametrize("key", ["", "A" * 42, "A" * 44, "A" * 42 + "!"])
def test_a_key_that_is_none_is_refused(key: str) -> None:
    with pytest.raises(ValueError):
        aes_key(key)


def test_a_key_may_end_in_bits_that_do_not_count() -> None:
    assert aes_key("A" * 43) == aes_key("A" * 42 + "B") == bytes(32)


def test_signatures_are_sorted_by_bytes_and_any_text_has_one() -> None:
    assert signature("b", "a") == signature("a", "b")
    assert not same(signature("\ud800"), signature("?"))


def test_keys_do_not_show_themselves() -> None:
    assert repr(aes_key(KEY)) not in repr(SEAL)
