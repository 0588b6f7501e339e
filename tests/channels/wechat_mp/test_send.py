from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import pytest

from bridge.channel import (
    ChannelError,
    CredentialsError,
    Delivered,
    OutcomeUnknownError,
    Refused,
    UnreachableError,
)
from bridge.channel.testing.clock import FakeClock
from bridge.channel.testing.fakes.wechat_mp import OWNER, By, FakeWechatMp, Fault, Refusal
from channels.wechat_mp import OfficialAccountWithService
from tests.channels.wechat_mp.support import at, client, outfile, part


@asynccontextmanager
async def stage() -> AsyncIterator[tuple[FakeWechatMp, OfficialAccountWithService, FakeClock]]:
    """An account whose owner has just written."""
    clock = FakeClock()
    async with FakeWechatMp(clock=clock) as fake, client(clock) as http:
        fake.world.follower(OWNER).may_be_sent(fake.world.after_writing, clock.monotonic())
        adapter = at(fake, http)
        assert isinstance(adapter, OfficialAccountWithService)
        yield fake, adapter, clock


def shown(fake: FakeWechatMp) -> list[tuple[str, str, str]]:
    assert all(each.by is By.SERVICE for each in fake.sent)
    return [(each.to, each.kind, each.text) for each in fake.sent]


async def test_a_text_is_shown_as_it_is() -> None:
    async with stage() as (fake, adapter, _):
        assert await adapter.send(part("你好 😀 \\u4f60 <b>")) == Delivered()
        assert shown(fake) == [(OWNER, "text", "你好 😀 \\u4f60 <b>")]


async def test_files_are_shown_in_their_kinds_and_videos_have_a_cover(tmp_path: Path) -> None:
    async with stage() as (fake, adapter, _):
        for name, mime, data in (
            ("a.png", "image/png", b"\x89PNG\r\n\x1a\n"),
            ("a.mp3", "audio/mpeg", b"ID3"),
            ("日落.mp4", "video/mp4", b"....ftyp"),
        ):
            (tmp_path / name).write_bytes(data)
            assert await adapter.send_file(outfile(tmp_path / name, mime=mime)) == Delivered()
        assert shown(fake) == [(OWNER, "image", ""), (OWNER, "voice", ""), (OWNER, "video", "日落")]


async def test_a_link_keeps_its_file(tmp_path: Path) -> None:
    (tmp_path / "a.txt").write_text("x")
    async with stage() as (fake, adapter, _):
        assert await adapter.send_file(outfile(tmp_path / "a.txt")) == Delivered(
            keep_file_seconds=48 * 3600.0
        )
        ((_, kind, text),) = shown(fake)
        assert (kind, text.startswith("a.txt (1 bytes)\nhttps://")) == ("text", True)


@pytest.mark.parametrize("fault", [Fault.DROP, Fault.EMPTY, Refusal(40005)])
async def test_a_cover_that_cannot_be_put_there_is_for_later(tmp_path: Path, fault: Fault | Refusal) -> None:
    (tmp_path / "a.mp4").write_bytes(b"....ftyp")
    async with stage() as (fake, adapter, _):
        fake.next(None, fault, at="upload")
        with pytest.raises(UnreachableError):
            await adapter.send_file(outfile(tmp_path / "a.mp4", mime="video/mp4"))
        assert fake.sent == []


async def test_five_messages_follow_one_that_was_written_and_the_sixth_is_held() -> None:
    async with stage() as (fake, adapter, _):
        outcomes = [await adapter.send(part(str(n))) for n in range(6)]
        assert outcomes[:5] == [Delivered()] * 5
        assert isinstance(sixth := outcomes[5], Refused)
        assert (sixth.code, "too many messages" in sixth.reason) == ("45047", True)
        assert len(fake.sent) == 5


async def test_after_48_hours_a_message_is_held() -> None:
    async with stage() as (_, adapter, clock):
        await clock.advance(48 * 3600 + 1)
        outcome = await adapter.send(part())
        assert isinstance(outcome, Refused)
        assert (outcome.code, "rid" in outcome.reason) == ("45015", True)


async def test_without_the_permission_a_message_is_held() -> None:
    async with stage() as (fake, adapter, _):
        fake.interface.service = False
        outcome = await adapter.send(part())
        assert isinstance(outcome, Refused)
        assert (outcome.code, "verified account" in outcome.reason) == ("48001", True)


@pytest.mark.parametrize("code", [40003, 40007, 43004, 45002, 12345])
async def test_other_refusals_are_final_and_tell_code_and_number_alone(code: int) -> None:
    async with stage() as (fake, adapter, _):
        fake.next(Refusal(code, "text 'private' hint: x"))
        outcome = await adapter.send(part("private"))
        assert isinstance(outcome, Refused)
        assert outcome.code == str(code)
        assert "private" not in outcome.reason
        assert "rid 6" in outcome.reason
        assert fake.sent == []


@pytest.mark.parametrize(("code", "wait_seconds"), [(-1, 2), (45011, 60), (45009, 46_555)])
async def test_what_is_not_now_is_for_later(code: int, wait_seconds: float) -> None:
    async with stage() as (fake, adapter, _):
        fake.next(Refusal(code))
        with pytest.raises(UnreachableError) as later:
            await adapter.send(part())
        assert 0 <= wait_seconds - later.value.retry_after_seconds < 1


@pytest.mark.parametrize("code", [40013, 40125, 40164])
async def test_a_refused_account_is_told_and_what_to_do(code: int) -> None:
    async with stage() as (fake, adapter, _):
        fake.next(Refusal(code))
        with pytest.raises(CredentialsError, match="turnbridge reload"):
            await adapter.send(part())


@pytest.mark.parametrize("fault", [Fault.DROP_AFTER, Fault.GARBAGE, Fault.EMPTY, Fault.BROKEN])
async def test_case_32_an_answer_that_is_lost_is_unknown_and_nothing_else_is_sent(fault: Fault) -> None:
    async with stage() as (fake, adapter, _):
        fake.next(fault)
        with pytest.raises(OutcomeUnknownError):
            await adapter.send(part())
        assert fake.requests.count("POST /cgi-bin/message/custom/send") == 1


async def test_typing_is_shown_or_fails_harmlessly() -> None:
    async with stage() as (fake, adapter, _):
        await adapter.typing(OWNER, "")
        await adapter.typing_over(OWNER, "")
        assert fake.world.typing == [(OWNER, "Typing"), (OWNER, "CancelTyping")]
        assert adapter.typing_seconds == 15.0
        with pytest.raises(ChannelError):
            await adapter.typing("oNobody", "")


async def test_what_cannot_be_shown_is_refused_and_not_sent() -> None:
    async with stage() as (fake, adapter, _):
        assert isinstance(await adapter.send(part("")), Refused)
        assert shown(fake) == []
