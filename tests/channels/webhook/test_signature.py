import base64
import json
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from multidict import CIMultiDict, CIMultiDictProxy
from standardwebhooks import Webhook, WebhookVerificationError

from bridge.clock import SystemClock
from channels.webhook.signature import (
    MAX_TOKENS,
    Held,
    PlainKey,
    PublicKey,
    SharedKey,
    checked,
    configured_key,
    current,
    is_id,
    key_of,
    shared_key,
    sign,
    sign_with,
    verify,
)
from tests.channels.webhook.tools import CALLBACK, INBOUND, OTHER

FILE = json.loads((Path(__file__).parents[2] / "vectors" / "standard_webhooks.json").read_text("utf-8"))
CASES: list[dict[str, Any]] = FILE["cases"]
NOW = datetime(2026, 1, 2, 3, 4, 5, tzinfo=UTC)
UNIX = int(NOW.timestamp())


def verified(case: dict[str, Any]) -> bool:
    body = base64.b64decode(case["body_base64"]) if "body_base64" in case else case["body"].encode()
    headers = CIMultiDictProxy(CIMultiDict(case["headers"]))
    keys = [key_of(text) for text in case["secrets"]]
    return verify(keys, headers, body, datetime.fromtimestamp(case["now"], UTC)) is not None


@pytest.mark.parametrize("case", CASES, ids=lambda case: case["name"])
def test_every_published_case_ends_as_it_says(case: dict[str, Any]) -> None:
    assert verified(case) is (case["expect"] == "accept")


def test_all_fifty_two_cases_are_there() -> None:
    assert len(CASES) == 52
    assert {case["expect"] for case in CASES} == {"accept", "reject"}


def test_an_ed25519_signature_is_accepted_under_the_public_key() -> None:
    case = {**FILE["ed25519"], "secrets": [FILE["ed25519"]["public_key"]]}
    assert verified(case)
    assert not verified({**case, "body": case["body"] + " "})


@pytest.mark.parametrize(
    "change", [lambda t: t[:-2], lambda t: t.replace("v1a", "v1"), lambda t: "v1a,!" + t[4:]]
)
def test_a_misspelt_ed25519_signature_is_refused(change: Any) -> None:
    case = {**FILE["ed25519"], "secrets": [FILE["ed25519"]["public_key"]]}
    signature = change(case["headers"]["webhook-signature"])
    assert not verified({**case, "headers": {**case["headers"], "webhook-signature": signature}})


def headers_of(signed: dict[str, str], *extra: tuple[str, str]) -> CIMultiDictProxy[str]:
    headers = CIMultiDict(signed)
    for name, value in extra:
        headers.add(name, value)
    return CIMultiDictProxy(headers)


@pytest.mark.parametrize("name", ["webhook-id", "webhook-timestamp", "webhook-signature"])
def test_a_header_that_comes_twice_is_refused_even_with_the_same_value(name: str) -> None:
    signed = sign(INBOUND, "id", UNIX, b"{}")
    assert verify([key_of(INBOUND)], headers_of(signed), b"{}", NOW)
    assert verify([key_of(INBOUND)], headers_of(signed, (name, signed[name])), b"{}", NOW) is None


def test_without_a_key_nothing_is_accepted() -> None:
    assert verify([], headers_of(sign(INBOUND, "id", UNIX, b"{}")), b"{}", NOW) is None
    assert verify([], headers_of({}), b"{}", NOW) is None


def test_only_the_first_signatures_are_looked_at() -> None:
    signed = sign(INBOUND, "id", UNIX, b"")
    good = signed["webhook-signature"]
    for others, accepted in ((MAX_TOKENS - 1, True), (MAX_TOKENS, False)):
        headers = headers_of({**signed, "webhook-signature": " ".join(["v1,AAAA"] * others + [good])})
        assert (verify([key_of(INBOUND)], headers, b"", NOW) is not None) is accepted


def test_rotating_signs_with_every_secret_and_either_one_verifies() -> None:
    signed = sign_with([shared_key(CALLBACK), shared_key(OTHER)], "id", UNIX, b"x")
    for receiver in (CALLBACK, OTHER):
        found = verify([key_of(receiver)], headers_of(signed), b"x", NOW)
        assert found is not None
        assert (found.webhook_id, found.sent_at) == ("id", NOW)
    assert verify([key_of(INBOUND)], headers_of(signed), b"x", NOW) is None


@given(
    st.binary(max_size=200), st.from_regex(r"[A-Za-z0-9_-]{1,256}", fullmatch=True), st.integers(-300, 300)
)
def test_what_is_signed_verifies_within_five_minutes_and_any_other_body_does_not(
    body: bytes, webhook_id: str, late: int
) -> None:
    signed = headers_of(sign(INBOUND, webhook_id, UNIX, body))
    now = NOW + timedelta(seconds=late)
    assert verify([key_of(INBOUND)], signed, body, now)
    assert verify([key_of(INBOUND)], signed, body + b" ", now) is None


@given(st.dictionaries(st.sampled_from(["webhook-id", "webhook-timestamp", "webhook-signature"]), st.text()))
def test_no_header_text_makes_it_raise(headers: dict[str, str]) -> None:
    signed = {**sign(INBOUND, "id", UNIX, b""), **headers}
    if "webhook-id" in headers or "webhook-timestamp" in headers:
        assert verify([key_of(INBOUND)], headers_of(signed), b"", NOW) is None
    keys = [key_of(INBOUND), key_of(FILE["ed25519"]["public_key"])]
    verify(keys, headers_of(signed), b"", NOW)


def test_the_reference_library_accepts_what_we_sign() -> None:
    body = '{"text":"café 😀 你好"}'
    signed = sign(INBOUND, "msg_1", int(SystemClock().now().timestamp()), body.encode())
    assert Webhook(INBOUND).verify(body, signed) == {"text": "café 😀 你好"}
    with pytest.raises(WebhookVerificationError):
        Webhook(OTHER).verify(body, signed)


def test_we_accept_what_the_reference_library_signs() -> None:
    body = '{"text":"café 😀 你好"}'
    signature = Webhook(INBOUND).sign("msg_1", NOW, body)
    headers = {"webhook-id": "msg_1", "webhook-timestamp": str(UNIX), "webhook-signature": signature}
    assert verify([key_of(INBOUND)], headers_of(headers), body.encode(), NOW)
    assert sign(INBOUND, "msg_1", UNIX, body.encode()) == headers


@pytest.mark.parametrize(
    ("text", "complaint"),
    [
        ("", "must start with whsec_"),
        (INBOUND.removeprefix("whsec_"), "must start with whsec_"),
        ("v1," + INBOUND, "must start with whsec_"),
        ("whsec_" + "!" * 44, "not base64"),
        ("whsec_ä" + "A" * 43, "not base64"),
        ("whsec_" + "A" * 33, "not base64"),
        ("whsec_AAAA\n" + "A" * 40, "not base64"),
        ("whsec_" + base64.b64encode(b"x" * 23).decode(), "at least 24 bytes"),
        ("whpk_" + base64.b64encode(b"x" * 32).decode(), "must start with whsec_"),
    ],
)
def test_a_mistyped_secret_is_refused_without_being_shown(text: str, complaint: str) -> None:
    with pytest.raises(ValueError, match=complaint) as failed:
        checked(text)
    assert not text or text[6:] not in str(failed.value)


def test_a_public_key_may_be_configured_where_it_only_verifies() -> None:
    good = "whpk_" + base64.b64encode(b"x" * 32).decode()
    assert checked(good, verifies=True) == good
    with pytest.raises(ValueError, match="32 bytes"):
        checked("whpk_" + base64.b64encode(b"x" * 31).decode(), verifies=True)
    with pytest.raises(ValueError, match="whsec_ or whpk_"):
        checked("nothing", verifies=True)


def test_keys_know_their_kind_and_show_no_secret() -> None:
    assert isinstance(key_of(FILE["ed25519"]["public_key"]), PublicKey)
    key = key_of(INBOUND)
    assert isinstance(key, SharedKey)
    assert repr(key) == "SharedKey()"
    assert checked(INBOUND) == INBOUND


@pytest.mark.parametrize("webhook_id", ["", "a.b", "a b", "é", "x" * 257])
def test_an_id_that_would_blur_the_signed_content_is_never_signed(webhook_id: str) -> None:
    with pytest.raises(ValueError, match="webhook-id"):
        sign(INBOUND, webhook_id, UNIX, b"")


def test_a_plain_text_is_a_key_of_its_own_kind_and_must_be_long_enough() -> None:
    assert configured_key("plain:" + "x" * 24) == PlainKey(b"x" * 24)
    assert "xxx" not in repr(configured_key("plain:" + "x" * 24))
    with pytest.raises(ValueError, match="24 bytes"):
        checked("plain:" + "x" * 23, verifies=True)
    with pytest.raises(ValueError, match=r"must start with whsec_$"):
        checked("plain:" + "x" * 24)


def test_a_key_that_ends_is_there_up_to_its_end_and_not_after() -> None:
    held = [Held(shared_key(INBOUND)), Held(shared_key(OTHER), NOW)]
    assert current(held, NOW - timedelta(microseconds=1)) == [shared_key(INBOUND), shared_key(OTHER)]
    assert current(held, NOW) == [shared_key(INBOUND)]


def test_an_id_is_told_from_what_would_blur_the_signed_content() -> None:
    assert is_id("a-B_9")
    assert not is_id("a.b")
