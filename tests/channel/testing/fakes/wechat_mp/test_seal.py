import json
from pathlib import Path
from typing import Any

import pytest

from bridge.channel.testing.fakes.wechat_mp.seal import new_key, seal, sign, unseal

VECTORS: dict[str, Any] = json.loads(
    (Path(__file__).parents[4] / "vectors" / "wechat_crypto.json").read_text(encoding="utf-8")
)


@pytest.mark.parametrize("row", VECTORS["messages"] + VECTORS["replies"], ids=lambda row: row["name"])
def test_the_published_messages_open(row: dict[str, Any]) -> None:
    assert sign(row["token"], row["timestamp"], row["nonce"], row["encrypt"]) == row["msg_signature"]
    assert unseal(row["encoding_aes_key"], row["receive_id"], row["encrypt"]).decode() == row["plaintext"]


@pytest.mark.parametrize("size", range(40))
def test_what_is_sealed_opens_for_the_same_app_alone(size: int) -> None:
    key = new_key()
    sealed = seal(key, "wx1", b"m" * size)
    assert unseal(key, "wx1", sealed) == b"m" * size
    with pytest.raises(ValueError):
        unseal(key, "wx2", sealed)


def test_a_key_has_43_characters_and_is_new_each_time() -> None:
    assert len({new_key() for _ in range(5)}) == 5
    assert {len(new_key()) for _ in range(5)} == {43}


@pytest.mark.parametrize("sealed", ["", "x", "AAAA"])
def test_what_is_no_seal_does_not_open(sealed: str) -> None:
    with pytest.raises((ValueError, IndexError)):
        unseal(new_key(), "wx1", sealed)
