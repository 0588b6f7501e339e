import json
from typing import Any

import pytest

from bridge.channel import (
    ChannelError,
    Claimed,
    Edited,
    FetchesFiles,
    FileKind,
    Identity,
    Ignored,
    Inbound,
    Item,
    Probes,
    Pushed,
    Reading,
    Recalled,
    RemoteFile,
    ResolvesReferences,
    Sends,
    SendsFiles,
    UnreachableError,
)
from bridge.channel.http import TooLargeError
from bridge.channel.testing.clock import START, FakeClock
from bridge.channel.testing.fakes.feishu import BOT, STRANGER, FakeFeishu, FakeFile, Note, Push, Refusal
from bridge.channel.testing.fakes.feishu.events import envelope
from channels.feishu import Feishu
from tests.channels.feishu.platform import adapter
from tests.channels.feishu.support import request

BYTES = b"\x89PNG\r\n\x1a\n" + bytes(5000)


async def read(fake: FakeFeishu, feishu: Feishu, **fields: Any) -> Inbound:
    """What the adapter makes of what somebody wrote, sealed and signed by the fake."""
    return as_read(fake, feishu, await fake.say(**fields))


def as_read(fake: FakeFeishu, feishu: Feishu, push: Push) -> Inbound:
    item = item_of(fake, feishu, push)
    assert isinstance(item, Inbound), item
    return item


def item_of(fake: FakeFeishu, feishu: Feishu, push: Push) -> Item:
    headers, body = fake.pusher.request(push.event)
    reading = feishu.read(request(body, headers), Identity(BOT))
    assert isinstance(reading, Reading)
    (item,) = reading.items
    return item


async def fetched(
    feishu: Feishu, file: RemoteFile, max_bytes: int = 1 << 20
) -> tuple[str, str, int | None, bytes]:
    async with feishu.fetch(file, max_bytes) as incoming:
        data = b"".join([chunk async for chunk in incoming.chunks])
        return incoming.name, incoming.mime, incoming.size, data


async def test_it_has_the_abilities_that_the_platform_allows() -> None:
    async with FakeFeishu() as fake, adapter(fake) as feishu:
        for ability in (Pushed, Probes, Sends, SendsFiles, FetchesFiles, ResolvesReferences):
            assert isinstance(feishu, ability)


async def test_the_probe_tells_who_the_bot_is_and_what_time_it_is_there() -> None:
    clock = FakeClock()
    async with FakeFeishu(clock=clock) as fake, adapter(fake) as feishu:
        assert await feishu.probe() == Identity(BOT, "Turnbridge", START)


async def test_case_3_the_platforms_clock_is_its_own_however_wrong_ours_is() -> None:
    clock = FakeClock()
    clock.jump(-600)
    async with FakeFeishu(clock=clock) as fake, adapter(fake) as feishu:
        identity = await feishu.probe()
        sent = (await read(fake, feishu, text="hi")).sent_at
        assert identity.platform_time is not None
        assert sent is not None
        assert abs((identity.platform_time - sent).total_seconds()) < 2


@pytest.mark.parametrize("bot", [None, {}, {"open_id": ""}, []])
async def test_an_app_without_a_bot_says_what_to_do(bot: Any) -> None:
    async with FakeFeishu() as fake, adapter(fake) as feishu:
        fake.next(Refusal(0, 200, fields={"bot": bot}), at="info")
        with pytest.raises(ChannelError, match="switch its bot on"):
            await feishu.probe()
        fake.next(Refusal(99991672, text="[bot:basic]"), at="info")
        with pytest.raises(ChannelError, match="permission"):
            await feishu.probe()


async def test_what_people_write_is_read_as_the_platform_sends_it() -> None:
    async with FakeFeishu(delays=()) as fake, adapter(fake) as feishu:
        direct = await read(fake, feishu, text="hi")
        assert (direct.text, direct.group, direct.sender) == ("hi", False, "ou_fake_owner")
        group = await read(fake, feishu, text="hi", group=True, sender=STRANGER)
        assert (group.text, group.group, group.sender, group.chat) == ("hi", True, STRANGER, "oc_fake_group")


async def test_the_acknowledgement_waits_for_the_claims_alone() -> None:
    async with FakeFeishu() as fake, adapter(fake) as feishu:
        for result in Claimed:
            assert feishu.answer(Reading((Ignored("event"),)), [result]).status == 200


@pytest.mark.parametrize(
    ("name", "mime", "kind"),
    [
        ("图.png", "image/png", FileKind.IMAGE),
        ("表.csv", "text/csv", FileKind.FILE),
        ("a.json", "application/json", FileKind.FILE),
    ],
)
async def test_a_file_is_fetched_with_its_name_type_and_size(name: str, mime: str, kind: FileKind) -> None:
    async with FakeFeishu(delays=()) as fake, adapter(fake) as feishu:
        data = b'{"code": 1, "msg": "a file that looks like a refusal"}' if "json" in mime else BYTES
        (file,) = (await read(fake, feishu, files=[FakeFile(name, mime, data)])).files
        assert file.kind == kind
        assert await fetched(feishu, file) == (name, mime, len(data), data)


async def test_words_and_pictures_come_together_in_a_post() -> None:
    async with FakeFeishu(delays=()) as fake, adapter(fake) as feishu:
        found = await read(
            fake, feishu, text="look", group=True, files=[FakeFile("a.png", "image/png", BYTES)]
        )
        assert found.text == "look"
        assert (await fetched(feishu, found.files[0]))[3] == BYTES


async def test_a_file_over_the_limit_is_cut_off() -> None:
    async with FakeFeishu(delays=()) as fake, adapter(fake) as feishu:
        (file,) = (await read(fake, feishu, files=[FakeFile("a.png", "image/png", BYTES)])).files
        with pytest.raises(TooLargeError):
            await fetched(feishu, file, 1000)


@pytest.mark.parametrize(
    ("code", "reason"),
    [
        (234003, "not in this message"),
        (234004, "not in this chat"),
        (234009, "other organisations"),
        (234038, "forbids downloads"),
        (234040, "not visible"),
        (234043, "cannot be had"),
        (230110, "deleted"),
    ],
)
@pytest.mark.parametrize("status", [200, 400])
async def test_a_refused_download_says_why_also_under_status_200(code: int, reason: str, status: int) -> None:
    async with FakeFeishu(delays=()) as fake, adapter(fake) as feishu:
        (file,) = (await read(fake, feishu, files=[FakeFile("a.png", "image/png", BYTES)])).files
        fake.next(Refusal(code, status), at="download")
        with pytest.raises(ChannelError, match=reason):
            await fetched(feishu, file)


async def test_a_file_over_what_the_platform_gives_out_is_too_large() -> None:
    async with FakeFeishu(delays=()) as fake, adapter(fake) as feishu:
        (file,) = (await read(fake, feishu, files=[FakeFile("a.png", "image/png", BYTES)])).files
        fake.next(Refusal(234037), at="download")
        with pytest.raises(TooLargeError, match="over 100 MB"):
            await fetched(feishu, file)


async def test_passing_faults_of_a_download_are_told_as_such() -> None:
    async with FakeFeishu(delays=()) as fake, adapter(fake) as feishu:
        (file,) = (await read(fake, feishu, files=[FakeFile("a.png", "image/png", BYTES)])).files
        for refusal in (Refusal(234019), Refusal(234042), Refusal(7, 500)):
            fake.next(refusal, at="download")
            with pytest.raises(UnreachableError):
                await fetched(feishu, file)
        fake.next(Refusal(0, 200), at="download")
        with pytest.raises(ChannelError, match="no file came"):
            await fetched(feishu, file)


@pytest.mark.parametrize("key", ["", "x", "[]", "7", '["a", "b"]'])
async def test_a_key_of_another_channel_is_refused(key: str) -> None:
    async with FakeFeishu() as fake, adapter(fake) as feishu:
        with pytest.raises(ChannelError, match="not one of this channel"):
            await fetched(feishu, RemoteFile(key, FileKind.FILE))
        assert fake.requests == []


async def test_a_quote_is_looked_up() -> None:
    async with FakeFeishu(delays=()) as fake, adapter(fake) as feishu:
        first = await fake.say("the question")
        found = await read(fake, feishu, text="and?", parent=first.message_id)
        context = await feishu.resolve(found.message_id, found.reference)
        assert context.text == "[In reply to ou_fake_owner: the question]"


async def test_case_12_a_forwarded_bundle_is_fetched_with_its_files() -> None:
    async with FakeFeishu(delays=()) as fake, adapter(fake) as feishu:
        picture = Note(sender=STRANGER, files=(FakeFile("a.png", "image/png", BYTES),))
        said = await fake.forward(Note("from a colleague", sender=STRANGER), [picture])
        found = as_read(fake, feishu, said)
        context = await feishu.resolve(found.message_id, found.reference)
        assert [line.split(" ")[-1] for line in context.text.split("\n")] == [
            "messages:]",
            "colleague",
            "messages]",
            "[Image]",
        ]
        assert (await fetched(feishu, context.files[0]))[3] == BYTES


async def test_case_14_a_message_that_is_taken_back_or_edited_is_told_as_such() -> None:
    async with FakeFeishu(delays=()) as fake, adapter(fake) as feishu:
        said = await fake.say("delete everything", group=True)
        edited = item_of(fake, feishu, await fake.edit(said.message_id, "list everything"))
        assert isinstance(edited, Edited)
        assert (edited.message.message_id, edited.message.text) == (said.message_id, "list everything")
        recalled = item_of(fake, feishu, await fake.recall(said.message_id))
        assert recalled == Recalled(said.message_id, chat="oc_fake_group")


async def test_case_17_events_that_nobody_asked_for_are_ignored_and_the_next_message_is_read() -> None:
    async with FakeFeishu(delays=()) as fake, adapter(fake) as feishu:
        for kind in ("im.chat.member.bot.added_v1", "im.message.message_read_v1"):
            event = envelope(kind, {}, "ev", fake.app_id, fake.token, 0)
            assert item_of(fake, feishu, Push("", event)) == Ignored("event")
        assert (await read(fake, feishu, text="hi")).text == "hi"


async def test_case_48_who_does_not_mention_the_bot_costs_no_request() -> None:
    async with FakeFeishu(delays=()) as fake, adapter(fake) as feishu:
        picture = FakeFile("a.png", "image/png", BYTES)
        for fields in ({"text": "@_all hi"}, {"text": "`@Turnbridge` hi"}, {"files": [picture]}):
            said = await fake.say(group=True, mention=False, **fields)
            assert item_of(fake, feishu, said) == Ignored("not_mentioned", said.message_id)
        other = await fake.say("hi", sender="ou_other_bot", sender_type="app", files=[picture])
        assert item_of(fake, feishu, other) == Ignored("bot", other.message_id)
        assert fake.requests == []


@pytest.mark.parametrize(
    "name", ["../../escape.txt", "a/../../b", "C:\\x", "..%2f..", "e\u0301.txt", "\u00e9.txt"]
)
async def test_case_75_a_name_is_handed_on_as_it_is_and_no_address_is_made_of_it(name: str) -> None:
    async with FakeFeishu(delays=()) as fake, adapter(fake) as feishu:
        (file,) = (await read(fake, feishu, files=[FakeFile(name, "text/plain", b"x")])).files
        assert file.name == name
        assert (await fetched(feishu, file))[0] == name
        (message_id, key, _) = json.loads(file.key)
        assert fake.requests[-1] == f"GET /open-apis/im/v1/messages/{message_id}/resources/{key}"


async def test_case_51_a_redirect_is_not_followed_with_the_token() -> None:
    async with FakeFeishu(delays=()) as fake, adapter(fake) as feishu:
        (file,) = (await read(fake, feishu, files=[FakeFile("a.png", "image/png", BYTES)])).files
        before = len(fake.requests)
        fake.next(Refusal(0, 302, headers={"Location": f"{fake.base}/elsewhere"}), at="download")
        with pytest.raises(ChannelError):
            await fetched(feishu, file)
        assert [each for each in fake.requests[before:] if "elsewhere" in each] == []


async def test_no_error_holds_a_secret_or_a_token() -> None:
    async with FakeFeishu() as fake, adapter(fake) as feishu:
        await feishu.probe()
        for code in (99991662, 99991672, 7):
            fake.next(Refusal(code, text=f"{fake.app_secret} t-g1"), at="info")
            with pytest.raises(ChannelError) as caught:
                await feishu.probe()
            assert fake.app_secret not in str(caught.value)
            assert "t-g1" not in str(caught.value)
        assert json.dumps(str(vars(feishu))).count(fake.app_secret) == 0
