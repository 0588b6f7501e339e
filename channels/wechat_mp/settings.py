"""What an operator sets for a WeChat Official Account."""

from ipaddress import ip_address
from typing import Annotated, ClassVar, Literal

from pydantic import Field, SecretStr, field_validator
from yarl import URL

from bridge.channel import ChannelCredentials, ChannelSettings

KeyText = Annotated[SecretStr, Field(min_length=43, max_length=43)]
_KEY_LETTERS = frozenset("ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/")


class WechatMpSettings(ChannelSettings):
    """One table ``[channels.wechat_mp.<account>]``. ``owner`` is an openid, which only this account knows."""

    user_ids: ClassVar[str] = r"o[\w-]+"
    recipients: ClassVar[tuple[str, ...]] = ("o",)
    app_id: Annotated[str, Field(pattern=r"^wx[0-9A-Za-z]{1,62}$", description="the developer id, wx…")]
    original_id: Annotated[
        str, Field(pattern=r"^gh_[0-9A-Za-z]{1,61}$", description="the account's original id, gh_…")
    ]
    mode: Literal["secure", "compat", "plaintext"] = "secure"  # as the console says
    customer_service: bool = True  # False: replies ride in the responses to what followers write
    window_seconds: Annotated[float, Field(gt=0, le=86_400)] = 300.0  # how old a signed request may be
    base: str = "https://api.weixin.qq.com"

    @field_validator("base")
    @classmethod
    def _is_private(cls, base: str) -> str:
        """The account's secret goes there, so only encrypted, or no further than this machine."""
        url = URL(base)
        if not url.host or not (url.scheme == "https" or (url.scheme == "http" and _is_local(url.host))):
            raise ValueError("must be an https:// address")
        if url.user is not None or url.query_string or url.fragment:
            raise ValueError("must be an address without login, query and fragment")
        return base.rstrip("/")


class WechatMpCredentials(ChannelCredentials):
    """Secrets of the account, from its console: developer secret, and the server's configuration."""

    app_secret: Annotated[SecretStr, Field(min_length=1, description="the developer secret")]
    token: Annotated[SecretStr, Field(description="the Token of the server's settings")]
    encoding_aes_key: Annotated[
        KeyText | None, Field(description="the EncodingAESKey of the server's settings")
    ] = None
    previous_encoding_aes_key: Annotated[
        KeyText | None, Field(description="the one before, while the console's new one is taken up")
    ] = None

    @field_validator("token")
    @classmethod
    def _is_a_token(cls, value: SecretStr) -> SecretStr:
        token = value.get_secret_value()
        if not 3 <= len(token) <= 32 or not token.isascii() or not token.isalnum():
            raise ValueError("must be 3 to 32 letters and digits, as the console takes them")
        return value

    @field_validator("encoding_aes_key", "previous_encoding_aes_key")
    @classmethod
    def _is_a_key(cls, value: SecretStr | None) -> SecretStr | None:
        if value is not None and not _KEY_LETTERS.issuperset(value.get_secret_value()):
            raise ValueError("must be the 43 characters that the console shows")
        return value


def identity(settings: WechatMpSettings, credentials: WechatMpCredentials) -> tuple[str, ...]:
    """An account keeps both ids for ever; its secrets may be renewed."""
    return (settings.app_id, settings.original_id)


def _is_local(host: str) -> bool:
    try:
        return ip_address(host).is_loopback
    except ValueError:
        return host == "localhost"
