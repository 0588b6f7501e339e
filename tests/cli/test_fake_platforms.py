import pytest

from bridge.cli.fake_platforms import (
    FEISHU,
    WECHAT_MP,
    Platform,
    account_address,
    new_secrets,
    new_wechat_secrets,
)
from channels.feishu import FeishuCredentials, FeishuSettings
from channels.wechat_mp import WechatMpCredentials, WechatMpSettings


def test_every_run_has_secrets_of_its_own() -> None:
    for make in (new_secrets, new_wechat_secrets):
        assert set(make().values()).isdisjoint(make().values())


def test_an_accounts_table_and_secrets_are_those_of_its_channel() -> None:
    FeishuSettings.model_validate(FEISHU.table)
    FeishuCredentials.model_validate(FEISHU.secrets())
    WechatMpSettings.model_validate(WECHAT_MP.table)
    WechatMpCredentials.model_validate(WECHAT_MP.secrets())


@pytest.mark.parametrize("platform", [FEISHU, WECHAT_MP])
def test_a_platform_knows_its_accounts_usual_address(platform: Platform) -> None:
    assert platform.address == account_address(platform.channel, "127.0.0.1", 8470)
    assert platform.address.endswith(f"/channels/{platform.channel}/fake")
