"""Feishu, and Lark outside China: a self-built app's bot, pushed to over HTTP.

Source: https://open.feishu.cn/document/server-docs/getting-started/getting-started (read 2026-11-30).
"""

from bridge.channel import ChannelSpec, Limit, Unit
from channels.feishu.adapter import Feishu, create
from channels.feishu.mentions import defused
from channels.feishu.settings import FeishuCredentials, FeishuSettings, identity, title
from channels.feishu.signin import sign_in

__all__ = ["SPEC", "Feishu", "FeishuCredentials", "FeishuSettings"]


SPEC = ChannelSpec(
    name="feishu",
    title=title,
    chinese={"Feishu": "飞书"},
    settings=FeishuSettings,
    credentials=FeishuCredentials,
    create=create,
    identity=identity,
    # A rich text may take 30 KB with its tags, which a part of this size nearly always stays under; where it
    # does not, it goes as a plain one, which may take 150 KB.
    text_limit=Limit(10_000, Unit.BYTES),
    idempotent_seconds=3600,
    render=defused,  # it stays markdown: each part is made a message when it is sent
    sign_in=sign_in,
)
