"""The platforms that can be played, and what an account of each is. Every command loads it: it is light."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import NamedTuple

ACCOUNT = "fake"
APP_ID = "cli_fake0001"
OWNER = "ou_fake_owner"
WEB = ("127.0.0.1", 8470)


def account_address(channel: str, host: str, port: int) -> str:
    """Of the account to play, on a daemon that listens there."""
    return f"http://{host}:{port}/channels/{channel}/{ACCOUNT}"


def new_secrets() -> dict[str, str]:
    """Fresh ones of Feishu's: whoever knew them could write as the owner."""
    import secrets

    names = ("app_secret", "verification_token", "encrypt_key")
    return {name: secrets.token_urlsafe(24) for name in names}


def new_wechat_secrets() -> dict[str, str]:
    """Fresh ones of WeChat's, in the forms that its console has."""
    import base64
    import secrets

    return {
        "app_secret": secrets.token_hex(16),
        "token": secrets.token_hex(16),
        "encoding_aes_key": base64.b64encode(secrets.token_bytes(32)).decode().rstrip("="),
    }


class Platform(NamedTuple):
    """What can be played: its channel, the table of an account without its address, and how secrets are.

    ``links``: what it does not show goes to people as an address, which the daemon has to know as its own.
    """

    channel: str
    title: str
    port: int
    table: Mapping[str, str | bool]
    secrets: Callable[[], dict[str, str]]
    links: bool = False

    @property
    def address(self) -> str:
        """Of an account on a daemon with default settings."""
        return account_address(self.channel, *WEB)


_EVERYBODY = {"senders": "anyone", "remote_tools": "owner", "approvals": "ask"}
FEISHU = Platform("feishu", "Feishu", 8471, {"app_id": APP_ID, "owner": OWNER, **_EVERYBODY}, new_secrets)
WECHAT_MP = Platform(
    "wechat_mp",
    "WeChat",
    8473,  # `turnbridge try` serves files on the one before
    {
        "app_id": "wxfake000000000001",
        "original_id": "gh_fake00000001",
        "customer_service": True,
        "owner": "oFakeOwner0000000000000000001",
        **_EVERYBODY,
    },
    new_wechat_secrets,
    links=True,
)
