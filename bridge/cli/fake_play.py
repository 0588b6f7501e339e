"""Playing the platform: what is typed goes to the bot, what the bot sends is shown."""

from __future__ import annotations

import asyncio
import mimetypes
import re
import shlex
import threading
from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, TextIO

from bridge.cli.common import ask_daemon
from bridge.cli.fake_setup import APP_ID, Setup, to_paste
from bridge.errors import BridgeError, ConfigError
from bridge.media.names import safe_name
from bridge.paths import Home

if TYPE_CHECKING:
    from bridge.channel.testing.fakes.feishu import FakeFeishu, FakeFile, Push, Sent
    from bridge.clock import Clock

SETTLE_SECONDS = 1.0  # after an answer: its further parts and files follow at once
_CONTROLS = re.compile(r"[\x00-\x08\x0b-\x1f\x7f-\x9f\u202a-\u202e\u2066-\u2069\ud800-\udfff]")
_DIM, _BOLD, _PLAIN = "\x1b[2m", "\x1b[1m", "\x1b[0m"


class Screen:
    """Where to show things: with colours and a prompt when a person is at it, else plain lines."""

    def __init__(self, out: TextIO, interactive: bool, help_text: str) -> None:
        self._out = out
        self.help_text = help_text
        self.interactive = interactive

    def row(self, who: str, text: str) -> None:
        """``text`` under the name of who says it, further lines below."""
        lines = _visible(text).split("\n")
        head = f"{_BOLD}{who:<9}{_PLAIN}" if self.interactive else f"{who:<9}"
        start = "\r" if self.interactive else ""
        self._write(start + head + ("\n" + " " * 9).join(lines))

    def note(self, text: str) -> None:
        self._write(f"\r{_DIM}{text}{_PLAIN}" if self.interactive else text)

    def prompt(self) -> None:
        if self.interactive:
            print("> ", end="", flush=True, file=self._out)

    def _write(self, text: str) -> None:
        print(text, flush=True, file=self._out)


async def play(
    setup: Setup,
    folder: Path,
    screen: Screen,
    source: TextIO,
    wait_seconds: float,
    clock: Clock | None = None,
) -> int:
    """Serve the platform until ``source`` ends. Returns 1 when a piped message had no answer in time."""
    from bridge.channel.testing.fakes.feishu import FakeFeishu

    fake = FakeFeishu(
        APP_ID,
        setup.secrets["app_secret"],
        setup.secrets["verification_token"],
        setup.secrets["encrypt_key"],
        to=setup.to,
        port=setup.port,
        clock=clock,
    )
    try:
        await fake.__aenter__()
    except OSError as error:
        raise ConfigError(f"port {setup.port} cannot be used: give another with --port") from error
    try:
        if setup.home is not None:
            await asyncio.to_thread(announce, setup.home)
        introduce(setup, folder, screen)
        async with asyncio.TaskGroup() as tasks:
            display = Display(fake, folder, screen)
            showing = tasks.create_task(display.follow(), name="fake/show")
            player = Player(fake, screen, wait_seconds)
            async for line in lines(source, screen):
                if not await player.line(line):
                    break
            showing.cancel()
        await display.rest()
        return 1 if player.unanswered and not screen.interactive else 0
    finally:
        await fake.__aexit__(None, None, None)


def announce(home: Path) -> None:
    """Have the daemon of ``home``, where it runs, take up the account now; later it would by itself."""
    with suppress(BridgeError):
        ask_daemon(Home(home), {"action": "reload"})


def introduce(setup: Setup, folder: Path, screen: Screen) -> None:
    """Say what to do first, and where things are."""
    screen.row("Feishu", f"http://127.0.0.1:{setup.port}, pushing to {setup.to}")
    screen.row("files", str(folder))
    if setup.home is not None:
        screen.row("account", f"feishu:{setup.account} is in {setup.home / 'config.toml'}")
    else:
        for name, content in to_paste(setup):
            screen.note(f"\nInto {name}:\n\n{content}")
    if screen.interactive:
        screen.note("Type a message, /? for help, /quit to end.")


async def lines(source: TextIO, screen: Screen) -> AsyncIterator[str]:
    """The lines of ``source``, read in a thread that nobody waits for: a terminal's read cannot be ended."""
    loop, queue = asyncio.get_running_loop(), asyncio.Queue[str]()

    def read() -> None:
        line = "\n"
        with suppress(RuntimeError):  # the loop has ended before the input
            while line:
                try:
                    line = source.readline()
                except (OSError, ValueError):  # the terminal is gone, or what came is no text
                    line = ""
                loop.call_soon_threadsafe(queue.put_nowait, line)

    threading.Thread(target=read, daemon=True).start()
    screen.prompt()
    while line := await queue.get():
        yield line.rstrip("\r\n")
        screen.prompt()


class Player:
    """Does what each line says."""

    def __init__(self, fake: FakeFeishu, screen: Screen, wait_seconds: float) -> None:
        self._fake = fake
        self._screen = screen
        self._wait_seconds = wait_seconds
        self._last = ""
        self._commands: dict[str, Callable[[str], Awaitable[None]]] = {
            "/?": self._help,
            "/file": self._file,
            "/as": self._as,
            "/group": self._group,
            "/repeat": self._repeat,
            "/recall": self._recall,
            "/throttle": self._throttle,
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

    async def _as(self, rest: str) -> None:
        name, _, text = rest.partition(" ")
        await self._say(text.strip(), sender=f"ou_fake_{name}", who=name)

    async def _group(self, text: str) -> None:
        await self._say(text, group=True, who="in group")

    async def _repeat(self, _: str) -> None:
        await self._again(self._fake.repeat)

    async def _recall(self, _: str) -> None:
        await self._again(self._fake.recall)

    async def _again(self, what: Callable[[str], Awaitable[Push]]) -> None:
        if self._last:
            self._tell(await what(self._last))
        else:
            self._screen.note("nothing was written yet")

    async def _throttle(self, seconds: str) -> None:
        if seconds and not seconds.isdecimal():
            self._screen.note("/throttle takes seconds as a number")
            return
        from bridge.channel.testing.fakes.feishu import throttled

        self._fake.next(throttled(float(seconds or 5)))
        self._screen.note(f"the bot's next message is refused for {seconds or 5} s")

    async def _file(self, rest: str) -> None:
        from bridge.channel.testing.fakes.feishu import FakeFile

        try:
            path, *words = shlex.split(rest)
            data = await asyncio.to_thread(_read, path)
        except (ValueError, OSError) as error:
            self._screen.note(f"no file: {getattr(error, 'strerror', None) or '/file PATH [TEXT]'}")
            return
        name, text = Path(path).name, " ".join(words)
        mime = mimetypes.guess_type(name)[0] or "application/octet-stream"
        file = FakeFile(name, mime, data)
        if mime.startswith("image/"):
            await self._say(text, files=[file])
            return
        await self._say(files=[file])  # the platform's clients send other files by themselves
        if text:
            await self._say(text)

    async def _say(
        self,
        text: str = "",
        *,
        sender: str = "",
        group: bool = False,
        files: Sequence[FakeFile] = (),
        who: str = "you",
    ) -> None:
        if not text and not files:
            self._screen.note("there is nothing to send")
            return
        if not self._screen.interactive:
            self._screen.row(who, " ".join(filter(None, (text, *(f"[{file.name}]" for file in files)))))
        fields = {"sender": sender} if sender else {}
        push = await self._fake.say(text, files=files, group=group, **fields)
        self._last = push.message_id
        self._tell(push)
        if not self._screen.interactive:
            await self._await_answer(push)

    def _tell(self, push: Push) -> None:
        status = push.statuses[-1]
        if status == 0:
            self._screen.note(
                f"(nobody answers at {self._fake.pusher.to}: is the daemon running? Trying again)"
            )
        elif not push.acknowledged:
            self._screen.note(f"(refused with status {status}: {_visible(push.body[:200])})")

    async def _await_answer(self, push: Push) -> None:
        """Until the message is answered and what belongs to the answer has come."""
        seen = -1
        try:
            async with asyncio.timeout(self._wait_seconds):
                while not any(each.reply_to == push.message_id for each in self._fake.sent):
                    await self._fake.wait_sent(len(self._fake.sent) + 1, None)
                while seen != len(self._fake.sent):
                    seen = len(self._fake.sent)
                    await self._fake.world.clock.sleep(SETTLE_SECONDS)
        except TimeoutError:
            if not any(each.reply_to == push.message_id for each in self._fake.sent):
                self.unanswered += 1
                self._screen.note(f"(no answer in {self._wait_seconds:g} s)")


class Display:
    """Shows each message of the bot once."""

    def __init__(self, fake: FakeFeishu, folder: Path, screen: Screen) -> None:
        self._fake = fake
        self._folder = folder
        self._screen = screen
        self._shown = 0
        self._turn = asyncio.Lock()

    async def follow(self) -> None:
        """Show them as they come; never ends."""
        while True:
            await self._fake.wait_sent(self._shown + 1, None)
            await self.rest()
            self._screen.prompt()

    async def rest(self) -> None:
        """Show what was not shown yet."""
        async with self._turn:
            while self._shown < len(self._fake.sent):
                self._shown += 1
                await self._show(self._fake.sent[self._shown - 1])

    async def _show(self, sent: Sent) -> None:
        if sent.text:
            self._screen.row("bot", sent.text)
        if sent.file is not None:
            path = await asyncio.to_thread(_save, sent.file.data, sent.file.name, self._folder)
            self._screen.row("bot", f"[{sent.kind}] {path} ({len(sent.file.data)} bytes)")


def _read(path: str) -> bytes:
    return Path(path).expanduser().read_bytes()


def _save(data: bytes, name: str, folder: Path) -> Path:
    """Write a file under a harmless form of ``name``; one that is there is kept."""
    safe, count = Path(safe_name(name)), 1
    while True:
        path = folder / (safe if count == 1 else f"{safe.stem} ({count}){safe.suffix}")
        try:
            with path.open("xb") as file:
                file.write(data)
            return path
        except FileExistsError:
            count += 1


def _visible(text: str) -> str:
    """Without the controls by which a text could play with a terminal."""
    return _CONTROLS.sub("\N{REPLACEMENT CHARACTER}", text)
