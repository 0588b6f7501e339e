"""How an adapter signs an account in without a person typing its secrets: somebody scans a code."""

from collections.abc import AsyncIterator, Mapping
from dataclasses import dataclass, field
from typing import Any, Protocol

from bridge.channel.http import Http


@dataclass(frozen=True, slots=True)
class Scan:
    """``address`` is to be shown as a QR code now, in place of the last one. It is good for so long."""

    address: str = field(repr=False)
    good_seconds: float


@dataclass(frozen=True, slots=True)
class SignedIn:
    """What the platform gave: keys of the account's settings and of its credentials."""

    settings: Mapping[str, str]
    credentials: Mapping[str, str] = field(repr=False)


class SignIn(Protocol):
    def __call__(self, settings: Mapping[str, Any], http: Http) -> AsyncIterator[Scan | SignedIn]:
        """Yield what is to be scanned, anew whenever it has expired, and at last what came of it.

        ``settings`` are those that the account has already. Nothing is told to anybody but the platform.

        Raises:
            ChannelError: it was declined, or nobody scanned any of several codes; the text says so.
        """
        ...
