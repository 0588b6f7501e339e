from typing import Any

import pytest
from pydantic import ValidationError

from channels.wechat_mp.settings import WechatMpCredentials, WechatMpSettings, identity

KEY = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQ"
TABLE = {"app_id": "wx0123456789abcdef", "original_id": "gh_0123456789ab"}
SECRETS = {"app_secret": "s", "token": "abc123", "encoding_aes_key": KEY}


def settings(**changes: Any) -> WechatMpSettings:
    return WechatMpSettings.model_validate(TABLE | changes)


def test_the_safe_and_the_capable_are_the_defaults() -> None:
    found = settings()
    assert (found.mode, found.customer_service, found.window_seconds) == ("secure", True, 300)
    assert found.base == "https://api.weixin.qq.com"


@pytest.mark.parametrize(
    "changes",
    [
        {"app_id": "0123"}, {"app_id": "wx"}, {"app_id": "wx 1"}, {"original_id": "wx1"},
        {"original_id": "gh_"},
        {"mode": "plain"}, {"window_seconds": 0}, {"window_seconds": 86_401}, {"unknown": 1},
        {"base": "http://api.weixin.qq.com"}, {"base": "https://u:p@h"}, {"base": "https://h/?a=1"},
        {"base": "https://h/#a"}, {"base": "x"}, {"base": "http://10.0.0.1"}, {"base": "ftp://127.0.0.1"},
    ],
)  # fmt: skip
def test_what_cannot_be_is_refused(changes: dict[str, Any]) -> None:
    with pytest.raises(ValidationError):
        settings(**changes)


@pytest.mark.parametrize("name", TABLE)
def test_both_ids_are_needed(name: str) -> None:
    with pytest.raises(ValidationError):
        WechatMpSettings.model_validate({key: value for key, value in TABLE.items() if key != name})


@pytest.mark.parametrize(
    "base", ["http://127.0.0.1:8472/", "http://localhost:1", "http://[::1]:1", "https://x.example"]
)
def test_a_base_is_encrypted_or_on_this_machine(base: str) -> None:
    assert settings(base=base).base == base.rstrip("/")


@pytest.mark.parametrize(
    "changes",
    [
        {"app_secret": ""}, {"token": "ab"}, {"token": "a" * 33}, {"token": "a-b-c"}, {"token": "令牌令牌"},
        {"encoding_aes_key": KEY[:-1]}, {"encoding_aes_key": KEY + "A"}, {"encoding_aes_key": KEY[:-1] + "-"},
        {"previous_encoding_aes_key": "x"}, {"unknown": "x"},
    ],
)  # fmt: skip
def test_secrets_that_cannot_be_are_refused_and_not_shown(changes: dict[str, str]) -> None:
    with pytest.raises(ValidationError) as failed:
        WechatMpCredentials.model_validate(SECRETS | changes)
    assert KEY not in str(failed.value)


def test_keys_may_be_missing_and_secrets_are_hidden() -> None:
    bare = WechatMpCredentials.model_validate({"app_secret": "s3cret", "token": "abc123"})
    assert bare.encoding_aes_key is bare.previous_encoding_aes_key is None
    assert "s3cret" not in repr(bare)


def test_an_account_is_its_two_ids() -> None:
    known = WechatMpCredentials.model_validate(SECRETS)
    other = WechatMpCredentials.model_validate(SECRETS | {"app_secret": "renewed"})
    assert identity(settings(), known) == identity(settings(mode="compat"), other) == tuple(TABLE.values())


@pytest.mark.parametrize("name", ["Alice", "oАlice", "o alice", "gh_1"])
def test_case_71_and_72_a_name_is_refused_where_an_id_belongs(name: str) -> None:
    known = "o6_bmjrPTlm6_2sgVt7hMZOPfL2M"
    assert settings(owner=known, senders=(known,)).senders == (known,)
    assert settings(senders="anyone").owner == ""
    for wrong in ({"owner": name}, {"senders": (known, name)}):
        with pytest.raises(ValidationError, match="a name is none"):
            settings(**wrong)
