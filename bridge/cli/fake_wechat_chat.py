"""What a follower of the fake WeChat sees, and how the platform's attempts went."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import TYPE_CHECKING

from bridge.cli.common import nearer, visible
from bridge.cli.fake_platforms import WECHAT_MP
from bridge.cli.fake_play import save
from bridge.cli.fake_screen import Screen
from bridge.media.sizes import shown_size

if TYPE_CHECKING:
    from bridge.channel.testing.fakes.wechat_mp import Attempt, FakeWechatMp, Push, Shown

_OWNER = WECHAT_MP.table["owner"]
_MOST_TOLD = 200


class Chat:
    """Shows each message and each attempt once."""

    def __init__(self, fake: FakeWechatMp, folder: Path, screen: Screen) -> None:
        self._fake = fake
        self._folder = folder
        self._screen = screen
        self._shown = 0
        self._attempts: dict[int, int] = {}  # how many were told of each push, by its place
        self._turn = asyncio.Lock()

    async def follow(self) -> None:
        """Show them as they come; never ends."""
        while True:
            await self._fake.wait_until(self._is_behind)
            await self.rest()

    async def rest(self) -> None:
        """Show what was not shown yet."""
        async with self._turn:
            for place, push in enumerate(self._fake.pusher.pushes):
                for number in range(self._attempts.get(place, 0), len(push.attempts)):
                    self._attempts[place] = number + 1
                    self._tell(push, number)
            while self._shown < len(self._fake.world.shown):
                self._shown += 1
                await self._show(self._fake.world.shown[self._shown - 1])

    def _is_behind(self) -> bool:
        told, pushes = self._attempts, self._fake.pusher.pushes
        behind = any(told.get(place, 0) < len(push.attempts) for place, push in enumerate(pushes))
        return behind or self._shown < len(self._fake.world.shown)

    def _tell(self, push: Push, number: int) -> None:
        from bridge.channel.testing.fakes.wechat_mp.push import ATTEMPTS

        attempt = push.attempts[number]
        if reason := _trouble(attempt, self._fake.pusher.to):
            then = "" if attempt.is_over else f"; attempt {number + 1} of {ATTEMPTS}"
            self._screen.note(f"({reason}{then})")

    async def _show(self, shown: Shown) -> None:
        if shown.by == "notice":
            self._screen.row("WeChat", shown.text)
            return
        place = "" if shown.to == _OWNER else f"(to {shown.to.removeprefix('oFake_')}) "
        if shown.media is None:
            self._screen.row("bot", place + shown.text)
            return
        media = shown.media
        name = f"{shown.text}.mp4" if shown.kind == "video" and shown.text else media.name
        path = await asyncio.to_thread(save, media.data, name, self._folder)
        self._screen.row("bot", f"{place}[{shown.kind}] {nearer(path)} ({shown_size(len(media.data))})")


def _trouble(attempt: Attempt, to: str) -> str:
    """What went wrong with an attempt, "" for nothing."""
    match str(attempt.outcome):
        case "cut":
            return "no answer in 5 s: the platform hangs up"
        case "unreached":
            return f"nobody answers at {to}: is the daemon running?"
        case "refused":
            return f"refused with status {attempt.status}: {visible(attempt.told[:_MOST_TOLD])}"
        case "malformed":
            return f"the answer is malformed: {visible(attempt.told[:_MOST_TOLD])}"
    return ""
