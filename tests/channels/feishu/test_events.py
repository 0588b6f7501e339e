import base64
import json
from datetime import UTC, datetime
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from bridge.channel import Answer, Claimed, Edited, Identity, Ignored, Inbound, Reading, Recalled, Unreadable
from channels.feishu.events import Proof, acknowledge, read_request
from channels.feishu.references import Link
from tests.channels.feishu.support import (
    BOT,
    TOKEN_ONLY,
    VECTORS,
    bot_mention,
    inbound,
    item,
    message_event,
    read,
    request,
    signed,
)

UNPROVEN = b'{"msg": "the request does not prove that the platform sent it"}'
REQUESTS = {row["name"]: row for row in VECTORS["requests"]}
APPS = {"v1-plaintext-envelope": "cli_x"}


def ask(row: dict[str, Any]) -> Reading | Answer:
    app = APPS.get(row["name"], "cli_9f5343c580712544")
    proof = Proof(app, row["encrypt_key"], row["verification_token"])
    body = base64.b64decode(row["body_base64"])
    return read_request(request(body, row["headers"]), Identity("ou_84aad35d084aa403a838cf73ee18467"), proof)


@pytest.mark.parametrize("row", VECTORS["requests"], ids=lambda row: row["name"])
def test_requests_end_as_with_the_official_kit_but_a_bad_one_is_no_fault_of_ours(
    row: dict[str, Any],
) -> None:
    answer = ask(row)
    if isinstance(answer, Reading):
        assert row["peer_status"] in (200, None)
        assert acknowledge(answer, [Claimed.ACCEPTED]).body == b'{"msg": "success"}'
    elif row["peer_status"] == 200:
        assert (answer.status, json.loads(answer.body)) == (200, json.loads(row["peer_body"]))
    else:
        assert (answer.status, answer.body) == (403, UNPROVEN)
    assert isinstance(answer, Reading) == (row.get("handler_calls", 1) == 1)


def test_on_the_official_page_bot_and_sender_are_one_so_that_it_is_the_bots_own_message() -> None:
    own = ask(REQUESTS["v2-encrypted-signed"])
    assert isinstance(own, Reading)
    assert own.items == (Ignored("own", "om_5ce6d572455d361153b7cb51da133945"),)


def test_the_old_envelope_is_read_by_its_own_names() -> None:
    reading = ask(REQUESTS["v1-plaintext-envelope"])
    assert isinstance(reading, Reading)
    assert reading.items == (
        Inbound(
            message_id="om_x",
            sender="ou_x",
            chat="ou_x",
            to="p2p:ou_x",
            reply_to="om_x",
            text="hi",
            sent_at=datetime(2017, 8, 8, 13, 33, 27, 717142, tzinfo=UTC),
        ),
    )


def test_a_direct_message_is_read_with_everything_that_an_answer_needs() -> None:
    assert inbound() == Inbound(
        message_id="om_1",
        sender="ou_1",
        chat="oc_1",
        to="p2p:oc_1",
        reply_to="om_1",
        text="hello",
        sent_at=datetime(2023, 11, 14, 22, 13, 20, 123000, tzinfo=UTC),
        stamp="1700000000123",
    )


def test_case_1_and_2_a_redelivery_under_a_new_id_has_the_same_stamp_sender_and_content() -> None:
    first, again = inbound({"message_id": "om_1"}), inbound({"message_id": "om_2"}, event_id="e2")
    assert (first.stamp, first.sender, first.chat, first.text) == (
        again.stamp,
        again.sender,
        again.chat,
        again.text,
    )
    assert first.message_id != again.message_id


def test_case_4_the_message_id_is_the_key_whatever_the_event_is_called() -> None:
    assert inbound(event_id="e1") == inbound(event_id="e2")


def test_case_9_an_event_of_another_app_is_refused_and_starts_nothing() -> None:
    answer = read(message_event(app_id="cli_other"))
    assert isinstance(answer, Answer)
    assert (answer.status, answer.body) == (403, b'{"msg": "the event is of another app"}')
    old = {"token": "verify-token-1", "event": {"type": "message", "app_id": "cli_other"}}
    assert isinstance(read(old), Answer)


@pytest.mark.parametrize(
    "kind",
    [
        "im.chat.member.bot.added_v1",
        "im.chat.member.bot.deleted_v1",
        "im.message.message_read_v1",
        "im.message.reaction.created_v1",
        "",
        "never.heard_of",
    ],
)
def test_case_17_other_events_are_acknowledged_and_start_nothing(kind: str) -> None:
    reading = read(message_event(event_type=kind))
    assert isinstance(reading, Reading)
    assert reading.items == (Ignored("event"),)
    assert acknowledge(reading, [Claimed.IGNORED]).status == 200


def test_edits_and_recalls_are_events_of_their_own_kind() -> None:
    changed = message_event({"update_time": "1700000000999"}, event_type="im.message.updated_v1")
    assert item(changed) == Edited(inbound(), 1700000000999)
    recall = message_event(event_type="im.message.recalled_v1")
    recall["event"] = {"message_id": "om_1", "chat_id": "oc_1"}
    assert item(recall) == Recalled("om_1", chat="oc_1")


def test_case_3_and_18_the_sent_time_is_the_platforms() -> None:
    assert inbound({"create_time": "1700000000000"}).sent_at == datetime(2023, 11, 14, 22, 13, 20, tzinfo=UTC)
    assert inbound({"create_time": "yesterday"}).sent_at is None


@pytest.mark.parametrize(
    ("text", "mentions"),
    [
        ("hello everybody", []),
        ("@_user_1 hi", [{"key": "@_user_1", "id": {"open_id": "ou_other_bot"}, "name": "Bot"}]),
        ("@_all hi", [{"key": "@_all", "id": {"open_id": "all"}, "name": "all"}]),
        ("`@Bot` hi", []),
        ("/status@Bot", []),
    ],
)
def test_case_48_a_group_is_answered_only_where_the_bots_own_id_is_mentioned(
    text: str, mentions: list[Any]
) -> None:
    message = {"chat_type": "group", "content": json.dumps({"text": text}), "mentions": mentions}
    assert item(message_event(message)) == Ignored("not_mentioned", "om_1")


def test_a_group_message_to_the_bot_comes_without_its_mention() -> None:
    mentions = [bot_mention(), {"key": "@_user_2", "id": {"open_id": "ou_2"}, "name": "Ann"}]
    content = json.dumps({"text": "@_user_1 ask @_user_2"})
    found = inbound({"chat_type": "group", "content": content, "mentions": mentions, "parent_id": "om_0"})
    assert (found.group, found.to, found.text, found.reference) == (True, "group:oc_1", "ask @Ann", "om_0")


@pytest.mark.parametrize("kind", ["topic", "public", "never_heard_of"])
def test_a_chat_of_an_unknown_kind_counts_as_a_group(kind: str) -> None:
    assert inbound({"chat_type": kind, "mentions": [bot_mention()]}).group


def test_while_the_bots_id_is_unknown_a_mention_is_left_with_the_platform() -> None:
    event = message_event({"chat_type": "group", "mentions": [bot_mention()]})
    answer = read(event, Identity())
    assert isinstance(answer, Answer)
    assert (answer.status, answer.headers) == (503, {"Retry-After": "5"})
    assert item(message_event({"chat_type": "group"}), Identity()) == Ignored("not_mentioned", "om_1")
    assert isinstance(item(message_event(), Identity()), Inbound)


def test_a_topic_is_a_thread_and_is_answered_in_it() -> None:
    found = inbound({"thread_id": "omt_1", "root_id": "om_0", "parent_id": "om_0"})
    assert (found.thread, found.reply_to) == ("omt_1", "om_1;thread")
    assert Link.decode(found.reference, "om_1") == Link(root="om_0", listener="omt_1 ou_1")


def test_case_12_a_forwarded_bundle_refers_to_itself_and_has_no_text() -> None:
    found = inbound({"message_type": "merge_forward", "content": "Merged and Forwarded Message"})
    assert (found.text, Link.decode(found.reference, "om_1")) == ("", Link(own=True))


@pytest.mark.parametrize(
    ("sender", "reason"),
    [
        ({"sender_id": {"open_id": "ou_bot"}, "sender_type": "user"}, "own"),
        ({"sender_id": {"open_id": "ou_1"}, "sender_type": "app"}, "bot"),
        ({"sender_id": {"open_id": "ou_1"}, "sender_type": "bot"}, "bot"),
        ({"sender_id": {"open_id": "ou_1"}}, "bot"),
    ],
)
def test_nobody_but_people_is_answered(sender: dict[str, Any], reason: str) -> None:
    assert item(message_event(sender=sender)) == Ignored(reason, "om_1")


def test_a_message_that_lacks_something_is_one_unreadable_item() -> None:
    lacking = Unreadable("a message event lacks what every message has", "om_1")
    assert item(message_event({"chat_id": ""})) == lacking
    assert item(message_event({"chat_id": None})) == lacking
    assert item(message_event({"message_id": 7})) == Unreadable(lacking.reason)
    assert item(message_event({"message_id": "m" * 257})) == Unreadable(lacking.reason)
    assert item(message_event({"message_id": "\ud800"})) == Unreadable(lacking.reason)
    assert item(message_event() | {"event": []}) == Unreadable(lacking.reason)
    nobody = message_event(sender={"sender_id": {}, "sender_type": "user"})
    assert item(nobody) == Unreadable("a message event names no sender", "om_1")


def test_fields_of_a_wrong_type_that_are_not_needed_cost_nothing() -> None:
    odd = {"mentions": {"key": 1}, "parent_id": 3, "thread_id": None, "create_time": 5, "content": None}
    found = inbound(odd)
    assert (found.text, found.reference, found.thread, found.stamp) == (
        "[Unreadable text message]",
        "",
        "",
        "",
    )
    assert inbound({"mentions": ["x", {"key": 1, "id": 2, "name": 3}]}).text == "hello"


SEALED = Proof("cli_app", "key", "verify-token-1")


def test_with_a_key_nothing_plain_is_taken() -> None:
    body = json.dumps(message_event()).encode()
    for value in (
        body,
        b'{"encrypt": 5}',
        b'{"encrypt": "AAAA"}',
        b'{"type": "url_verification", "challenge": "x"}',
    ):
        answer = read_request(request(value, signed(value, "key")), BOT, SEALED)
        assert isinstance(answer, Answer)
        assert (answer.status, answer.body) == (403, UNPROVEN)


def test_without_a_key_nothing_sealed_is_taken() -> None:
    answer = read({"encrypt": REQUESTS["url-verification-encrypted"]["body_base64"]})
    assert isinstance(answer, Answer)
    assert answer.body == UNPROVEN


def test_every_failure_to_prove_the_sender_reads_alike() -> None:
    row = REQUESTS["v2-encrypted-signed"]
    body, headers = base64.b64decode(row["body_base64"]), dict(row["headers"])
    right = Proof("cli_9f5343c580712544", row["encrypt_key"], row["verification_token"])
    bad = [
        (body, headers | {"X-Lark-Signature": ""}, right),
        (body, headers | {"X-Lark-Signature": headers["X-Lark-Signature"].upper()}, right),
        (body, {}, right),
        (body + b" ", headers, right),
        (body, headers, Proof(right.app_id, "another key", right.token)),
        (body, headers, Proof(right.app_id, right.encrypt_key, "another token")),
    ]
    for each, sent, proof in bad:
        answer = read_request(request(each, sent), BOT, proof)
        assert isinstance(answer, Answer)
        assert (answer.status, answer.body) == (403, UNPROVEN)


@pytest.mark.parametrize("token", ["\ud800", "verify-token-1\udfff", "\0"])
def test_a_token_of_odd_characters_proves_nothing(token: str) -> None:
    header = message_event()["header"] | {"token": token}
    for value in (
        message_event() | {"header": header},
        old({}) | {"token": token},
        {"type": "url_verification", "challenge": "x", "token": token},
    ):
        answer = read(value)
        assert isinstance(answer, Answer)
        assert (answer.status, answer.body) == (403, UNPROVEN)


def test_with_a_key_alone_the_signature_is_enough() -> None:
    row = REQUESTS["v2-encrypted-signed"]
    proof = Proof("cli_9f5343c580712544", row["encrypt_key"], "")
    assert isinstance(
        read_request(request(base64.b64decode(row["body_base64"]), row["headers"]), BOT, proof), Reading
    )
    check = REQUESTS["url-verification-encrypted"]
    assert read_request(request(base64.b64decode(check["body_base64"])), BOT, proof) == Answer(
        200, b'{"challenge": "ajls384kdjx98XX"}'
    )


@pytest.mark.parametrize(
    "body", [b"", b"[]", b"null", b'"x"', b"{", b"\xff\xfe", b"[" * 100_000, b'{"a":' * 100_000, b"1" * 5000]
)
def test_what_is_no_json_object_is_the_senders_fault(body: bytes) -> None:
    answer = read(body)
    assert isinstance(answer, Answer)
    assert answer.status == 400


@given(
    st.recursive(
        st.none() | st.booleans() | st.integers() | st.text(st.characters(exclude_categories=()), max_size=8),
        lambda inner: (
            st.lists(inner, max_size=3)
            | st.dictionaries(
                st.sampled_from(
                    ["schema", "header", "event", "message", "sender", "type", "action", "token", "encrypt"]
                ),
                inner,
                max_size=4,
            )
        ),
        max_leaves=12,
    )
)
def test_no_json_at_all_makes_it_fail(value: Any) -> None:
    answer = read(value)
    assert isinstance(answer, Answer)
    assert answer.status in (400, 403)


@given(
    st.dictionaries(
        st.sampled_from(["sender", "message", "x"]), st.none() | st.integers() | st.just({}), max_size=3
    )
)
def test_no_event_of_the_platforms_own_makes_it_fail(event: dict[str, Any]) -> None:
    assert isinstance(item(message_event() | {"event": event}), Unreadable)


def test_only_a_post_to_the_address_itself_is_an_event() -> None:
    wrong = read_request(request(b"{}", method="GET"), BOT, TOKEN_ONLY)
    assert isinstance(wrong, Answer)
    assert (wrong.status, wrong.headers) == (405, {"Allow": "POST"})
    lost = read_request(request(b"{}", path="/replies"), BOT, TOKEN_ONLY)
    assert isinstance(lost, Answer)
    assert lost.status == 404


def test_a_press_on_a_button_is_acknowledged_with_an_empty_object() -> None:
    reading = read(message_event(event_type="card.action.trigger"))
    assert isinstance(reading, Reading)
    assert (reading.items, acknowledge(reading, [Claimed.IGNORED]).body) == ((Ignored("event"),), b"{}")


@pytest.mark.parametrize("key", ["", "an encrypt key"])
def test_a_press_on_an_old_card_is_acknowledged_when_the_token_signed_it(key: str) -> None:
    (row,) = VECTORS["legacy_card"]
    body = base64.b64decode(row["body_base64"])
    headers = {
        "X-Lark-Request-Timestamp": row["timestamp"],
        "X-Lark-Request-Nonce": row["nonce"],
        "X-Lark-Signature": row["signature"],
    }
    reading = read_request(request(body, headers), BOT, Proof("cli_app", key, row["verification_token"]))
    assert isinstance(reading, Reading)
    assert acknowledge(reading, [Claimed.IGNORED]).body == b"{}"
    for token in ("another token", ""):
        refused = read_request(request(body, headers), BOT, Proof("cli_app", key, token))
        assert isinstance(refused, Answer)
        assert refused.body == UNPROVEN


def test_a_press_on_a_button_of_ours_is_an_item_and_told_by_a_toast() -> None:
    action = {"value": {"choice": "c", "to": "p2p:oc_1"}}
    press = {
        "operator": {"open_id": "ou_1"},
        "action": action,
        "context": {"open_message_id": "om_1", "open_chat_id": "oc_1"},
    }
    event = message_event(event_type="card.action.trigger")
    reading = read({**event, "event": press})
    assert isinstance(reading, Reading)
    (item,) = reading.items
    assert isinstance(item, Inbound)
    assert (item.pressed, item.text, item.sender) == ("c", "", "ou_1")
    assert json.loads(acknowledge(reading, [Claimed.ACCEPTED]).body)["toast"]["type"] == "info"
    assert json.loads(acknowledge(reading, [Claimed.IGNORED]).body)["toast"]["type"] == "warning"


def old(event: dict[str, Any]) -> dict[str, Any]:
    fields = {"type": "message", "open_id": "ou_1", "open_message_id": "om_1", "chat_type": "private"}
    return {
        "uuid": "u",
        "ts": "x",
        "token": "verify-token-1",
        "type": "event_callback",
        "event": fields | event,
    }


def test_old_messages_follow_the_same_rules() -> None:
    assert item(old({"open_id": "ou_bot"})) == Ignored("own", "om_1")
    assert item(old({"chat_type": "group", "open_chat_id": "oc_1"})) == Ignored("not_mentioned", "om_1")
    assert item(old({"open_id": ""})) == Unreadable("a message event names no sender", "om_1")
    mentioned = {"chat_type": "group", "is_mention": True}
    assert item(old(mentioned)) == Unreadable("a message event names no chat", "om_1")
    group = item(
        old(
            mentioned
            | {
                "open_chat_id": "oc_1",
                "msg_type": "text",
                "text": "<at>Bot</at> hi",
                "text_without_at_bot": " hi",
            }
        )
    )
    assert isinstance(group, Inbound)
    assert (group.to, group.text, group.sent_at, group.stamp) == ("group:oc_1", "hi", None, "")
    odd = item(old({"text": "hi", "msg_type": "text", "is_mention": "maybe"}))
    assert isinstance(odd, Inbound)
    assert odd.text == "hi"
    image = item(old({"msg_type": "image", "image_key": "img_1"}))
    assert isinstance(image, Inbound)
    assert image.files[0].key == '["om_1", "img_1", "image"]'
    bundle = item(old({"msg_type": "merge_forward"}))
    assert isinstance(bundle, Inbound)
    assert (bundle.text, Link.decode(bundle.reference, "om_1")) == ("", Link(own=True))
