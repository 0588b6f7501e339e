import base64
import json
from datetime import UTC, datetime
from typing import Any

import pytest
from pydantic import ValidationError
from yarl import URL

from channels.webhook.settings import WebhookCredentials, is_address, is_encrypted, names_host
from channels.webhook.signature import PlainKey, PublicKey, SharedKey
from tests.channels.webhook.tools import ASK_TOKEN, CALLBACK, INBOUND, OTHER, credentials, settings


@pytest.mark.parametrize(
    "fields",
    [
        {"unknown": 1},
        {"callback_url": "ftp://x.example"},
        {"callback_url": "x.example/hook"},
        {"callback_url": "https://"},
        {"callback_url": "https://user:word@x.example/hook"},
        {"callback_url": "https://x.example:99999/"},
        {"callback_url": "http://x.example/hook"},
        {"callback_url": "http://127.0.0.1:9/hook", "private_hosts": ["127.0.0.1:8"]},
        {"progress": True},
        {"signing": "auto"},
        {"file_hosts": ["https://x.example"]},
        {"file_hosts": ["*.x.example"]},
        {"file_hosts": [""]},
        {"private_hosts": ["x.example/path"]},
        {"private_hosts": ["bücher.example"]},
    ],
)
def test_settings_that_make_no_sense_are_refused(fields: dict[str, Any]) -> None:
    with pytest.raises(ValidationError):
        settings(**fields)


def test_plain_http_needs_a_host_that_the_operator_named() -> None:
    for host in ("127.0.0.1:9", "127.0.0.1"):
        assert settings(callback_url="http://127.0.0.1:9/hook", private_hosts=[host], progress=True).progress
    assert settings(callback_url="https://x.example/hook").callback_url


def test_hosts_are_kept_in_lower_case() -> None:
    assert settings(file_hosts=[" Files.Example "]).file_hosts == ("files.example",)


@pytest.mark.parametrize(
    ("hosts", "address", "named"),
    [
        ({"a.example"}, "https://a.example/x", True),
        ({"a.example"}, "https://A.Example.:444/x", True),
        ({"a.example:443"}, "https://a.example/x", True),
        ({"a.example:443"}, "https://a.example:444/x", False),
        ({"a.example"}, "https://b.a.example/x", False),
        ({"a.example"}, "https://a.example.evil.example/x", False),
        ({"[::1]"}, "http://[::1]:8/x", True),
        ({"::1"}, "http://[::1]:8/x", True),
        (set(), "https://a.example/x", False),
    ],
)
def test_hosts_are_compared_exactly(hosts: set[str], address: str, named: bool) -> None:
    assert names_host(hosts, URL(address)) is named


def test_addresses_and_their_schemes() -> None:
    assert is_address("https://x.example/a?b=c")
    assert not is_address("https://[::1/")
    for odd in ("\r\nX: y", "\n", "\t", " ", "\0", "\x7f", "\u2028"):  # parsers drop some of them in silence
        assert not is_address(f"https://x.example/a{odd}b")
    assert is_address("https://x.example/图.png")
    assert is_encrypted("https://x.example", ())
    assert not is_encrypted("http://x.example", ("y.example",))


@pytest.mark.parametrize(
    "fields",
    [
        {"unknown": "whsec_" + "A" * 44},
        {"secrets": []},
        {"secrets": ["A" * 44]},
        {"secrets": [INBOUND] * 9},
        {"secrets": [{"secret": INBOUND, "until": "2026-12-24T18:00:00Z"}]},
        {"secrets": [OTHER, {"secret": INBOUND, "until": "2026-12-24T18:00:00"}]},
        {"secrets": [OTHER, {"secret": INBOUND, "until": "tomorrow"}]},
        {"secrets": [OTHER, {"secret": INBOUND, "ends": "2026-12-24T18:00:00Z"}]},
        {"secrets": ["plain:too-short-to-be-it"]},
        {"secrets": ["plain:" + "with a space " * 3]},
        {"secrets": [f"plain:{ASK_TOKEN}-and-more"], "ask_token": f"{ASK_TOKEN}-and-more"},
        {"secrets": [f"plain:{ASK_TOKEN}-and-more"], "file_token": f"{ASK_TOKEN}-and-more"},
        {"callback_secrets": [{"secret": "plain:" + "x" * 24}]},
        {"callback_secrets": ["whpk_" + base64.b64encode(b"x" * 32).decode()]},
        {"callback_secrets": [INBOUND]},
        {"ask_token": "two words"},
        {"ask_token": "café-and-more"},
        {"file_token": "line\nend"},
    ],
)
def test_credentials_that_cannot_work_are_refused_and_never_shown(fields: dict[str, Any]) -> None:
    with pytest.raises(ValidationError) as failed:
        credentials(**fields)
    for shown in ("AAAA", INBOUND[6:], CALLBACK[6:], "two words", "café-and", "line\n"):
        assert shown not in str(failed.value)


def test_credentials_give_their_keys_in_order_and_hide_them() -> None:
    public = "whpk_" + base64.b64encode(b"x" * 32).decode()
    found = credentials(secrets=[INBOUND, public], callback_secrets=[CALLBACK, OTHER])
    first, second = found.inbound_keys()
    assert isinstance(first.key, SharedKey)
    assert second.key == PublicKey(b"x" * 32)
    assert [held.key.raw[0] for held in found.callback_keys()] == [2, 3]
    for shown in (INBOUND[6:], CALLBACK[6:], ASK_TOKEN):
        assert shown not in repr(found)


def test_several_secrets_may_come_in_one_text() -> None:
    found = credentials(secrets=f"{INBOUND} {OTHER}", callback_secrets=CALLBACK)
    assert found == credentials(secrets=[INBOUND, OTHER])


def test_a_secret_that_is_replaced_may_end_by_itself() -> None:
    entry = {"secret": OTHER, "until": "2026-12-24T18:00:00+01:00"}
    found = credentials(secrets=[INBOUND, entry], callback_secrets=[{"secret": CALLBACK}])
    assert [held.until for held in found.inbound_keys()] == [None, datetime(2026, 12, 24, 17, tzinfo=UTC)]
    assert [held.until for held in found.callback_keys()] == [None]
    given = json.dumps({"secrets": [INBOUND, entry]})
    assert WebhookCredentials.model_validate_json(given).inbound_keys() == found.inbound_keys()


def test_a_text_that_signs_in_another_way_is_a_key_of_its_own_kind() -> None:
    (held,) = credentials(secrets=["plain:the-text-that-they-sign-with"]).inbound_keys()
    assert held.key == PlainKey(b"the-text-that-they-sign-with")


def test_credentials_are_read_strictly_from_json() -> None:
    for secrets in ([INBOUND, OTHER], f"{INBOUND} {OTHER}"):
        given = json.dumps({"secrets": secrets, "callback_secrets": [CALLBACK], "ask_token": ASK_TOKEN})
        found = WebhookCredentials.model_validate_json(given, strict=True)
        assert len(found.inbound_keys()) == 2
    mistaken: tuple[Any, ...] = (3, [3], {}, "", None)
    for wrong in mistaken:
        with pytest.raises(ValidationError):
            WebhookCredentials.model_validate_json(json.dumps({"secrets": wrong}), strict=True)


def test_a_secret_that_lost_its_padding_still_works() -> None:
    assert credentials(secrets=[INBOUND.rstrip("=")]).inbound_keys() == credentials().inbound_keys()
