"""Feishu, and Lark outside China: a self-built app's bot, pushed to over HTTP.

Source: https://open.feishu.cn/document/server-docs/getting-started/getting-started (read 2026-11-30).
"""

from bridge.channel import ChannelSpec, Limit, Unit
from bridge.channel.markdown import plain
from bridge.channel.text import defuse_mentions
from channels.feishu.adapter import Feishu
from channels.feishu.settings import FeishuCredentials, FeishuSettings, identity, title

__all__ = ["SPEC", "Feishu", "FeishuCredentials", "FeishuSettings"]


def render(markdown: str) -> str:
    """As text messages show it, with every mention defused: ``<at user_id="all">`` would call everybody."""
    return defuse_mentions(plain(markdown))


SPEC = ChannelSpec(
    name="feishu",
    title=title,
    settings=FeishuSettings,
    credentials=FeishuCredentials,
    create=Feishu,
    identity=identity,
    # A request takes 150 KB, and JSON within JSON makes at most seven bytes of one.
    text_limit=Limit(20_000, Unit.BYTES),
    idempotent_seconds=3600,
    render=render,
)
