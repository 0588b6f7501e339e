"""What bit other makers of webhooks in public, each with its report: the same input, and what is right."""

import base64
import hashlib
import hmac
import json
from typing import Any

import pytest
from pydantic import ValidationError

from bridge.channel import Answer, ConfigError, Http, Identity, Place, Reading
from bridge.channel.http import http_session
from bridge.channel.testing.clock import START
from bridge.channel.testing.fakes.webhook import new_secret
from bridge.errors import StoreError
from bridge.store.contract import Claim, Store
from channels.webhook.asking import WebhookAsked
from channels.webhook.callback import WebhookCallback
from channels.webhook.inbound import UNAUTHORIZED
from channels.webhook.settings import WebhookCredentials
from channels.webhook.signature import sign_with
from tests.channels.webhook.serving import Watched, answering, live, plain_event
from tests.channels.webhook.tools import (
    ASK_TOKEN,
    CALLBACK,
    INBOUND,
    OTHER,
    bare,
    credentials,
    event,
    request,
    settings,
)
from tests.daemons import short_home

UNIX = int(START.timestamp())


async def channel(**secrets: Any) -> WebhookAsked:
    async with http_session() as session:
        return WebhookAsked(settings(), credentials(**secrets), Http(session), Place("a"))


@pytest.mark.parametrize(
    "mistyped",
    ["v1," + INBOUND[6:], "whsec-" + INBOUND[6:], "WHSEC_" + INBOUND[6:], INBOUND[6:], "whsec_my secret",
     "whsec_" + INBOUND, "whsec_c2hvcnQ="],
)  # fmt: skip
def test_a_mistyped_secret_is_refused_and_not_decoded_to_a_wrong_key_standard_webhooks_235(
    mistyped: str,
) -> None:
    with pytest.raises(ValidationError):
        credentials(secrets=[mistyped])


async def test_what_only_looks_like_the_standard_is_not_accepted_hookdeck_outpost_1004() -> None:
    """Signed over the body alone, or with the secret's whole text as the key: its time would be free."""
    body, asked = event(), await channel()
    content = f"msg_1.{UNIX}.".encode() + body
    for key, signed in (
        (INBOUND.encode(), content),
        (INBOUND.encode(), body),
        (base64.b64decode(INBOUND[6:]), body),
    ):
        token = "v1," + base64.b64encode(hmac.new(key, signed, hashlib.sha256).digest()).decode()
        given = request(body, headers={"webhook-signature": token})
        assert asked.read(given, Identity()) == UNAUTHORIZED


def test_a_secret_without_its_prefix_is_never_taken_for_raw_text_sandbase_harness_256() -> None:
    for field in ("secrets", "callback_secrets"):
        with pytest.raises(ValidationError, match="must start with whsec_"):
            credentials(**{field: ["raw-text-of-a-secret-that-is-long"]})


async def test_a_window_of_rotation_can_be_opened_while_it_runs_sandbase_harness_325() -> None:
    async with answering() as there:
        new = new_secret()
        there_secrets = json.loads(there.home.credentials("webhook", "demo").read_text())
        old = there_secrets["secrets"][0]
        there_secrets["secrets"] = [new, {"secret": old, "until": "2100-01-01T00:00:00Z"}]
        there.home.credentials("webhook", "demo").write_text(json.dumps(there_secrets))
        await there.reload()
        assert (await there.post(plain_event("by the old one"), "msg_1", old)).status == 202
        assert (await there.post(plain_event("by the new one"), "msg_2", new)).status == 202
        assert await there.replies()


def test_all_active_secrets_sign_as_it_is_written_down_nextlyhq_nextly_227() -> None:
    keys = [held.key for held in credentials(callback_secrets=[CALLBACK, OTHER]).callback_keys()]
    tokens = sign_with(keys, "id", UNIX, b"{}")["webhook-signature"].split(" ")
    alone = [sign_with([key], "id", UNIX, b"{}")["webhook-signature"] for key in keys]
    assert tokens == alone


async def test_a_missing_secret_means_closed_corsair_917() -> None:
    nothing: list[dict[str, Any]] = [
        {},
        {"secrets": []},
        {"secrets": ""},
        {"secrets": [""]},
        {"secrets": None},
    ]
    for none in nothing:
        with pytest.raises(ValidationError):
            WebhookCredentials.model_validate({"ask_token": ASK_TOKEN, **none})
    unsigned = bare("POST", "", None, **{"Content-Type": "application/json"})
    assert (await channel()).read(unsigned, Identity()) == UNAUTHORIZED
    async with http_session() as session:
        table = settings(callback_url="https://hooks.example/in")
        with pytest.raises(ConfigError, match="callback_secrets"):
            WebhookCallback(table, credentials(callback_secrets=[]), Http(session), Place("a"))


async def test_a_get_of_the_route_is_told_what_to_use_and_needs_no_signature_elizaos_eliza_17823() -> None:
    answer = (await channel()).read(bare("GET", ""), Identity())
    assert isinstance(answer, Answer)
    assert (answer.status, answer.headers["Allow"]) == (405, "POST")


async def test_no_2xx_comes_before_the_message_is_written_whatsapp_api_js_335() -> None:
    watched: list[Watched] = []

    def wrap(store: Store) -> Store:
        watched.append(Watched(store, Claim))
        watched[0].error = StoreError("the disk is full")
        return watched[0]

    with short_home() as home:
        async with live(home, store_wrap=wrap) as there:
            assert (await there.post(plain_event("hello"))).status == 503
            assert (await there.replies(wait=0)) == []
            watched[0].goes_on.set()
            assert (await there.post(plain_event("hello"))).status == 202
            assert [part["text"] for part in await there.replies()] == ["You said: hello"]


async def test_the_bytes_are_verified_and_not_json_that_is_written_again_outline_3699() -> None:
    asked = await channel()
    for body in (
        event(),
        b'{ "type" : "x",\n"data":{"n":1.0, "u":"\\u00e9"} }',
        '{"type":"é","data":{}}'.encode(),
    ):
        assert isinstance(asked.read(request(body), Identity()), Reading)
        again = json.dumps(json.loads(body), separators=(",", ":")).encode()
        signed = request(body)
        changed = request(again, headers={**signed.headers})
        assert asked.read(changed, Identity()) == UNAUTHORIZED
