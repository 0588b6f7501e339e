import hashlib
import hmac
from datetime import timedelta

import pytest
from multidict import CIMultiDict, CIMultiDictProxy

from bridge.channel import ConfigError
from bridge.channel.testing.clock import START
from channels.webhook.senders import Verify, verifier
from channels.webhook.settings import Signing
from channels.webhook.signature import Held, PlainKey, Signed, key_of, sign
from tests.channels.webhook.tools import INBOUND, OTHER, event

OLD, NEW = b"the-secret-from-before-it", b"the-secret-that-replaced-it"
BODY = event()


def plain(signing: Signing) -> Verify:
    return verifier(signing, [Held(PlainKey(NEW)), Held(PlainKey(OLD), START)], "webhook:a")


def shown(*headers: tuple[str, str]) -> CIMultiDictProxy[str]:
    return CIMultiDictProxy(CIMultiDict(headers))


def hub(secret: bytes, body: bytes = BODY) -> tuple[str, str]:
    return ("x-hub-signature-256", "sha256=" + hmac.new(secret, body, hashlib.sha256).hexdigest())


ID = ("x-github-delivery", "72d3162e-cc78-11e3-81ab-4c9367dc0958")


def test_githubs_way_signs_the_body_and_takes_the_delivery_as_the_id() -> None:
    verify = plain(Signing.GITHUB)
    assert verify(shown(ID, hub(NEW)), BODY, START) == Signed(ID[1], None)


def test_githubs_own_published_example_verifies() -> None:
    key = [Held(PlainKey(b"It's a Secret to Everybody"))]
    digest = "757107ea0eb2509fc211221cce984b8a37570b6d7586c22c46f4379c8b043e17"
    headers = shown(ID, ("X-Hub-Signature-256", f"sha256={digest}"))
    assert verifier(Signing.GITHUB, key, "a")(headers, b"Hello, World!", START) == Signed(ID[1])


@pytest.mark.parametrize(
    "headers",
    [
        [ID],
        [hub(NEW)],
        [ID, hub(b"a-secret-that-nobody-has-here")],
        [ID, hub(NEW, BODY + b" ")],
        [ID, hub(NEW), hub(NEW)],
        [ID, ID, hub(NEW)],
        [("x-github-delivery", "a.b"), hub(NEW)],
        [ID, (hub(NEW)[0], hub(NEW)[1].upper())],
        [ID, (hub(NEW)[0], hub(NEW)[1].removeprefix("sha256="))],
        [ID, (hub(NEW)[0], "sha256=")],
        [ID, (hub(NEW)[0], "sha256=\udcff")],
    ],
)
def test_githubs_way_refuses_anything_else(headers: list[tuple[str, str]]) -> None:
    assert plain(Signing.GITHUB)(shown(*headers), BODY, START) is None


def test_a_bearer_token_vouches_for_no_id() -> None:
    verify = plain(Signing.BEARER)
    assert verify(shown(("Authorization", f"Bearer {NEW.decode()}")), BODY, START) == Signed("")


@pytest.mark.parametrize(
    "value", ["", "Bearer", "Bearer ", NEW.decode(), f"bearer {NEW.decode()}", "Bearer \udcff"]
)
def test_any_other_token_is_refused(value: str) -> None:
    verify = plain(Signing.BEARER)
    assert verify(shown(("Authorization", value)), BODY, START) is None
    twice = shown(*[("Authorization", f"Bearer {NEW.decode()}")] * 2)
    assert verify(twice, BODY, START) is None


def test_the_window_of_a_replaced_secret_ends_in_every_way() -> None:
    before = START - timedelta(seconds=1)
    for signing, headers in (
        (Signing.GITHUB, shown(ID, hub(OLD))),
        (Signing.BEARER, shown(("Authorization", f"Bearer {OLD.decode()}"))),
    ):
        assert plain(signing)(headers, BODY, before) is not None
        assert plain(signing)(headers, BODY, START) is None
    keys = [Held(key_of(OTHER)), Held(key_of(INBOUND), START)]
    for now, found in ((before, True), (START, False)):
        signed = shown(*sign(INBOUND, "id", int(now.timestamp()), BODY).items())
        assert (verifier(Signing.STANDARD, keys, "a")(signed, BODY, now) is not None) is found


def test_what_the_account_is_not_set_to_is_never_accepted() -> None:
    """Each way of showing oneself, rightly done, against the two others."""
    ways = {
        Signing.STANDARD: shown(*sign(INBOUND, "id", int(START.timestamp()), BODY).items()),
        Signing.GITHUB: shown(ID, hub(NEW)),
        Signing.BEARER: shown(("Authorization", f"Bearer {NEW.decode()}")),
    }
    for signing in Signing:
        keys = [Held(key_of(INBOUND))] if signing is Signing.STANDARD else [Held(PlainKey(NEW))]
        verify = verifier(signing, keys, "webhook:a")
        assert [way for way in ways if verify(ways[way], BODY, START)] == [signing]


def test_secrets_of_another_way_are_the_operators_to_mend() -> None:
    with pytest.raises(ConfigError, match="without plain:"):
        verifier(Signing.STANDARD, [Held(PlainKey(NEW))], "webhook:a")
    for signing in (Signing.GITHUB, Signing.BEARER):
        with pytest.raises(
            ConfigError, match=f'^webhook:a: signing = "{signing}" needs secrets that start with'
        ):
            verifier(signing, [Held(key_of(INBOUND)), Held(PlainKey(NEW))], "webhook:a")


def test_without_a_key_no_way_accepts_anything() -> None:
    for signing in Signing:
        for headers in (shown(), shown(ID, hub(b"")), shown(("Authorization", "Bearer "))):
            assert verifier(signing, [], "a")(headers, BODY, START) is None
