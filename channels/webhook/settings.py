"""What an account of the webhook channel is told: its table and its secrets."""

from collections.abc import Iterable
from enum import StrEnum
from typing import Annotated, Any, Generic, TypeVar

from pydantic import (
    AfterValidator,
    AwareDatetime,
    BaseModel,
    ConfigDict,
    Field,
    SecretStr,
    field_validator,
    model_validator,
)
from yarl import URL

from bridge.channel import ChannelCredentials, ChannelSettings
from channels.webhook.signature import Held, Key, PlainKey, SharedKey, checked, configured_key, shared_key


class Signing(StrEnum):
    """How senders show who they are. Never guessed from what comes in."""

    STANDARD = "standard"  # Standard Webhooks
    GITHUB = "github"  # X-Hub-Signature-256 over the body, X-GitHub-Delivery as the id
    BEARER = "bearer"  # a token and nothing else


def _secret(value: SecretStr) -> SecretStr:
    checked(value.get_secret_value())
    return value


def _key(value: SecretStr) -> SecretStr:
    if " " in checked(value.get_secret_value(), verifies=True):
        raise ValueError("must have no spaces")
    return value


def _host(value: str) -> str:
    """A ``host`` or ``host:port`` in lower case.

    Raises:
        ValueError: it is an address or a pattern.
    """
    host = value.strip().lower()
    if not host or not host.isascii() or any(mark in host for mark in "/@*? "):
        raise ValueError("must be host or host:port, without scheme, path or pattern")
    return host


def _token(value: SecretStr) -> SecretStr:
    token = value.get_secret_value()
    if not token.isascii() or not token.isprintable() or " " in token:
        raise ValueError("must be printable ASCII without spaces")
    return value


Secret = Annotated[SecretStr, AfterValidator(_secret)]
KeyText = Annotated[SecretStr, AfterValidator(_key)]
Token = Annotated[SecretStr, AfterValidator(_token)]
Host = Annotated[str, AfterValidator(_host)]
S = TypeVar("S", bound=SecretStr)


class Entry(BaseModel, Generic[S]):
    """One of several secrets: its text alone, or while it is being replaced a text that ends by itself."""

    model_config = ConfigDict(extra="forbid", frozen=True, hide_input_in_errors=True)

    secret: S
    until: Annotated[AwareDatetime, Field(strict=False)] | None = None

    @model_validator(mode="before")
    @classmethod
    def _from_text(cls, value: object) -> object:
        return {"secret": value} if isinstance(value, str) else value


class WebhookSettings(ChannelSettings):
    """One table ``[channels.webhook.<account>]``.

    With a ``callback_url`` every reply is posted there; without one it waits until the other side asks.
    ``signing`` is how senders sign; what is posted to them is always signed by the standard.
    ``file_hosts`` are the only hosts that files are fetched from. ``private_hosts`` may be asked although
    their address is private or their scheme is plain http. A host without a port stands for all its ports.
    """

    signing: Signing = Signing.STANDARD
    callback_url: str = ""
    progress: bool = False  # also post how turns go; only with a callback_url
    file_hosts: tuple[Host, ...] = ()
    private_hosts: tuple[Host, ...] = ()

    @field_validator("callback_url")
    @classmethod
    def _is_an_address(cls, value: str) -> str:
        if value and not is_address(value):
            raise ValueError("must be an https:// address without a login")
        return value

    @model_validator(mode="after")
    def _fits_together(self) -> "WebhookSettings":
        if self.callback_url and not is_encrypted(self.callback_url, self.private_hosts):
            raise ValueError("callback_url must start with https://, or its host be one of private_hosts")
        if self.progress and not self.callback_url:
            raise ValueError("progress needs a callback_url")
        return self


class WebhookCredentials(ChannelCredentials):
    """The secrets of an account. One direction, one secret: no two of its uses share one.

    ``secrets`` verify what comes in (``whsec_…``, a sender's ``whpk_…``, or ``plain:…`` where ``signing`` is
    not the standard), any of them; ``callback_secrets`` sign what goes out, all of them. The current one is
    first; one that it replaces may end by itself. ``ask_token`` is the bearer token of whoever asks for
    replies, ``file_token`` the one that the hosts of files are shown.
    """

    secrets: Annotated[
        tuple[Entry[KeyText], ...],
        Field(min_length=1, max_length=8, description="they verify what comes in, whsec_…"),
    ]
    callback_secrets: Annotated[
        tuple[Entry[Secret], ...], Field(max_length=8, description="they sign replies that are posted")
    ] = ()
    ask_token: Annotated[Token, Field(description="of whoever asks for replies")] = SecretStr("")
    file_token: Annotated[Token, Field(description="that the hosts of files are shown")] = SecretStr("")

    @field_validator("secrets", "callback_secrets", mode="before")
    @classmethod
    def _from_one_text(cls, value: object) -> object:
        """An environment variable holds several with spaces between."""
        if isinstance(value, str):
            value = value.split()
        return tuple(value) if isinstance(value, list) else value  # strictly, only JSON has lists

    @field_validator("secrets", "callback_secrets")
    @classmethod
    def _current_first(cls, value: tuple[Entry[Any], ...]) -> tuple[Entry[Any], ...]:
        if value and value[0].until is not None:
            raise ValueError("the first is the current one, and has no until")
        return value

    @model_validator(mode="after")
    def _uses_are_apart(self) -> "WebhookCredentials":
        verifying = [each.secret.get_secret_value() for each in self.secrets]
        other = {each.secret.get_secret_value() for each in self.callback_secrets}
        other |= {f"plain:{token.get_secret_value()}" for token in (self.ask_token, self.file_token)}
        if not other.isdisjoint(verifying):
            raise ValueError("secrets must differ from callback_secrets and from the tokens")
        return self

    def inbound_keys(self) -> tuple[Held[Key | PlainKey], ...]:
        return tuple(
            Held(configured_key(each.secret.get_secret_value()), each.until) for each in self.secrets
        )

    def callback_keys(self) -> tuple[Held[SharedKey], ...]:
        return tuple(
            Held(shared_key(each.secret.get_secret_value()), each.until) for each in self.callback_secrets
        )


def is_address(value: str) -> bool:
    """Whether it is a web address without a login. Whether it is reached is for the guard to say."""
    if " " in value or not value.isprintable():
        return False
    try:
        url = URL(value)
        has_login = url.raw_user is not None or url.raw_password is not None
        return (
            url.scheme in ("http", "https") and bool(url.raw_host) and url.port is not None and not has_login
        )
    except ValueError:
        return False


def is_encrypted(value: str, private_hosts: Iterable[str]) -> bool:
    """Whether the address is https, or the operator lets its host do without."""
    return URL(value).scheme == "https" or names_host(private_hosts, URL(value))


def names_host(hosts: Iterable[str], url: URL) -> bool:
    """Whether ``url`` leads to one of ``hosts``, each a ``host`` or a ``host:port``, compared exactly."""
    host = (url.raw_host or "").rstrip(".").lower()
    shown = f"[{host}]" if ":" in host else host
    return not {host, shown, f"{shown}:{url.port}"}.isdisjoint(hosts)
