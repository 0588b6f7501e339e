"""A fake of WeChat's Official Accounts on loopback, for tests and for trying without an account."""

from bridge.channel.testing.fakes.wechat_mp.messages import FakeFile, Note
from bridge.channel.testing.fakes.wechat_mp.push import Attempt, Outcome, Push
from bridge.channel.testing.fakes.wechat_mp.replies import Secrets
from bridge.channel.testing.fakes.wechat_mp.seal import new_key
from bridge.channel.testing.fakes.wechat_mp.server import FakeWechatMp, Fault, Refusal
from bridge.channel.testing.fakes.wechat_mp.world import ACCOUNT, APP_ID, OWNER, STRANGER, By, Media, Shown

__all__ = [
    "ACCOUNT", "APP_ID", "OWNER", "STRANGER", "Attempt", "By", "FakeFile", "FakeWechatMp", "Fault", "Media",
    "Note", "Outcome", "Push", "Refusal", "Secrets", "Shown", "new_key",
]  # fmt: skip
