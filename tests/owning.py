"""A daemon with people on a fake Feishu, and a scripted model and coding agent behind it."""

import asyncio
import json
import os
import re
import signal
import subprocess
import sys
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import asynccontextmanager, contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from bridge.channel.testing.fakes.feishu import OWNER, FakeFeishu, Push, Sent
from bridge.paths import Home, write_private
from tests.agents.acp.stage import PROGRAM
from tests.agents.llm.server import ModelServer, Reply, call, calls
from tests.daemons import daemon, free_port, short_home, write_settings

SIMPLE = Path(__file__).parent / "tools" / "mcp" / "simple.py"
AGAIN_SECONDS = (0.05,) * 600  # between the platform's attempts: a daemon that starts is reached at once
DEADLINE_SECONDS = 45.0
GROUP = "oc_fake_group"
KEY = "sk-of-the-owner-4711"
SERVER = f"""[mcp.notes]
command = {json.dumps([sys.executable, "-I", "-S", str(SIMPLE)])}
env = ["NOTES"]
"""
SETTINGS = """[daemon]
agent = "fast"
folders = ["{work}"]
[agents.echo]
[agents.fast]
type = "llm"
provider = "compatible"
base_url = "{model}/v1"
model = "small"
models = ["large"]
tries = 1
[agents.coder]
type = "acp"
command = {program}
env = ["LOG={log}", "STATE={state}"]
[channels.feishu.main]
app_id = "{app}"
base = "{feishu}"
owner = "{owner}"
senders = "anyone"
remote_tools = "owner"
approvals = "ask"
workspace = "{work}"
"""


@dataclass
class Person:
    """Somebody with the platform's application: writes into a chat, and reads what the bot says there."""

    fake: FakeFeishu
    name: str = OWNER
    group: bool = False
    seen: int = 0

    @property
    def chat(self) -> str:
        return GROUP if self.group else self.fake.world.direct(self.name).chat_id

    async def says(self, text: str = "", **more: Any) -> Push:
        return await self.fake.say(text, sender=self.name, group=self.group, **more)

    async def reads(self) -> Sent:
        """The next that the bot says here."""
        mine: list[Sent] = []
        async with asyncio.timeout(DEADLINE_SECONDS):
            while len(mine) <= self.seen:
                await asyncio.sleep(0.005)
                mine = [one for one in self.fake.sent if one.chat_id == self.chat]
        self.seen += 1
        return mine[self.seen - 1]

    async def asks(self, text: str = "", **more: Any) -> str:
        """Write, and return the words of the next answer."""
        await self.says(text, **more)
        return (await self.reads()).text

    async def is_asked(self, text: str) -> Sent:
        """Write, and return the question whether that may be done."""
        await self.says(text)
        question = await self.reads()
        assert question.text.startswith("May I do this?"), question.text
        return question

    async def presses(self, question: Sent, label: str) -> str:
        """Press a button; what the bot answers in the chat."""
        await self.fake.press(question, label, self.name)
        return (await self.reads()).text


def id_in(question: Sent) -> str:
    found = re.search(r"\((\w+)\)", question.text)
    assert found is not None
    return found[1]


@dataclass
class Place:
    """``process`` is the daemon that runs now."""

    home: Home
    work: Path
    fake: FakeFeishu
    model: ModelServer
    log: Path
    process: "subprocess.Popen[bytes] | None" = None
    children: list["subprocess.Popen[bytes]"] = field(default_factory=list)

    def plays(self, *replies: Reply) -> None:
        """What the model answers next."""
        self.model.script += replies

    def start(self) -> None:
        """Begin one; what is written meanwhile reaches it when it listens."""
        begin = "import sys; from bridge.cli.main import main; sys.exit(main())"
        argv = [sys.executable, "-c", begin, "run", "--home", str(self.home.root)]
        env = {**os.environ, "NOTES": str(self.home.root / "notes")}
        with open(self.home.root / "out", "ab") as out:
            self.process = subprocess.Popen(argv, stdout=out, stderr=out, env=env)
        self.children.append(self.process)

    async def ends(self, how: signal.Signals) -> int:
        """Send it the signal; the exit code."""
        assert self.process is not None
        self.process.send_signal(how)
        return await asyncio.to_thread(self.process.wait, DEADLINE_SECONDS)

    def said(self) -> str:
        """What the daemons wrote."""
        out = self.home.root / "out"
        return out.read_text() if out.exists() else ""

    def coder_heard(self) -> list[dict[str, Any]]:
        """What the coding agent was asked and told."""
        return [json.loads(line) for line in self.log.read_text().splitlines()] if self.log.exists() else []

    def results(self) -> list[str]:
        """What the model was told of the calls that it made, in its last request."""
        return [str(one["content"]) for one in self.model.last["messages"] if one["role"] == "tool"]


@asynccontextmanager
async def placed(tmp_path: Path, more: str = "") -> AsyncIterator[Place]:
    """A place whose settings end with ``more``, without a daemon yet.

    ``Place.start`` begins one in a process of its own, which never outlives the place.
    """
    async with ModelServer().serving() as model, FakeFeishu(delays=AGAIN_SECONDS) as fake:
        with short_home() as home:
            place = _placed(home, tmp_path, fake, model, more)
            try:
                yield place
            finally:
                for child in place.children:
                    child.kill()
                    child.wait()
                print(place.said())  # shown where the test failed


@asynccontextmanager
async def owning(tmp_path: Path, more: str = "") -> AsyncIterator[Place]:
    """A place with a whole daemon in this process, which starts sooner."""
    async with placed(tmp_path, more) as place, daemon(place.home) as running:
        assert running.error is None, running.error
        yield place


def _placed(home: Home, folder: Path, fake: FakeFeishu, model: ModelServer, more: str) -> Place:
    work, state = folder / "work", folder / "sessions"
    for each in (work, state):
        each.mkdir()
    port = free_port()
    fake.pusher.to = f"http://127.0.0.1:{port}/channels/feishu/main"
    told = SETTINGS.format(
        work=work, state=state, log=folder / "log", model=model.address, feishu=fake.base, app=fake.app_id,
        owner=OWNER, program=json.dumps([sys.executable, PROGRAM]),
    )  # fmt: skip
    home.credentials("webhook", "demo").unlink()
    write_settings(home, told + more)
    home.config.write_text(home.config.read_text().replace("port = 0", f"port = {port}"))
    secrets = {"app_secret": fake.app_secret, "verification_token": fake.token}
    _keep(home, ("feishu", "main"), {**secrets, "encrypt_key": fake.encrypt_key})
    _keep(home, ("agents", "fast"), {"api_key": KEY})
    (home.root / "notes.tools").write_text("look_up")
    return Place(home, work, fake, model, folder / "log")


def _keep(home: Home, name: tuple[str, str], secrets: dict[str, str]) -> None:
    path = home.credentials(*name)
    home.private_dir(path.parent)
    write_private(path, json.dumps(secrets).encode())


def wants(tool: str, call_id: str = "call_1", **arguments: Any) -> Reply:
    """The model's wish to call a tool."""
    return calls(call(tool, json.dumps(arguments), call_id))


async def until(condition: Callable[[], bool]) -> None:
    async with asyncio.timeout(DEADLINE_SECONDS):
        while not condition():
            await asyncio.sleep(0.01)


@contextmanager
def seen_by(model: ModelServer) -> Iterator[list[Any]]:
    """The bodies of the requests that come meanwhile."""
    before, bodies = len(model.asked), list[Any]()
    yield bodies
    bodies += [one.body for one in model.asked[before:] if one.body is not None]
