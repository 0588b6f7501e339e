import base64
import contextlib
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from channels.feishu.crypto import decrypt, event_signature, legacy_card_signature, same
from tests.channels.feishu.support import VECTORS


@pytest.mark.parametrize("row", VECTORS["decrypt"], ids=lambda row: row["name"])
def test_what_the_platform_sealed_is_opened(row: dict[str, Any]) -> None:
    plain = decrypt(row["encrypt_key"], row["encrypt"])
    assert (plain.decode(), len(plain)) == (row["plaintext_utf8"], row["plaintext_len"])


@pytest.mark.parametrize("row", VECTORS["decrypt_must_fail"], ids=lambda row: row["name"])
def test_what_is_damaged_is_refused_without_saying_how(row: dict[str, Any]) -> None:
    with pytest.raises(ValueError, match=r"^not sealed as it should be$"):
        decrypt(row["encrypt_key"], row["encrypt"])


@pytest.mark.parametrize(
    "sealed", ["", "%%%", "P37w+VZImNgPEO1RBhJ6RtKl7n6zymIbEG1pReEzghk", "é", "AAAA AAAA"]
)
def test_what_is_no_base64_is_refused(sealed: str) -> None:
    with pytest.raises(ValueError, match=r"^not sealed as it should be$"):
        decrypt("test key", sealed)


@given(st.binary(max_size=120))
def test_any_bytes_are_opened_or_refused(raw: bytes) -> None:
    with contextlib.suppress(ValueError):
        assert len(decrypt("k", base64.b64encode(raw).decode())) < len(raw)


@pytest.mark.parametrize("row", VECTORS["legacy_card"], ids=lambda row: row["name"])
def test_an_old_card_is_signed_with_the_token(row: dict[str, Any]) -> None:
    body = base64.b64decode(row["body_base64"])
    made = legacy_card_signature(row["timestamp"], row["nonce"], row["verification_token"], body)
    assert made == row["signature"]


def test_an_event_is_signed_over_its_bytes_as_they_came() -> None:
    row = next(row for row in VECTORS["requests"] if row["name"] == "v2-encrypted-signed-odd-whitespace")
    headers = row["headers"]
    made = event_signature(
        headers["X-Lark-Request-Timestamp"],
        headers["X-Lark-Request-Nonce"],
        row["encrypt_key"],
        base64.b64decode(row["body_base64"]),
    )
    assert made == headers["X-Lark-Signature"]


def test_an_empty_secret_is_met_by_nothing() -> None:
    assert same("a", "a")
    assert not same("a", "b")
    assert not same("", "")


def test_odd_characters_of_a_header_are_compared_and_not_choked_on() -> None:
    for odd in ("\udcff", "\ud800", "a\udfffc"):  # of a header, and of an escape in JSON
        assert not same("abc", odd)
    assert len(event_signature("\udcff", "é", "k", b"")) == 64


def test_what_was_opened_before_does_not_show_in_what_is_opened_next() -> None:
    row, *_ = VECTORS["decrypt"]
    plain = decrypt(row["encrypt_key"], row["encrypt"])
    with contextlib.suppress(ValueError):
        decrypt(row["encrypt_key"], base64.b64encode(bytes(range(64))).decode())
    assert decrypt(row["encrypt_key"], row["encrypt"]) == plain
