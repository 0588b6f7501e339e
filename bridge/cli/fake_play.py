"""Playing the platform: what is typed goes to the bot, what the bot sends is shown."""

from __future__ import annotations

import asyncio
import mimetypes
import shlex
from collections.abc import Awaitable, Callable, Sequence
from contextlib import aclosing, suppress
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple, TextIO

from bridge.cli.common import ask_daemon, nearer, typed, visible
from bridge.cli.fake_feishu import Extras
from bridge.cli.fake_platforms import APP_ID, FEISHU
from bridge.cli.fake_screen import Screen, lines
from bridge.cli.fake_setup import Setup, to_paste
from bridge.errors import BridgeError, ConfigError
from bridge.media.names import safe_name
from bridge.media.sizes import shown_size
from bridge.paths import Home

if TYPE_CHECKING:
    from bridge.channel.testing.fakes.feishu import FakeFeishu, FakeFile, Push, Sent
    from bridge.clock import Clock

SETTLE_SECONDS = 1.0  # after an answer: its further parts and files follow at once
_KEYS = "its secrets are others: start this with --write and the daemon's home, or paste those shown above"
NEXT_STEPS = {
    401: _KEYS,
    403: _KEYS,
    404: "it has no such account: start this with --write and the daemon's home, or paste that shown above",
}


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
            async with aclosing(lines(source, screen)) as wishes:
                async for line in wishes:
                    if not await player.line(line):
                        break
            showing.cancel()
        await display.rest()
        take_leave(setup, screen)
        return 1 if player.unanswered and not screen.interactive else 0
    finally:
        await fake.__aexit__(None, None, None)


def announce(home: Path) -> None:
    """Have the daemon of ``home``, where it runs, take up the account now; later it would by itself."""
    with suppress(BridgeError):
        ask_daemon(Home(home), {"action": "reload"})


def introduce(setup: Setup, folder: Path, screen: Screen) -> None:
    """Say what to do first, and where things are."""
    screen.row(setup.platform.title, f"http://127.0.0.1:{setup.port}, pushing to {setup.to}")
    screen.row("files", str(folder))
    if setup.home is not None:
        name, config = f"{setup.platform.channel}:{setup.account}", setup.home / "config.toml"
        screen.row("account", f"{name} is in {config}")
        if setup.new:
            screen.note(f"This home is new: {typed(Home(setup.home), 'run')} serves it.")
    else:
        for name, content in to_paste(setup):
            screen.note(f"\nInto {name}:\n\n{content}")
        if setup.platform is FEISHU:
            screen.note(scanning(setup))
    if screen.interactive:
        screen.note("Type a message, /? for help, /quit to end.")


def scanning(setup: Setup) -> str:
    """How the account is signed in by a scan instead; opening the code's address is one here."""
    here = f"http://127.0.0.1:{setup.port}"
    return (
        "Or sign it in by a scan, where opening the address is scanning it:\n\n"
        f"TURNBRIDGE_FEISHU_BASE={here} TURNBRIDGE_FEISHU_ACCOUNTS_BASE={here} \\\n"
        f"  turnbridge channels login feishu:{setup.account} --scan\n"
    )


def take_leave(setup: Setup, screen: Screen) -> None:
    """Say to whoever is at it what is left behind."""
    if setup.home is None or not screen.interactive:
        return
    channel, account = setup.platform.channel, setup.account
    screen.note(
        f"{channel}:{account} stays in {setup.home / 'config.toml'}. To remove it, while the daemon runs: "
        f"{typed(Home(setup.home), f'channels logout {channel}:{account}')}"
    )


class Writer(NamedTuple):
    """Who writes, and where; ``who`` is shown."""

    sender: str = "ou_fake_owner"
    group: bool = False
    who: str = "you"


OWNER = Writer()


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
            **Extras(fake, screen, lambda: self._last, self._written).commands(),
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
        await self._write(text.strip(), Writer(f"ou_fake_{name}", who=name))

    async def _group(self, text: str) -> None:
        await self._write(f"/group {text}", OWNER)

    async def _write(self, text: str, writer: Writer) -> None:
        word, _, rest = text.partition(" ")
        if word == "/group":
            who = "in group" if writer.who == OWNER.who else f"{writer.who} in group"
            await self._write(rest.strip(), writer._replace(group=True, who=who))
        elif word == "/file":
            await self._file(rest.strip(), writer)
        else:
            await self._say(text, writer)

    async def _repeat(self, _: str) -> None:
        await self._again(self._fake.repeat, "delivered again; no second answer is right")

    async def _recall(self, _: str) -> None:
        await self._again(self._fake.recall, "taken back, and the bot told of it")

    async def _again(self, what: Callable[[str], Awaitable[Push]], done: str) -> None:
        if not self._last:
            self._screen.note("nothing was written yet")
            return
        push = await what(self._last)
        self._tell(push)
        if push.acknowledged:
            self._screen.note(f"({done})")

    async def _throttle(self, seconds: str) -> None:
        if seconds and not seconds.isdecimal():
            self._screen.note("/throttle takes seconds as a number")
            return
        from bridge.channel.testing.fakes.feishu import throttled

        def told() -> None:
            self._screen.note(f"(the bot's message was refused: it may come again in {wait_seconds} s)")

        wait_seconds = seconds or "5"
        self._fake.next(throttled(float(wait_seconds), told))
        self._screen.note(f"(the bot's next message is refused for {wait_seconds} s)")

    async def _file(self, rest: str, writer: Writer = OWNER) -> None:
        from bridge.channel.testing.fakes.feishu import FakeFile

        path, text = await asyncio.to_thread(path_and_text, rest)
        if not path:
            self._screen.note("no file: /file PATH [TEXT]")
            return
        try:
            data = await asyncio.to_thread(read, path)
        except OSError as error:
            self._screen.note(f"no file: {path}: {error.strerror or 'it cannot be read'}")
            return
        name = Path(path).name
        mime = mimetypes.guess_type(name)[0] or "application/octet-stream"
        file = FakeFile(name, mime, data)
        if mime.startswith("image/"):
            await self._say(text, writer, [file])
            return
        await self._say("", writer, [file])  # the platform's clients send other files by themselves
        if text:
            await self._say(text, writer)

    async def _say(self, text: str, writer: Writer = OWNER, files: Sequence[FakeFile] = ()) -> None:
        if not text and not files:
            self._screen.note("there is nothing to send")
            return
        if not self._screen.interactive:
            self._screen.row(writer.who, " ".join([text, *(f"[{file.name}]" for file in files)]).strip())
        await self._written(await self._fake.say(text, files=files, group=writer.group, sender=writer.sender))

    async def _written(self, push: Push) -> None:
        """Tell what came of a message; when input is piped, wait for its answer."""
        self._last = push.message_id
        self._tell(push)
        if self._screen.interactive:
            return
        if push.statuses[-1] in NEXT_STEPS:  # no answer will come, however long one waits
            self.unanswered += 1
        else:
            await self._await_answer(push)

    def _tell(self, push: Push) -> None:
        status = push.statuses[-1]
        if status == 0:
            self._screen.note(
                f"(nobody answers at {self._fake.pusher.to}: is the daemon running? Trying again)"
            )
        elif not push.acknowledged:
            self._screen.note(f"(refused with status {status}: {visible(push.body[:200])})")
            if status in NEXT_STEPS:
                self._screen.note(f"(the daemon did not take it: {NEXT_STEPS[status]})")

    async def _await_answer(self, push: Push) -> None:
        """Until the message is answered and what belongs to the answer has come."""
        seen, before = -1, len(self._fake.sent)

        def answered() -> bool:
            """By an answer, or by a question that has to be answered first."""
            replied = any(each.reply_to == push.message_id for each in self._fake.sent)
            return replied or any(each.buttons for each in self._fake.sent[before:])

        try:
            async with asyncio.timeout(self._wait_seconds):
                while not answered():
                    await self._fake.wait_sent(len(self._fake.sent) + 1, None)
                while seen != len(self._fake.sent):
                    seen = len(self._fake.sent)
                    await self._fake.world.clock.sleep(SETTLE_SECONDS)
        except TimeoutError:
            if not answered():
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

    async def rest(self) -> None:
        """Show what was not shown yet."""
        async with self._turn:
            while self._shown < len(self._fake.sent):
                self._shown += 1
                await self._show(self._fake.sent[self._shown - 1])

    async def _show(self, sent: Sent) -> None:
        place = self._place(sent)
        if sent.text:
            self._screen.row("bot", place + sent.text)
        if sent.buttons:
            labels = "  ".join(f"[{at}] {one.label}" for at, one in enumerate(sent.buttons, 1))
            self._screen.note(f"{labels}   (press one: /press 1)")
        if sent.file is not None:
            path = await asyncio.to_thread(save, sent.file.data, sent.file.name, self._folder)
            size = shown_size(len(sent.file.data))
            self._screen.row("bot", f"{place}[{sent.kind}] {nearer(path)} ({size})")

    def _place(self, sent: Sent) -> str:
        """Where it was said, unless that is the owner's direct chat."""
        chat = self._fake.world.chats[sent.chat_id]
        if chat.group:
            return "(in group) "
        return "" if chat.person == OWNER.sender else f"(to {chat.person.removeprefix('ou_fake_')}) "


def path_and_text(rest: str) -> tuple[str, str]:
    """A path, with or without quotes, and the words after it.

    Without quotes the path is as much of ``rest`` as is a file's, so that it may hold blanks.
    """
    words = rest.split(" ")
    for count in range(len(words), 0, -1):
        path = " ".join(words[:count])
        if path and Path(path).expanduser().is_file():
            return path, " ".join(words[count:]).strip()
    try:
        quoted, *more = shlex.split(rest)
    except ValueError:
        return rest.strip(), ""
    return quoted, " ".join(more)


def read(path: str) -> bytes:
    return Path(path).expanduser().read_bytes()


def save(data: bytes, name: str, folder: Path) -> Path:
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
