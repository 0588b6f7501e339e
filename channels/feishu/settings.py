"""What an operator sets for a Feishu or Lark bot."""

from typing import Annotated, ClassVar, Literal, Self

from pydantic import Field, SecretStr, field_validator, model_validator
from yarl import URL

from bridge.channel import ChannelCredentials, ChannelSettings

_LOCAL = frozenset({"127.0.0.1", "localhost", "::1"})


class FeishuSettings(ChannelSettings):
    """One table ``[channels.feishu.<account>]``. ``owner`` is an open_id (``ou_…``) of this app's."""

    user_ids: ClassVar[str] = r"ou_[\w-]+"
    recipients: ClassVar[tuple[str, ...]] = ("ou_", "on_", "oc_", "p2p:", "group:")
    app_id: Annotated[
        str, Field(pattern=r"^cli_[0-9A-Za-z]{1,64}$", description="from the app's credentials page")
    ]
    base: str = "https://open.feishu.cn"  # Lark: https://open.larksuite.com
    accounts_base: str = "https://accounts.feishu.cn"  # where a bot is signed in by a scan
    recalled: Literal["drop", "post"] = "drop"  # a reply in a group whose question was taken back

    typing: bool = False  # a reaction on the message while its turn runs, which all in the chat see

    @field_validator("base", "accounts_base")
    @classmethod
    def _is_private(cls, base: str) -> str:
        return private_base(base)


class FeishuCredentials(ChannelCredentials):
    """Secrets of the app, from its console: credentials page, and events page for the other two."""

    app_secret: Annotated[SecretStr, Field(min_length=1, description="from the app's credentials page")]
    verification_token: Annotated[SecretStr, Field(description="from its events page")] = SecretStr("")
    encrypt_key: Annotated[SecretStr, Field(description="from its events page")] = SecretStr("")

    @model_validator(mode="after")
    def _can_tell_the_platform(self) -> Self:
        if not self.verification_token.get_secret_value() and not self.encrypt_key.get_secret_value():
            raise ValueError("verification_token or encrypt_key is needed to know the platform by: set one")
        return self


def private_base(base: str) -> str:
    """The app's secret goes there, so only encrypted, or no further than this machine.

    Raises:
        ValueError: it is no such address.
    """
    url = URL(base)
    if not url.host or not (url.scheme == "https" or (url.scheme == "http" and url.host in _LOCAL)):
        raise ValueError("must be an https:// address")
    if url.user is not None or url.query_string or url.fragment:
        raise ValueError("must be an address without login, query and fragment")
    return base.rstrip("/")


def title(settings: FeishuSettings) -> str:
    """The product's name on the side that this app belongs to."""
    return "Lark" if "larksuite" in (URL(settings.base).host or "") else "Feishu"


def identity(settings: FeishuSettings, credentials: FeishuCredentials) -> tuple[str, ...]:
    """An app is one bot on one side for ever; its secrets may be renewed."""
    return (settings.base, settings.app_id)
