from dataclasses import replace
from datetime import timedelta
from typing import Any

import pytest

from bridge.channel import Answer, Inbound, Reading, Request, Unreadable
from bridge.channel.testing.clock import START
from bridge.channel.testing.fakes.wechat_mp import ACCOUNT, APP_ID, new_key
from bridge.channel.testing.fakes.wechat_mp.messages import write
from bridge.channel.testing.fakes.wechat_mp.seal import seal, sign
from channels.wechat_mp.crypto import Seal, aes_key
from channels.wechat_mp.requests import Proof, read_request
from tests.channels.wechat_mp.support import (
    KEY,
    PLAIN,
    SECURE,
    STAMP,
    TOKEN,
    message,
    request,
    sealed,
    signed,
)

UNPROVEN = Answer(403, b"the request does not prove that the platform sent it", "text/plain")
TEXT = write("xml", message())


def text_of(found: Reading | Answer) -> str:
    assert isinstance(found, Reading), found
    (item,) = found.items
    assert isinstance(item, Inbound), item
    return item.text


def checked(changes: dict[str, str] | None = None, proof: Proof = SECURE) -> Reading | Answer:
    query = {**signed(), "echostr": "4375120948345356249"} | (changes or {})
    return read_request(request(query=query, method="GET"), proof)


@pytest.mark.parametrize("proof", [PLAIN, SECURE])
def test_the_consoles_check_is_answered_with_the_bare_echo_in_every_mode(proof: Proof) -> None:
    assert checked(proof=proof) == Answer(200, b"4375120948345356249", "text/plain")


def test_a_check_that_is_not_the_consoles_gets_no_echo() -> None:
    for changes in ({"signature": ""}, {"nonce": "2"}, {"signature": sign("other", STAMP, "nonce1")}):
        assert checked(changes) == UNPROVEN
    stale = signed(str(int(STAMP) - 301))
    assert isinstance(found := checked(stale), Answer)
    assert (found.status, b"clocks" in found.body) == (403, True)


def test_only_the_bare_address_and_two_methods_are_served() -> None:
    def status(**changes: Any) -> int:
        found = read_request(request(TEXT, signed(), **changes), PLAIN)
        return found.status if isinstance(found, Answer) else 200

    assert (status(), status(path="/"), status(path="/x"), status(method="PUT")) == (200, 200, 404, 405)


@pytest.mark.parametrize("form", ["xml", "json"])
def test_a_plain_message_is_read_and_its_form_kept_for_the_answer(form: str) -> None:
    found = read_request(request(write(form, message()), signed()), PLAIN)
    assert text_of(found) == "hello"
    assert isinstance(found, Reading)
    assert (found.platform_time, found.note) == (START, form)


@pytest.mark.parametrize("form", ["xml", "json"])
def test_a_sealed_message_is_read(form: str) -> None:
    found = read_request(sealed(write(form, message())), SECURE)
    assert text_of(found) == "hello"
    assert isinstance(found, Reading)
    assert (found.platform_time, found.note) == (START, form)


def test_a_sealed_body_may_itself_be_json() -> None:
    asked = sealed(write("json", message()))
    text = seal(KEY, APP_ID, write("json", message()))
    query = {**asked.query, "msg_signature": sign(TOKEN, STAMP, "nonce1", text)}
    assert text_of(read_request(request(write("json", {"Encrypt": text}), query), SECURE)) == "hello"


def test_in_compat_mode_only_the_sealed_part_is_believed() -> None:
    asked = sealed(TEXT)
    text = seal(KEY, APP_ID, TEXT)
    query = {**asked.query, "msg_signature": sign(TOKEN, STAMP, "nonce1", text)}
    body = write("xml", message(Content="forged", FromUserName="oForged") | {"Encrypt": text})
    assert text_of(read_request(request(body, query), SECURE)) == "hello"


def test_the_previous_key_is_accepted_while_the_new_one_is_taken_up() -> None:
    new = new_key()
    both = replace(SECURE, seal=Seal(APP_ID, [aes_key(new), aes_key(KEY)]))
    assert text_of(read_request(sealed(TEXT), both)) == "hello"
    assert text_of(read_request(sealed(TEXT, key=new), both)) == "hello"


def forgeries() -> list[Request]:
    good = sealed(TEXT)
    return [
        request(TEXT, signed()),  # plaintext, rightly signed: the bypass
        request(TEXT, {**signed(), "encrypt_type": "raw"}),
        replace(good, query={**signed(), "encrypt_type": "aes"}),  # no signature of the body
        replace(good, query={**good.query, "msg_signature": sign(TOKEN, STAMP, "nonce1")}),
        replace(good, query={**good.query, "msg_signature": ""}),
        replace(good, query={**good.query, "nonce": "2"}),
        replace(good, query={**good.query, "timestamp": str(int(STAMP) + 1)}),
        replace(good, query={key: value for key, value in good.query.items() if key != "encrypt_type"}),
        replace(good, body=sealed(write("xml", message(Content="forged"))).body),
        replace(good, body=TEXT),
        replace(good, body=b""),
        sealed(TEXT, key=new_key()),
        sealed(TEXT, app_id="wxanother"),
        sealed(TEXT, msg_signature="\ud800"),
    ]


@pytest.mark.parametrize("number", range(len(forgeries())))
def test_in_secure_mode_nothing_but_our_seal_is_believed_and_refusals_are_alike(number: int) -> None:
    assert read_request(forgeries()[number], SECURE) == UNPROVEN


@pytest.mark.parametrize(
    "query",
    [
        {},
        {**signed(), "signature": "0" * 40},
        signed(token="another"),
        {**signed(), "encrypt_type": "aes"},
        {**signed(), "nonce": "é"},
    ],
)
def test_in_plaintext_mode_the_signature_must_be_right(query: dict[str, str]) -> None:
    assert read_request(request(TEXT, query), PLAIN) == UNPROVEN


def test_a_replay_is_refused_after_the_window_and_a_repeat_before_it() -> None:
    good = sealed(TEXT)
    for seconds, believed in ((-301, False), (-300, True), (300, True), (301, False)):
        later = replace(good, received_at=START + timedelta(seconds=seconds))
        assert isinstance(read_request(later, SECURE), Reading) is believed
    wide = replace(SECURE, window_seconds=3600.0)
    assert isinstance(read_request(replace(good, received_at=START + timedelta(hours=1)), wide), Reading)


def test_a_time_that_is_none_is_no_proof_of_being_new() -> None:
    for stamp in ("", "x", "-5", "1" * 50):
        found = read_request(request(TEXT, signed(stamp)), PLAIN)
        assert isinstance(found, Answer)
        assert found.status == 403


def test_a_message_to_another_account_is_refused_also_when_it_is_signed() -> None:
    found = read_request(sealed(write("xml", message(ToUserName="gh_another"))), SECURE)
    assert isinstance(found, Answer)
    assert (found.status, b"original_id" in found.body) == (403, True)


@pytest.mark.parametrize("found", [b"what is this", b"", b"<xml>", "你".encode("gbk")])
def test_a_proven_body_that_cannot_be_read_is_an_item_and_spoils_nothing(found: bytes) -> None:
    for each in (read_request(sealed(found), SECURE), read_request(request(found, signed()), PLAIN)):
        assert isinstance(each, Reading)
        assert each.items == (Unreadable("a message is neither XML nor JSON"),)


def test_secrets_do_not_show_themselves() -> None:
    assert TOKEN not in repr(SECURE)
    assert SECURE.account == ACCOUNT
