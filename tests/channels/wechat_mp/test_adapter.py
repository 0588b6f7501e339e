from pathlib import Path

import pytest

from bridge.channel import (
    Answer,
    ChannelError,
    Claimed,
    ConfigError,
    CredentialsError,
    FetchesFiles,
    FileKind,
    FileWanted,
    Identity,
    Place,
    Probes,
    Pushed,
    Reading,
    Refused,
    RemoteFile,
    RepliesInResponse,
    Sends,
    SendsFiles,
    ServesFiles,
    ShowsTyping,
)
from bridge.channel.testing.clock import FakeClock
from bridge.channel.testing.fakes.wechat_mp import (
    ACCOUNT,
    APP_ID,
    OWNER,
    FakeWechatMp,
    Refusal,
    Secrets,
    new_key,
)
from bridge.channel.testing.fakes.wechat_mp.replies import read_reply
from bridge.channel.testing.fakes.wechat_mp.seal import seal
from channels.wechat_mp import SPEC, OfficialAccount, OfficialAccountWithService, WechatMpCredentials
from channels.wechat_mp.adapter import proof
from channels.wechat_mp.messages import MediaKey
from tests.channels.wechat_mp.support import (
    at,
    client,
    credentials,
    message,
    outfile,
    part,
    request,
    settings,
)

PNG = b"\x89PNG\r\n\x1a\n"


async def test_abilities_come_by_class() -> None:
    async with FakeWechatMp() as fake, client() as http:
        served, answering = at(fake, http), at(fake, http, customer_service=False)
    both = (Pushed, RepliesInResponse, Probes, FetchesFiles, ServesFiles)
    assert all(isinstance(each, ability) for each in (served, answering) for ability in both)
    alone = (Sends, SendsFiles, ShowsTyping)
    assert all(isinstance(served, ability) for ability in alone)
    assert not any(isinstance(answering, ability) for ability in alone)
    assert (type(served), type(answering)) == (OfficialAccountWithService, OfficialAccount)
    assert (served.hold_seconds, served.repeat_seconds) == (4.5, 10.0)


async def test_a_push_is_read_acknowledged_silently_and_answered_in_its_response(tmp_path: Path) -> None:
    (tmp_path / "a.png").write_bytes(PNG)
    (tmp_path / "a.txt").write_text("x")
    clock = FakeClock()
    async with FakeWechatMp(clock=clock) as fake, client(clock) as http:
        adapter = at(fake, http, customer_service=False)
        query, body = fake.pusher.request(message())
        reading = adapter.read(request(body, query), Identity())
        assert isinstance(reading, Reading)
        for result in Claimed:
            assert adapter.answer(reading, [result]) == Answer(200, b"success", "text/plain")
        for sent, text, kind in (
            (part("hello"), "hello", "text"),
            (outfile(tmp_path / "a.png", mime="image/png"), "", "image"),
        ):
            answer = await adapter.respond(reading, sent)
            assert isinstance(answer, Answer)
            shown = read_reply(answer.body, OWNER, "", fake.account, fake.world)
            assert shown is not None
            assert (shown.text, shown.kind, answer.keep_file_seconds) == (text, kind, 0.0)
        link = await adapter.respond(reading, outfile(tmp_path / "a.txt"))
        assert isinstance(link, Answer)
        assert link.keep_file_seconds == 48 * 3600.0
        gone = await adapter.respond(reading, outfile(tmp_path / "gone"))
        assert gone == Refused("the file is gone")


async def test_links_are_served_by_the_account_that_signed_them(tmp_path: Path) -> None:
    (tmp_path / "a.txt").write_text("x")
    async with FakeWechatMp() as fake, client() as http:
        adapter = at(fake, http)
        fake.say("hi")
        await adapter.send_file(outfile(tmp_path / "a.txt"))  # type: ignore[attr-defined]  # it has service
        path = fake.sent[0].text.partition("/test")[2]
        asked = request(method="GET", path=path)
        assert adapter.file(asked) == FileWanted("a.txt")
        other = replace_secret(fake)
        stranger = SPEC.create(settings(fake), other, http, Place("wechat_mp:other"))
        assert isinstance(stranger, OfficialAccount)
        assert isinstance(stranger.file(asked), Answer)


def replace_secret(fake: FakeWechatMp) -> WechatMpCredentials:
    values = {"app_secret": "another", "token": "abc", "encoding_aes_key": fake.account.encoding_aes_key}
    return WechatMpCredentials.model_validate(values)


async def test_a_probe_proves_contact_and_learns_the_platforms_clock() -> None:
    clock = FakeClock()
    async with FakeWechatMp(clock=clock) as fake, client() as http:
        assert await at(fake, http).probe() == Identity(ACCOUNT, "", clock.now())
        assert fake.requests == ["POST /cgi-bin/stable_token", "GET /cgi-bin/getcallbackip"]


async def test_a_probe_tells_what_is_wrong() -> None:
    async with FakeWechatMp() as fake, client() as http:
        fake.next(Refusal(12345), at="info")
        with pytest.raises(ChannelError, match="12345"):
            await at(fake, http).probe()
        fake.interface.listed = False
        with pytest.raises(CredentialsError, match=r"127\.0\.0\.1: put that on the account's IP whitelist"):
            await at(fake, http).probe()


async def test_files_of_followers_are_fetched() -> None:
    async with FakeWechatMp() as fake, client() as http:
        media = fake.world.add_media("image", "a.png", "image/png", PNG)
        file = RemoteFile(MediaKey(media.media_id).write(), FileKind.IMAGE)
        async with at(fake, http).fetch(file, 100) as incoming:
            assert b"".join([chunk async for chunk in incoming.chunks]) == PNG


async def test_the_modes_decide_what_proves_a_request() -> None:
    place = Place("main")
    async with FakeWechatMp() as fake:
        known = credentials(fake)
        assert proof(settings(fake, mode="plaintext"), known, place).seal is None
        for mode in ("secure", "compat"):
            sealed = proof(settings(fake, mode=mode), known, place).seal
            assert sealed is not None
            assert sealed.open(seal(fake.account.encoding_aes_key, APP_ID, b"a")) == b"a"
        old = new_key()
        both = known.model_copy(
            update={"previous_encoding_aes_key": WechatMpCredentials.model_validate(
                {"app_secret": "s", "token": "abc", "encoding_aes_key": old}
            ).encoding_aes_key}
        )  # fmt: skip
        rotated = proof(settings(fake), both, place).seal
        assert rotated is not None
        assert rotated.open(seal(old, APP_ID, b"a")) == b"a"


async def test_a_sealed_mode_without_its_key_is_a_fault_of_the_settings() -> None:
    async with FakeWechatMp(Secrets(APP_ID, "abc", new_key(), "compat")) as fake, client() as http:
        bare = credentials(fake).model_copy(update={"encoding_aes_key": None})
        with pytest.raises(
            ConfigError, match=r"^wechat_mp:main needs the credential encoding_aes_key: mode is compat"
        ):
            SPEC.create(settings(fake), bare, http, Place("wechat_mp:main"))
        plain = SPEC.create(settings(fake, mode="plaintext"), bare, http, Place("wechat_mp:main"))
        assert isinstance(plain, OfficialAccount)
