from typing import Any

import pytest
from pydantic import SecretStr, ValidationError

from channels.feishu import SPEC
from channels.feishu.settings import FeishuCredentials, FeishuSettings, identity, title


def settings(**values: Any) -> FeishuSettings:
    return FeishuSettings.model_validate({"app_id": "cli_a1"} | values)


def test_the_brand_follows_the_side_of_the_app() -> None:
    assert SPEC.chinese[title(settings())] == "飞书"
    assert title(settings(base="https://open.larksuite.com/")) == "Lark"
    assert SPEC.title is title


def test_what_must_not_change_is_the_app_and_its_side_and_not_its_secrets() -> None:
    one = FeishuCredentials(app_secret=SecretStr("a"), encrypt_key=SecretStr("b"))
    two = FeishuCredentials(app_secret=SecretStr("c"), encrypt_key=SecretStr("d"))
    assert identity(settings(), one) == identity(settings(), two) == ("https://open.feishu.cn", "cli_a1")


@pytest.mark.parametrize("app_id", ["", "a1", "cli_", "cli_a/b", "cli_" + "a" * 65])
def test_an_app_id_that_is_none_is_refused(app_id: str) -> None:
    with pytest.raises(ValidationError):
        settings(app_id=app_id)


@pytest.mark.parametrize(
    "base",
    [
        "",
        "open.feishu.cn",
        "http://open.feishu.cn",
        "https://",
        "https://u@h",
        "https://h?a=b",
        "https://h#a",
        "ftp://h",
    ],
)
def test_a_base_that_would_leak_the_secret_or_is_no_address_is_refused(base: str) -> None:
    with pytest.raises(ValidationError):
        settings(base=base)


@pytest.mark.parametrize(
    "base", ["http://127.0.0.1:8471", "http://localhost", "http://[::1]:1", "https://open.feishu.cn"]
)
def test_a_base_may_be_encrypted_or_on_this_machine(base: str) -> None:
    assert settings(base=base + "/").base == base


def test_without_token_and_key_the_platform_cannot_be_known() -> None:
    with pytest.raises(ValidationError, match="set one"):
        FeishuCredentials(app_secret=SecretStr("a"))
    with pytest.raises(ValidationError):
        FeishuCredentials(app_secret=SecretStr(""), encrypt_key=SecretStr("k"))


def test_credentials_never_show_themselves() -> None:
    with pytest.raises(ValidationError) as caught:
        FeishuCredentials.model_validate({"app_secret": "s3cret", "wrong": "s3cret"})
    assert "s3cret" not in str(caught.value)
    assert "s3cret" not in repr(FeishuCredentials(app_secret=SecretStr("s3cret"), encrypt_key=SecretStr("k")))


@pytest.mark.parametrize("name", ["Alice", "ou_Ａlice", "ou_ alice", "OU_1", "on_7d8a"])
def test_case_71_and_72_a_name_is_refused_where_an_id_belongs(name: str) -> None:
    known = "ou_7d8a6e6df7621556ce0d21922b676706ccs"
    assert settings(owner=known, senders=(known,)).senders == (known,)
    assert settings(senders="anyone").owner == ""
    for wrong in ({"owner": name}, {"senders": (known, name)}):
        with pytest.raises(ValidationError, match="a name is none"):
            settings(**wrong)
