import asyncio
import io
from pathlib import Path

import pytest

from bridge.channel.testing.clock import until
from bridge.channel.testing.fakes.wechat_mp import OWNER, Attempt, By, FakeWechatMp, Outcome, Push, Shown
from bridge.cli.fake_screen import Screen
from bridge.cli.fake_wechat_chat import Chat


class Stage:
    def __init__(self, folder: Path) -> None:
        self.fake = FakeWechatMp(to="http://127.0.0.1:1/x")
        self.out = io.StringIO()
        self.chat = Chat(self.fake, folder, Screen(self.out, False, ""))

    async def shown(self, *shown: Shown) -> list[str]:
        self.fake.world.shown += shown
        await self.chat.rest()
        return self.out.getvalue().splitlines()

    async def told(self, *attempts: Attempt) -> list[str]:
        push = Push("1", OWNER, {})
        self.fake.pusher.pushes.append(push)
        for attempt in attempts:
            push.attempts.append(attempt)
            await self.chat.rest()
        return self.out.getvalue().splitlines()


@pytest.fixture
def stage(tmp_path: Path) -> Stage:
    return Stage(tmp_path)


async def test_texts_are_shown_with_whom_they_are_for(stage: Stage) -> None:
    lines = await stage.shown(
        Shown(OWNER, By.REPLY, "text", "hi"),
        Shown("oFake_bob", By.SERVICE, "text", "ho"),
        Shown(OWNER, By.NOTICE, "text", "out of order"),
    )
    assert lines == ["bot      hi", "bot      (to bob) ho", "WeChat   out of order"]


async def test_files_are_kept_under_harmless_names(stage: Stage, tmp_path: Path) -> None:
    world = stage.fake.world
    await stage.shown(
        Shown(OWNER, By.REPLY, "image", media=world.add_media("image", "a.png", "image/png", b"1")),
        Shown(
            OWNER,
            By.REPLY,
            "video",
            "../标题",
            media=world.add_media("video", "video.mp4", "video/mp4", b"22"),
        ),
        Shown(OWNER, By.REPLY, "video", media=world.add_media("video", "video.mp4", "video/mp4", b"333")),
    )
    assert sorted(path.name for path in tmp_path.iterdir()) == ["a.png", "video.mp4", "标题.mp4"]
    assert "[video]" in stage.out.getvalue()
    assert "(3 bytes)" in stage.out.getvalue()


async def test_what_went_wrong_with_each_attempt_is_told_once(stage: Stage) -> None:
    lines = await stage.told(
        Attempt(Outcome.UNREACHED),
        Attempt(Outcome.REFUSED, 503, "no\x1b[2J"),
        Attempt(Outcome.CUT),
    )
    assert lines == [
        "(nobody answers at http://127.0.0.1:1/x: is the daemon running?; attempt 1 of 3)",
        "(refused with status 503: no\N{REPLACEMENT CHARACTER}[2J; attempt 2 of 3)",
        "(no answer in 5 s: the platform hangs up; attempt 3 of 3)",
    ]
    await stage.chat.rest()
    assert stage.out.getvalue().splitlines() == lines


async def test_what_ended_well_is_not_told_and_what_is_malformed_is(stage: Stage) -> None:
    assert await stage.told(Attempt(Outcome.SILENT, 200), Attempt(Outcome.REPLY, 200)) == []
    assert await stage.told(Attempt(Outcome.MALFORMED, 200, "it is no xml")) == [
        "(the answer is malformed: it is no xml)"
    ]


async def test_it_follows_what_comes(stage: Stage) -> None:
    async with stage.fake, asyncio.TaskGroup() as tasks:
        following = tasks.create_task(stage.chat.follow())
        stage.fake.world.shown.append(Shown(OWNER, By.REPLY, "text", "one"))
        await stage.fake.changed()
        await until(lambda: "one" in stage.out.getvalue())
        stage.fake.pusher.pushes.append(Push("1", OWNER, {}, [Attempt(Outcome.CUT)]))
        await stage.fake.changed()
        await until(lambda: "hangs up" in stage.out.getvalue())
        following.cancel()
