"""WeChat's Official Accounts, pushed to over HTTP; with customer service or without.

Source: https://developers.weixin.qq.com/doc/offiaccount/Getting_Started/Overview.html (read 2026-11-30).
"""

from bridge.channel import ChannelSpec, Http, Limit, Place, Unit
from bridge.channel.markdown import plain
from bridge.channel.text import defuse_mentions
from channels.wechat_mp.adapter import OfficialAccount, OfficialAccountWithService
from channels.wechat_mp.content import TEXT_BYTES
from channels.wechat_mp.settings import WechatMpCredentials, WechatMpSettings, identity
from channels.wechat_mp.wire import harmless

__all__ = [
    "SPEC", "OfficialAccount", "OfficialAccountWithService", "WechatMpCredentials", "WechatMpSettings",
]  # fmt: skip

NOTES_BYTES = 150  # room for what the core puts before and after a text


def create(
    settings: WechatMpSettings, credentials: WechatMpCredentials, http: Http, place: Place
) -> OfficialAccount:
    """The kind of account that the settings say it is.

    Raises:
        ConfigError: the mode needs a key that is missing.
    """
    form = OfficialAccountWithService if settings.customer_service else OfficialAccount
    return form(settings, credentials, http, place)


def render(markdown: str) -> str:
    """As chats show it, plain text in which no link's tag and no mention is one."""
    return harmless(defuse_mentions(plain(markdown)))


SPEC = ChannelSpec(
    name="wechat_mp",
    title=lambda settings: "WeChat",
    chinese={"WeChat": "微信"},
    settings=WechatMpSettings,
    credentials=WechatMpCredentials,
    create=create,
    identity=identity,
    text_limit=Limit(TEXT_BYTES - NOTES_BYTES, Unit.BYTES),
    render=render,
    body_limit_bytes=262_144,
)
