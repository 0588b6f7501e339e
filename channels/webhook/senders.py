"""How a sender shows who it is: by the standard's signature, or by what else the account is set to. Pure.

Each way is chosen by the account's ``signing`` and by nothing in the request, and without a key none accepts
anything. Only the standard signs the time and the id of a request. The other two are for systems that cannot:
there a captured request stays valid, and nothing but the deduplication keeps it from running again.
"""

import hmac
from collections.abc import Callable, Iterable
from datetime import datetime
from typing import Final

from multidict import CIMultiDictProxy

from bridge.channel import ConfigError
from channels.webhook.settings import Signing
from channels.webhook.signature import Held, Key, PlainKey, PublicKey, SharedKey, Signed, current, is_id, only
from channels.webhook.signature import verify as verify_standard

DELIVERY: Final = "X-GitHub-Delivery"
BODY_SIGNATURE: Final = "X-Hub-Signature-256"

Headers = CIMultiDictProxy[str]
Verify = Callable[[Headers, bytes, datetime], Signed | None]
"""What a request's headers and body vouch for at a time, or ``None``: never raises."""


def verifier(signing: Signing, held: Iterable[Held[Key | PlainKey]], account: str) -> Verify:
    """The one way in which the account's senders are believed.

    Raises:
        ConfigError: the secrets are of another way.
    """
    keys = [Held(each.key, each.until) for each in held if isinstance(each.key, SharedKey | PublicKey)]
    plain = [Held(each.key, each.until) for each in held if isinstance(each.key, PlainKey)]
    if signing is Signing.STANDARD:
        if plain:
            raise ConfigError(f'{account}: signing = "standard" needs secrets without plain:')
        return standard(keys)
    if keys:
        raise ConfigError(f'{account}: signing = "{signing}" needs secrets that start with plain:')
    return github(plain) if signing is Signing.GITHUB else bearer(plain)


def standard(held: list[Held[SharedKey | PublicKey]]) -> Verify:
    """Standard Webhooks: id, time and body are signed."""

    def verify(headers: Headers, body: bytes, now: datetime) -> Signed | None:
        return verify_standard(current(held, now), headers, body, now)

    return verify


def github(held: list[Held[PlainKey]]) -> Verify:
    """``X-Hub-Signature-256: sha256=<hex>``, an HMAC of the body under the secret's text.

    Source: https://docs.github.com/webhooks/using-webhooks/validating-webhook-deliveries (read 2026-11-30).
    """

    def verify(headers: Headers, body: bytes, now: datetime) -> Signed | None:
        delivery, shown = only(headers, DELIVERY), only(headers, BODY_SIGNATURE).encode(errors="replace")
        macs = [hmac.digest(key.raw, body, "sha256").hex() for key in current(held, now)]
        matches = [hmac.compare_digest(shown, f"sha256={mac}".encode()) for mac in macs]
        return Signed(delivery) if any(matches) and is_id(delivery) else None

    return verify


def bearer(held: list[Held[PlainKey]]) -> Verify:
    """``Authorization: Bearer <token>``. It vouches for no id: that of the message in the body is taken."""

    def verify(headers: Headers, body: bytes, now: datetime) -> Signed | None:
        shown = only(headers, "Authorization").encode(errors="replace")
        matches = [hmac.compare_digest(shown, b"Bearer " + key.raw) for key in current(held, now)]
        return Signed("") if any(matches) else None

    return verify
