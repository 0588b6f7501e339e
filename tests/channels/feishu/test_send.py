import json
import re
from dataclasses import replace

import pytest

from bridge.channel import (
    ChannelError,
    Choice,
    CredentialsError,
    Delivered,
    OutboundPart,
    OutcomeUnknownError,
    Refused,
    Unit,
    UnreachableError,
    Withdrawn,
)
from bridge.channel.testing.clock import FakeClock
from bridge.channel.testing.fakes.feishu import OWNER, FakeFeishu, Fault, Refusal, throttled
from bridge.channel.testing.fakes.feishu.rules import notified
from bridge.relay.contact import proves_contact
from channels.feishu import SPEC
from channels.feishu.send import Target, forms_of, target, text_forms
from tests.channels.feishu.platform import adapter, part

CALL = re.compile(
    r"[<＜]\s*/?[aａ][tｔ][\s>/]|&lt;at|&#60;at|[@＠](?:all|everyone|所有人|_all|_user_)", re.IGNORECASE
)


async def test_a_text_goes_to_a_person_or_a_chat_by_its_id() -> None:
    async with FakeFeishu() as fake, adapter(fake) as feishu:
        direct = fake.world.direct(OWNER)
        group = fake.world.group("oc_group")
        for n, to in enumerate((OWNER, direct.chat_id, f"p2p:{direct.chat_id}", f"group:{group.chat_id}")):
            outcome = await feishu.send(part("你好 😀\n", to=to, client_id=f"{n:032x}"))
            assert outcome == Delivered(fake.sent[n].message_id)
        assert [each.chat_id for each in fake.sent] == [direct.chat_id] * 3 + ["oc_group"]
        assert {each.text for each in fake.sent} == {"你好 😀\n"}
        assert [each.uuid for each in fake.sent] == [f"{n:032x}" for n in range(4)]


async def test_an_answer_is_a_reply_to_its_message() -> None:
    async with FakeFeishu(delays=()) as fake, adapter(fake) as feishu:
        said = await fake.say("hi")
        await feishu.send(part(to="p2p:oc_direct_fake_owner", reply_to=said.message_id))
        (sent,) = fake.sent
        assert (sent.reply_to, sent.in_thread) == (said.message_id, False)


async def test_an_answer_in_a_topic_stays_in_it_and_where_it_may_not_it_is_a_plain_reply() -> None:
    async with FakeFeishu(delays=()) as fake, adapter(fake) as feishu:
        said = await fake.say("hi", group=True)
        await feishu.send(part(to="group:oc_fake_group", reply_to=f"{said.message_id};thread"))
        fake.world.group("oc_fake_group").takes_threads = False
        await feishu.send(part(to="group:oc_fake_group", reply_to=f"{said.message_id};thread", client_id="2"))
        assert [(each.reply_to, each.in_thread, each.uuid[-1]) for each in fake.sent] == [
            (said.message_id, True, "f"),
            (said.message_id, False, "2"),
        ]


async def test_where_not_even_a_plain_reply_is_taken_it_is_a_message_of_its_own() -> None:
    async with FakeFeishu(delays=()) as fake, adapter(fake) as feishu:
        said = await fake.say("hi", group=True)
        fake.next(Refusal(230072))
        await feishu.send(part(to="group:oc_fake_group", reply_to=said.message_id))
        assert [(each.reply_to, each.chat_id) for each in fake.sent] == [("", "oc_fake_group")]


async def test_a_lost_answer_costs_nothing_as_the_same_uuid_sends_once() -> None:
    async with FakeFeishu() as fake, adapter(fake) as feishu:
        for fault in (Fault.DROP_AFTER, Fault.GARBAGE):
            fake.next(fault)
            with pytest.raises(OutcomeUnknownError):
                await feishu.send(part())
        assert await feishu.send(part()) == Delivered(fake.sent[0].message_id)
        assert len(fake.sent) == 1


async def test_after_an_hour_the_same_uuid_is_another_message() -> None:
    clock = FakeClock()
    async with FakeFeishu(clock=clock) as fake, adapter(fake) as feishu:
        await feishu.send(part())
        await clock.advance(SPEC.idempotent_seconds - 1)
        await feishu.send(part())
        assert len(fake.sent) == 1
        await clock.advance(2)
        await feishu.send(part())
        assert len(fake.sent) == 2


async def test_a_refusal_without_a_code_is_no_contact_with_the_platform() -> None:
    async with FakeFeishu() as fake, adapter(fake) as feishu:
        fake.next(Refusal(0, fields={"code": None}), Refusal(230022))
        anybody, platform = await feishu.send(part()), await feishu.send(part())
        assert anybody == Refused("Feishu: refused with status 400")
        assert (proves_contact(anybody), proves_contact(platform)) == (False, True)


@pytest.mark.parametrize("fault", [Fault.DROP, Fault.BROKEN, Refusal(1, status=500), Refusal(230049)])
async def test_case_32_an_unclear_outcome_is_told_as_one_and_never_sent_in_another_form(
    fault: Fault | Refusal,
) -> None:
    async with FakeFeishu() as fake, adapter(fake) as feishu:
        fake.next(fault)
        with pytest.raises(OutcomeUnknownError):
            await feishu.send(part())
        assert fake.sent == []
        assert sum(each.endswith("/messages") for each in fake.requests) == 1


@pytest.mark.parametrize("seconds", [0.5, 37, 90])
async def test_case_46_the_wait_is_what_the_rate_limiter_asks_for(seconds: float) -> None:
    async with FakeFeishu() as fake, adapter(fake) as feishu:
        fake.next(throttled(seconds))
        with pytest.raises(UnreachableError) as caught:
            await feishu.send(part())
        assert caught.value.retry_after_seconds == seconds


@pytest.mark.parametrize(
    "refusal",
    [
        Refusal(230020),
        Refusal(11232, status=200),
        Refusal(11233),
        Refusal(99991400),
        Refusal(232096),
        Refusal(5, status=503),
        Refusal(5, status=429),
        Refusal(5, status=408),
    ],
)
async def test_what_passes_is_tried_again_later(refusal: Refusal) -> None:
    async with FakeFeishu() as fake, adapter(fake) as feishu:
        fake.next(refusal)
        with pytest.raises(UnreachableError):
            await feishu.send(part())
        assert await feishu.send(part()) == Delivered(fake.sent[0].message_id)


@pytest.mark.parametrize("code", [99991661, 99991663, 99991664, 99991668, 99991671])
async def test_a_refused_token_is_dropped_and_the_next_try_has_a_new_one(code: int) -> None:
    async with FakeFeishu() as fake, adapter(fake) as feishu:
        await feishu.send(part())
        fake.next(Refusal(code))
        with pytest.raises(UnreachableError):
            await feishu.send(part())
        assert isinstance(await feishu.send(part()), Delivered)
        assert fake.interface.token_calls == 2


@pytest.mark.parametrize("code", [99991543, 99991662, 99991673])
async def test_an_app_that_is_not_accepted_any_more_parks_the_account(code: int) -> None:
    async with FakeFeishu() as fake, adapter(fake) as feishu:
        fake.next(Refusal(code))
        with pytest.raises(CredentialsError):
            await feishu.send(part())


@pytest.mark.parametrize("code", [230011, 231003])
@pytest.mark.parametrize("status", [200, 400])
async def test_case_13_an_answer_to_a_withdrawn_message_is_dropped(code: int, status: int) -> None:
    async with FakeFeishu(delays=()) as fake, adapter(fake) as feishu:
        for to, group in (("p2p:oc_direct_fake_owner", False), ("group:oc_fake_group", True)):
            said = await fake.say("hi", group=group)
            fake.next(Refusal(code, status=status))
            assert await feishu.send(part(to=to, reply_to=said.message_id)) == Withdrawn(str(code))
        assert fake.sent == []


async def test_case_13_in_a_group_it_is_posted_where_the_account_is_set_so() -> None:
    async with FakeFeishu(delays=()) as fake, adapter(fake, recalled="post") as feishu:
        said = await fake.say("hi", group=True)
        await fake.recall(said.message_id)
        await feishu.send(part(to="group:oc_fake_group", reply_to=said.message_id))
        direct = await fake.say("hi")
        await fake.recall(direct.message_id)
        outcome = await feishu.send(
            part(to="p2p:oc_direct_fake_owner", reply_to=direct.message_id, client_id="2")
        )
        assert outcome == Withdrawn("230011")
        assert [(each.chat_id, each.reply_to) for each in fake.sent] == [("oc_fake_group", "")]


@pytest.mark.parametrize("code", [230001, 230099])
async def test_case_15_what_is_refused_as_a_text_goes_as_a_plain_post_under_the_same_uuid(code: int) -> None:
    async with FakeFeishu() as fake, adapter(fake) as feishu:
        fake.next(Refusal(code))
        assert isinstance(await feishu.send(part('a\n<at user_id="all">b')), Delivered)
        (sent,) = fake.sent
        assert (sent.kind, sent.uuid, sent.mentions) == ("post", part().client_id, ())
        assert sent.text == 'a\n<\u200bat user_id="all">b'


async def test_case_43_a_form_that_is_refused_falls_back_for_its_part_alone() -> None:
    async with FakeFeishu() as fake, adapter(fake) as feishu:
        for n in range(3):
            if n == 1:
                fake.next(Refusal(230001))
            assert isinstance(await feishu.send(part(f"part {n}", client_id=f"{n:032x}")), Delivered)
        shown = [(sent.kind, sent.text, sent.uuid) for sent in fake.sent]
        assert shown == [(kind, f"part {n}", f"{n:032x}") for n, kind in enumerate(["text", "post", "text"])]


async def test_where_no_form_is_taken_it_is_refused() -> None:
    async with FakeFeishu() as fake, adapter(fake) as feishu:
        fake.next(*[Refusal(230001)] * 3)
        assert await feishu.send(part("**a**")) == Refused(
            "Feishu: the content was not accepted (code 230001)", "230001"
        )
        assert isinstance(await feishu.send(part("   ")), Delivered)  # a text may not be blank; a post may
        fake.next(Refusal(230001))
        outcome = await feishu.send(part("x" * 40_000, client_id="2"))  # too long for a post
        assert isinstance(outcome, Refused)


@pytest.mark.parametrize(
    ("refusal", "reason"),
    [
        (Refusal(230022), "a word in it is not allowed"),
        (Refusal(230028), "the organisation's data protection stopped it"),
        (Refusal(230025), "it is too long"),
        (Refusal(230013), "this person may not use the app"),
        (Refusal(232009), "the group was dissolved"),
        (Refusal(99991403, status=429), "the monthly quota of calls is used up"),
        (Refusal(4242), "refused (code 4242)"),
        (
            Refusal(
                99991672,
                text="One of these scopes is required: [im:message, im:message:send_as_bot].",
            ),
            "grant one of im:message, im:message:send_as_bot in the developer console",
        ),
        (Refusal(99991672, text="no [SECRET words] here"), "the app lacks a permission (code 99991672)"),
    ],
)
async def test_a_final_refusal_says_why_in_our_own_words(refusal: Refusal, reason: str) -> None:
    async with FakeFeishu() as fake, adapter(fake) as feishu:
        fake.next(refusal, refusal)
        outcome = await feishu.send(part())
        assert isinstance(outcome, Refused)
        assert reason in outcome.reason
        assert outcome.code == str(refusal.code)
        assert "SECRET" not in outcome.reason


async def test_an_unknown_recipient_is_refused() -> None:
    async with FakeFeishu() as fake, adapter(fake) as feishu:
        for to in ("", "somebody", "email:ou_1", "ou"):
            assert isinstance(await feishu.send(part(to=to)), Refused)
        outcome = await feishu.send(part(to="oc_nowhere"))
        assert outcome == Refused("Feishu: the bot is not in this chat: add it (code 230002)", "230002")
        assert fake.sent == []


CALLS = [
    '<at user_id="all">all</at>',
    "<AT user_id='all'>",
    "<at\nid=ou_1>",
    "<At email=x>",
    "x<at user_id=all/>",
    "`<at user_id=all>`",
    "```\n<at user_id=all></at>\n```",
    "**x** <at user_id=all>",
    "<**at** user_id=all>",
    "\\<at user_id=all>",
    "[<at user_id=all>](https://x.example)",
    "| a | b |\n|---|---|\n| <at user_id=all> | x |",
    "# <at user_id=all>",
    "＜at user_id=all＞ ＜ＡＴ id=x＞",
    "&lt;at user_id=all&gt; &#60;at id=x>",
    "@all @everyone @所有人 ＠所有人 @_all @_user_1",
]


@pytest.mark.parametrize("text", CALLS)
async def test_case_52_no_text_of_the_agent_notifies_anybody(text: str) -> None:
    async with FakeFeishu() as fake, adapter(fake) as feishu:
        await feishu.send(part(text))
        await feishu.send(part(SPEC.render(text), client_id="2"))
        for cut in range(len(text)):
            await feishu.send(part(SPEC.render(text[:cut]) or "-", client_id=f"a{cut}"))
            await feishu.send(part(SPEC.render(text[cut:]), client_id=f"b{cut}"))
        assert all(each.mentions == () for each in fake.sent)
        for form in text_forms(text):
            assert not CALL.search(form.content.replace("\\n", "\n"))


@pytest.mark.parametrize("text", [call for call in CALLS if "*" not in call and call[:1] in "<x＜&@"])
async def test_case_52_what_is_shown_reads_the_same(text: str) -> None:
    async with FakeFeishu() as fake, adapter(fake) as feishu:
        await feishu.send(part(SPEC.render(text)))
        assert fake.sent[0].text.replace("\u200b", "") == text


def test_the_fake_would_notify_somebody_were_the_mark_not_defused() -> None:
    assert notified("text", json.dumps({"text": "<AT user_id='all'>"})) == ("all",)


def test_the_longest_text_fits_into_a_request_whatever_is_in_it() -> None:
    assert SPEC.text_limit.unit == Unit.BYTES
    for piece in (
        "\\",
        '"',
        "\n",
        "\t",
        "\u2028",
        "😀",
        "a",
        "**a** ",
        "- x\n",
        "[a](https://b.c) ",
        "---\n",
        "@all ",
    ):
        text = SPEC.render(piece * (SPEC.text_limit.size // len(piece.encode())))
        for form in text_forms(text):
            body = {
                "content": form.content,
                "msg_type": form.kind,
                "uuid": "x" * 50,
                "reply_in_thread": False,
            }
            size = len(json.dumps(body, ensure_ascii=False).encode())
            assert size <= form.request_bytes
            assert size < (30_000 if form.kind == "post" else 149_000)


def test_a_rich_text_over_the_platforms_limit_goes_as_plain_text() -> None:
    assert [form.kind for form in text_forms("**a** " * 300)] == ["post", "text", "post"]
    (form,) = text_forms("**a** b\n" * 1500)
    assert (form.kind, json.loads(form.content)["text"][:4]) == ("text", "a b\n")


async def test_markdown_goes_as_rich_text_and_plain_words_as_plain_ones() -> None:
    async with FakeFeishu() as fake, adapter(fake) as feishu:
        await feishu.send(part("- **a**\n  - [b](https://c.d)\n\n```py\nx\n```"))
        await feishu.send(part("- a\n- snake_case", client_id="2"))
        assert [(sent.kind, sent.text) for sent in fake.sent] == [
            ("post", "• a\n    ◦ b (https://c.d)\nx"),
            ("text", "• a\n• snake_case"),
        ]


async def test_a_notice_of_the_bridge_is_shown_as_it_is() -> None:
    async with FakeFeishu() as fake, adapter(fake) as feishu:
        await feishu.send(part("**a**_b_.txt could not be sent", notice="failure"))
        assert (fake.sent[0].kind, fake.sent[0].text) == ("text", "**a**_b_.txt could not be sent")


@pytest.mark.parametrize("code", [230001, 230025, 230099])
async def test_case_15_rich_text_that_is_refused_goes_as_plain_text_under_the_same_uuid(code: int) -> None:
    async with FakeFeishu() as fake, adapter(fake) as feishu:
        fake.next(Refusal(code))
        assert isinstance(await feishu.send(part("**a** [b](https://c.d)")), Delivered)
        (sent,) = fake.sent
        assert (sent.kind, sent.uuid, sent.text) == ("text", part().client_id, "a b (https://c.d)")


async def test_case_16_what_was_taken_in_one_form_never_goes_in_another() -> None:
    async with FakeFeishu() as fake, adapter(fake) as feishu:
        fake.next(Refusal(230001), Fault.DROP_AFTER)
        with pytest.raises(OutcomeUnknownError):
            await feishu.send(part("**a**"))
        for _ in range(2):  # the retry meets the form that was taken, by its uuid
            assert await feishu.send(part("**a**")) == Delivered(fake.sent[0].message_id)
        assert [sent.kind for sent in fake.sent] == ["text"]


def test_targets_are_told_by_their_marks() -> None:
    assert target("p2p:oc_1", "om_1") == Target("oc_1", "chat_id", True, "om_1")
    assert target("group:oc_1", "om_1;thread") == Target("oc_1", "chat_id", False, "om_1", True)
    assert target("ou_1", "") == Target("ou_1", "open_id", True)
    assert target("on_1", "") == Target("on_1", "union_id", True)
    assert target("oc_1", "") == Target("oc_1", "chat_id", False)
    assert target("im_1", "") is None


async def test_ids_of_others_stay_one_part_of_the_address() -> None:
    async with FakeFeishu() as fake, adapter(fake) as feishu:
        assert isinstance(await feishu.send(part(reply_to="../../x?a=b#c")), Refused)
        assert fake.requests[-1] == "POST /open-apis/im/v1/messages/../../x?a=b#c/reply"


def test_a_part_with_choices_is_a_card_and_a_text_where_the_card_is_refused() -> None:
    part = OutboundPart("p2p:oc_1", "", "c" * 32, "May I?", notice="approval", choices=(Choice("v", "Yes"),))
    kinds = [form.kind for form in forms_of(part)]
    assert kinds == ["interactive", "text", "post"]
    assert [form.kind for form in forms_of(replace(part, choices=()))] == ["text", "post"]
    assert next(forms_of(replace(part, choices=(), notice="", text="**b**"))).kind == "post"


async def test_a_sent_message_is_edited_without_mentioning_anybody_and_at_most_so_often() -> None:
    async with FakeFeishu() as fake, adapter(fake) as feishu:
        sent = await feishu.send(part("working"))
        assert isinstance(sent, Delivered)
        for number in range(20):
            await feishu.edit("", sent.platform_id, f'<at user_id="all"></at> step {number}')
        message = fake.world.messages[sent.platform_id]
        assert "step 19" in message.content
        assert "<at " not in message.content
        with pytest.raises(ChannelError) as refused:
            await feishu.edit("", sent.platform_id, "once more")
        assert not isinstance(refused.value, UnreachableError | OutcomeUnknownError)
