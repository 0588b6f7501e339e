"""A fake of Feishu on loopback that speaks its wire format, for tests and for trying without an account."""

from bridge.channel.testing.fakes.feishu.events import Bundle, FakeFile, Note
from bridge.channel.testing.fakes.feishu.push import Push
from bridge.channel.testing.fakes.feishu.server import FakeFeishu, Fault, Refusal, throttled
from bridge.channel.testing.fakes.feishu.world import BOT, OWNER, STRANGER, Button, Sent, Upload

__all__ = [
    "BOT", "OWNER", "STRANGER", "Bundle", "Button", "FakeFeishu", "FakeFile", "Fault", "Note", "Push",
    "Refusal", "Sent", "Upload", "throttled",
]  # fmt: skip
