"""Playing WeChat: what is typed is a follower's, what the account sends is shown, and so is each attempt."""

from __future__ import annotations

import asyncio
import mimetypes
from collections.abc import Awaitable, Callable
from contextlib import aclosing
from pathlib import Path
from typing import TYPE_CHECKING, TextIO

from bridge.cli.common import visible
from bridge.cli.fake_platforms import WECHAT_MP
from bridge.cli.fake_play import NEXT_STEPS, announce, introduce, path_and_text, read, take_leave
from bridge.cli.fake_screen import Screen, lines
from bridge.cli.fake_setup import Setup
from bridge.cli.fake_wechat_chat import Chat
from bridge.errors import ConfigError

if TYPE_CHECKING:
    from bridge.channel.testing.fakes.wechat_mp import FakeFile, FakeWechatMp, Push
    from bridge.clock import Clock

SETTLE_SECONDS = 1.0  # after an answer: its further parts and files follow at once
VOICE = b"#!AMR\n" + bytes([0x3C]) + bytes(31)  # one frame of silence
OWNER = str(WECHAT_MP.table["owner"])
_TAKEN = frozenset({"image", "audio", "video"})


def fake_of(setup: Setup, clock: Clock | None = None) -> FakeWechatMp:
    """The platform of an account, which may write by itself where its table says so."""
    from bridge.channel.testing.fakes.wechat_mp import FakeWechatMp, Secrets

    table, known = setup.platform.table, setup.secrets
    mode = str(table.get("mode", "secure"))
    account = Secrets(str(table["app_id"]), known["token"], known["encoding_aes_key"], mode)
    fake = FakeWechatMp(account, known["app_secret"], to=setup.to, port=setup.port, clock=clock)
    fake.interface.service = bool(table["customer_service"])
    return fake


async def play(
    setup: Setup,
    folder: Path,
    screen: Screen,
    source: TextIO,
    wait_seconds: float,
    clock: Clock | None = None,
) -> int:
    """Serve the platform until ``source`` ends. Returns 1 when a piped message had no answer in time."""
    fake = fake_of(setup, clock)
    try:
        await fake.__aenter__()
    except OSError as error:
        raise ConfigError(f"port {setup.port} cannot be used: give another with --port") from error
    try:
        if setup.home is not None:
            await asyncio.to_thread(announce, setup.home)
        introduce(setup, folder, screen)
        async with asyncio.TaskGroup() as tasks:
            chat = Chat(fake, folder, screen)
            showing = tasks.create_task(chat.follow(), name="fake/show")
            player = Player(fake, screen, wait_seconds)
            async with aclosing(lines(source, screen)) as typed:
                async for line in typed:
                    if not await player.line(line):
                        break
            showing.cancel()
        await chat.rest()
        take_leave(setup, screen)
        return 1 if player.unanswered and not screen.interactive else 0
    finally:
        await fake.__aexit__(None, None, None)


class Player:
    """Does what each line says."""

    def __init__(self, fake: FakeWechatMp, screen: Screen, wait_seconds: float) -> None:
        self._fake = fake
        self._screen = screen
        self._wait_seconds = wait_seconds
        self._last: Push | None = None
        self._commands: dict[str, Callable[[str], Awaitable[None]]] = {
            "/?": self._help,
            "/file": self._file,
            "/voice": self._voice,
            "/location": self._location,
            "/link": self._link,
            "/as": self._as,
            "/click": self._click,
            "/subscribe": self._subscribe,
            "/unsubscribe": self._unsubscribe,
            "/repeat": self._repeat,
            "/kf": self._kf,
            "/no-kf": self._no_kf,
            "/throttle": self._throttle,
            "/check": self._check,
        }
        self.unanswered = 0

    async def line(self, line: str) -> bool:
        """Whether to go on."""
        word, _, rest = line.strip().partition(" ")
        if word == "/quit":
            return False
        if (command := self._commands.get(word)) is not None:
            await command(rest.strip())
        elif word:
            await self._say(line.removeprefix("/") if word.startswith("//") else line)
        return True

    async def _help(self, _: str) -> None:
        self._screen.note(self._screen.help_text)

    # --- what a follower sends ------------------------------------------------------------------

    async def _say(self, text: str, sender: str = OWNER, who: str = "you") -> None:
        if text:
            await self._written(self._fake.say(text, sender=sender), who, text)
        else:
            self._screen.note("there is nothing to send")

    async def _as(self, rest: str) -> None:
        name, _, text = rest.partition(" ")
        await self._say(text.strip(), f"oFake_{name}", name)

    async def _file(self, rest: str) -> None:
        path, _ = await asyncio.to_thread(path_and_text, rest)
        if not path:
            self._screen.note("no file: /file PATH")
            return
        mime = mimetypes.guess_type(path)[0] or ""
        if mime.partition("/")[0] not in _TAKEN:
            self._screen.note("people send pictures, voices and videos here, no other files")
            return
        try:
            data = await asyncio.to_thread(read, path)
        except OSError as error:
            self._screen.note(f"no file: {path}: {error.strerror or 'it cannot be read'}")
            return
        await self._send(_fake_file(Path(path).name, mime, data), f"[{Path(path).name}]")

    async def _send(self, file: FakeFile, shown: str) -> None:
        await self._written(self._fake.say(file=file), "you", shown)

    async def _voice(self, words: str) -> None:
        if not words:
            await self._send(_fake_file("voice.amr", "audio/amr", VOICE), "[voice]")
            return
        media = self._fake.world.add_media("voice", "voice.amr", "audio/amr", VOICE)
        fields = {"MsgType": "voice", "MediaId": media.media_id, "Format": "amr", "Recognition": words}
        await self._written(self._fake.say(fields=fields), "you", f"[voice: {words}]")

    async def _location(self, label: str) -> None:
        fields = {"Location_X": 23.134521, "Location_Y": 113.358803, "Scale": 16, "Label": label}
        await self._written(
            self._fake.say(fields={"MsgType": "location", **fields}), "you", f"[location: {label}]"
        )

    async def _link(self, rest: str) -> None:
        title, _, address = (part.strip() for part in rest.partition("|"))
        fields = {"MsgType": "link", "Title": title, "Description": "", "Url": address}
        await self._written(self._fake.say(fields=fields), "you", f"[link: {rest}]")

    async def _click(self, key: str) -> None:
        if key:
            await self._written(self._fake.happen("CLICK", EventKey=key), "you", f"[menu: {key}]")
        else:
            self._screen.note("no key: /click KEY")

    async def _repeat(self, _: str) -> None:
        if self._last is None:
            self._screen.note("nothing was written yet")
            return
        push = self._fake.repeat(self._last)
        await push.over.wait()
        self._tell(push)
        if push.acknowledged:
            self._screen.note("(delivered again: the same response is right, a new answer is not)")

    # --- what else happens ----------------------------------------------------------------------

    async def _subscribe(self, _: str) -> None:
        await self._happened("subscribe", "you follow the account again")

    async def _unsubscribe(self, _: str) -> None:
        await self._happened("unsubscribe", "you left: nothing can be sent to you until you write again")

    async def _happened(self, event: str, told: str) -> None:
        push = self._fake.happen(event)
        await push.over.wait()
        self._tell(push)
        self._screen.note(f"({told})")

    async def _kf(self, _: str) -> None:
        self._fake.interface.service = True
        self._screen.note("(the account has customer service: it may write by itself)")

    async def _no_kf(self, _: str) -> None:
        self._fake.interface.service = False
        self._screen.note("(the account has no customer service: it may only answer in time)")

    async def _throttle(self, _: str) -> None:
        from bridge.channel.testing.fakes.wechat_mp import Refusal

        def told() -> None:
            self._screen.note("(the account's message was refused: it may come again in a minute)")

        self._fake.next(Refusal(45011, "api minute-quota reach limit", told))
        self._screen.note("(the account's next message by itself is refused: too many)")

    async def _check(self, _: str) -> None:
        try:
            good = await self._fake.check_address()
        except OSError:
            good = False
        self._screen.note(
            "(the console accepts the address)" if good else "(the console refuses the address)"
        )

    # --- what comes of it -----------------------------------------------------------------------

    async def _written(self, push: Push, who: str, shown: str) -> None:
        """When input is piped, wait for the answer."""
        self._last = push
        if self._screen.interactive:
            return
        self._screen.row(who, shown)
        seen = len(self._fake.sent)
        try:
            async with asyncio.timeout(self._wait_seconds):
                await push.over.wait()
                if self._tell(push):
                    await self._answered(push, seen)
        except TimeoutError:
            self.unanswered += 1
            self._screen.note(f"(no answer in {self._wait_seconds:g} s)")

    async def _answered(self, push: Push, seen: int) -> None:
        """Until something was sent to its sender, and what belongs to it has come."""
        await self._fake.wait_until(lambda: any(each.to == push.sender for each in self._fake.sent[seen:]))
        while seen != len(self._fake.sent):
            seen = len(self._fake.sent)
            await self._fake.world.clock.sleep(SETTLE_SECONDS)

    def _tell(self, push: Push) -> bool:
        """Whether an answer may come; the next step where none can."""
        if not push.acknowledged:
            self.unanswered += 1
            step = NEXT_STEPS.get(push.attempts[-1].status) if push.attempts else None
            if step:
                self._screen.note(f"(the daemon did not take it: {visible(step)})")
        return push.acknowledged


def _fake_file(name: str, mime: str, data: bytes) -> FakeFile:
    from bridge.channel.testing.fakes.wechat_mp import FakeFile

    return FakeFile(name, mime, data)
