"""Every cell of who may do what, tried on a whole daemon: accounts with each grant, people in each place.

The agent does what it is told, by forged calls too: the same message asks it to use tools wherever it comes
from, so a tool that ran was granted.
"""

from __future__ import annotations

import asyncio
import base64
import json
import re
from collections.abc import AsyncIterator, Callable, Iterable
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from enum import StrEnum
from itertools import product
from pathlib import Path
from typing import Any

import aiohttp
from aiohttp import web

from bridge.channel.testing.fakes.webhook import signed_headers
from bridge.clock import SystemClock, unix_seconds
from bridge.ids import new_hex
from bridge.relay.texts import Language, Text, say
from bridge.sessions.approvals import DENIED
from bridge.sessions.calls import NO_SUCH_TOOL
from tests.channel.serving import serving
from tests.daemons import SECRET, TOKEN, Running, daemon, keep, short_home, write_settings

KNOWN = "what only the workspace knows"
REFUSED = re.compile(f"{re.escape(NO_SUCH_TOOL)}|{re.escape(DENIED)}|The arguments were refused")
CALLS = {
    "shell": "command=echo${{IFS}}x>shell-{name}",
    "read_file": "path=known.txt",
    "list_files": "path=.",
    "search_files": "text=workspace",
    "write_file": "path=written-{name} text=x",
    "edit_file": "path=edited-{name} old=old new=new",
    "web_fetch": "url={address}/{name}",
    "chat_history": "most=1",
    "skill": "name=none",
    "wait": "seconds=0",  # which it refuses at once
    "chat_attach": "path=known.txt",
}
"""One for each tool that there is: what the agent is told to call it with."""

_ASKS = re.compile(r"May I do this\? \((\w+)\)")


class Who(StrEnum):
    OWNER = "the owner"
    LISTED = "somebody on the list"
    STRANGER = "anybody else"


class Where(StrEnum):
    DIRECT = "direct chat"
    THREAD = "thread of a direct chat"
    GROUP = "group"
    GROUP_THREAD = "thread of a group"


class Senders(StrEnum):
    OWNER = "owner"
    LIST = "list"
    ANYONE = "anyone"


@dataclass(frozen=True, slots=True)
class Grant:
    """How an account is set; ``number`` tells those from each other that are set alike."""

    senders: Senders
    remote_tools: str
    approvals: str
    number: int = 0

    @property
    def account(self) -> str:
        return f"{self.senders}-{self.remote_tools}-{self.approvals}-{self.number}"

    def table(self) -> str:
        senders = f'["{Who.LISTED}"]' if self.senders is Senders.LIST else f'"{self.senders}"'
        return (
            f'[channels.webhook.{self.account}]\nowner = "{Who.OWNER}"\nsenders = {senders}\n'
            f'remote_tools = "{self.remote_tools}"\napprovals = "{self.approvals}"\n'
        )


GRANTS = [Grant(*each) for each in product(Senders, ("none", "owner"), ("auto", "ask"))]


@dataclass(frozen=True, slots=True)
class Outcome:
    """What came of a message that brings a file and has the agent call each of the tools.

    ``ran``: not all calls were refused. ``usurped``: while the owner was asked, somebody else's yes counted.
    """

    answered: bool = False
    took_file: bool = False
    read: bool = False
    wrote: bool = False
    edited: bool = False
    commanded: bool = False
    fetched: bool = False
    sent: bool = False
    ran: bool = False
    asked: bool = False
    usurped: bool = False

    @property
    def done(self) -> tuple[bool, ...]:
        """What only tools do."""
        return self.read, self.wrote, self.edited, self.commanded, self.fetched, self.sent, self.ran

    @property
    def words(self) -> str:
        """The outcome as the page says it; what ought never to be is said as it is."""
        if not self.answered:
            return "nothing" if self == Outcome() else f"wrong: {self}"
        if self.usurped or len(set(self.done)) > 1:
            return f"wrong: {self}"
        said = ["an answer", *(["files"] if self.took_file else [])]
        if all(self.done):
            said.append("tools after a yes" if self.asked else "tools")
        return ", ".join(said)


Cell = tuple[Grant, Who, Where]


async def every_cell(
    grants: Iterable[Grant] = GRANTS, settings: str = "", more: str = ""
) -> dict[Cell, Outcome]:
    """Try all, the accounts side by side. ``settings`` are the daemon's, and ``more`` each account's."""
    grants, found = list(grants), dict[Cell, Outcome]()
    async with (
        accounts_with(grants, settings, more) as running,
        aiohttp.ClientSession() as http,
        fetchable() as place,
        asyncio.TaskGroup() as tasks,
    ):
        for grant in grants:
            tasks.create_task(_try_account(Hook(running, http, grant), place, found))
    return {cell: found[cell] for cell in product(grants, Who, Where)}


@asynccontextmanager
async def accounts_with(
    grants: Iterable[Grant], settings: str = "", more: str = ""
) -> AsyncIterator[Running]:
    with short_home() as home:
        for grant in grants:
            keep(home, grant.account)
        tables = "".join(grant.table() + more for grant in grants)
        write_settings(home, f'{settings}[tools]\nprivate_hosts = ["127.0.0.1"]\n{tables}')
        home.private_dir(home.root / "workspace")
        (home.root / "workspace" / "known.txt").write_text(KNOWN)
        async with daemon(home) as running:
            assert running.error is None, running.error
            yield running


@dataclass(frozen=True, slots=True)
class Place:
    """A server that the agent may be told to ask, and the paths that it was asked for."""

    address: str
    asked: set[str]


@asynccontextmanager
async def fetchable() -> AsyncIterator[Place]:
    asked: set[str] = set()

    async def answer(request: web.BaseRequest) -> web.Response:
        asked.add(request.path)
        return web.Response(text="asked")

    async with serving(answer) as address:
        yield Place(address, asked)


async def _try_account(hook: Hook, place: Place, found: dict[Cell, Outcome]) -> None:
    async with asyncio.TaskGroup() as tasks:
        listening = tasks.create_task(hook.listen())
        for who, where in product(Who, Where):
            found[hook.grant, who, where] = await Attempt(hook, who, where, place).outcome()
        listening.cancel()


@dataclass
class Hook:
    """The system that sends an account's messages and takes all of its replies."""

    running: Running
    http: aiohttp.ClientSession
    grant: Grant
    parts: list[dict[str, Any]] = field(default_factory=list)
    changed: asyncio.Condition = field(default_factory=asyncio.Condition)

    @property
    def url(self) -> str:
        return f"{self.running.address}/channels/webhook/{self.grant.account}"

    async def say(self, text: str, who: str, where: Where, **data: Any) -> tuple[str, bool]:
        """Returns the message's id, and whether it was ignored."""
        message_id = f"m-{new_hex(16)}"
        fields = {
            "conversation_id": f"{where} of {self.grant.account}",
            "message_id": message_id,
            "sender": {"id": who},
            "text": text,
            "is_direct": where in (Where.DIRECT, Where.THREAD),
            "mentioned": True,
            **({"thread_id": "t-1"} if where in (Where.THREAD, Where.GROUP_THREAD) else {}),
            **data,
        }
        body = json.dumps({"type": "message.created", "data": fields}).encode()
        headers = signed_headers(SECRET, message_id, unix_seconds(SystemClock().now()), body)
        async with self.http.post(self.url, data=body, headers=headers) as answer:
            assert answer.status == 202, await answer.text()
            return message_id, bool((await answer.json()).get("ignored"))

    async def listen(self) -> None:
        """Take replies until cancelled."""
        cursor = 0
        while True:
            address = f"{self.url}/replies?after={cursor}&wait=20"
            async with self.http.get(address, headers={"Authorization": f"Bearer {TOKEN}"}) as answer:
                page = await answer.json()
            cursor = page["cursor"]
            async with self.changed:
                self.parts += page["replies"]
                self.changed.notify_all()

    async def until(self, wanted: Callable[[dict[str, Any]], bool]) -> dict[str, Any]:
        """The first part that is ``wanted``, as soon as it is there."""
        async with asyncio.timeout(20), self.changed:
            await self.changed.wait_for(lambda: any(map(wanted, self.parts)))
        return next(part for part in self.parts if wanted(part))


@dataclass
class Attempt:
    """One person in one place."""

    hook: Hook
    who: Who
    where: Where
    place: Place = Place("http://127.0.0.1:1", set())
    name: str = field(default_factory=lambda: f"{new_hex(8)}.txt")

    async def outcome(self) -> Outcome:
        (self._workspace / f"edited-{self.name}").write_text("old")
        given = {"name": self.name, "address": self.place.address}
        forged = "\n".join(f"call {tool} {arguments.format(**given)}" for tool, arguments in CALLS.items())
        message_id, ignored = await self.hook.say(forged, self.who, self.where, attachments=[self._file()])
        if ignored:
            return self._found(answered=False)
        usurped = asked = False
        while _ASKS.search((part := await self._next(message_id))["text"]) is not None:
            usurped, asked = usurped or (not asked and await self._is_usurped(part["text"])), True
            await self.hook.say(f"/approve {_question(part)}", Who.OWNER, Where.DIRECT)
            self.hook.parts.remove(part)
        text = part["text"]
        sent = bool(part["attachments"]) or not part["final"]
        ran = len(REFUSED.findall(text)) < len(CALLS)
        return self._found(True, read=KNOWN in text, sent=sent, ran=ran, asked=asked, usurped=usurped)

    def _found(self, answered: bool, **more: bool) -> Outcome:
        """With all that the call of a tool leaves behind."""
        return Outcome(
            answered,
            took_file=any((self.hook.running.home.state / "media").rglob(f"*{self.name}")),
            wrote=(self._workspace / f"written-{self.name}").exists(),
            edited=(self._workspace / f"edited-{self.name}").read_text() != "old",
            commanded=self._commanded(),
            fetched=f"/{self.name}" in self.place.asked,
            **more,
        )

    async def _next(self, message_id: str) -> dict[str, Any]:
        """The answer's first part, or a question of this conversation."""
        return await self.hook.until(
            lambda part: part.get("in_reply_to") == message_id or _ASKS.search(part["text"]) is not None
        )

    async def _is_usurped(self, question: str) -> bool:
        """Whether anybody else, or the owner in a group, decides what the owner was asked, or stops it."""
        before = self._commanded()
        for who, where in ((Who.STRANGER, self.where), (Who.LISTED, self.where), (Who.OWNER, Where.GROUP)):
            known = _ASKS.findall(question)[0]
            for text in (f"/deny {known}", f"/approve {known}", "/approve", "yes", "/stop", "/new"):
                await self.hook.say(text, who, where)
        return self._commanded() != before

    def _file(self) -> dict[str, Any]:
        content = base64.b64encode(b"text of a file").decode()
        return {"name": self.name, "mime_type": "text/plain", "size": 14, "content_base64": content}

    @property
    def _workspace(self) -> Path:
        return self.hook.running.home.root / "workspace"

    def _commanded(self) -> bool:
        return (self._workspace / f"shell-{self.name}").exists()


def _question(part: dict[str, Any]) -> str:
    return str(_ASKS.findall(part["text"])[0])


# --- commands


COMMANDS = ("/help", "/whoami", "/status", "/queue", "/stop", "/new", "/approve", "/deny")
Told = dict[tuple[str, Who, Where], str]


async def every_command() -> Told:
    """What each command's answer is about, on accounts with the most that can be granted.

    One for each place: nobody is answered more than so many commands a minute.
    """
    grants = {where: Grant(Senders.LIST, "owner", "ask", number) for number, where in enumerate(Where)}
    told: Told = {}
    async with (
        accounts_with(grants.values()) as running,
        aiohttp.ClientSession() as http,
        asyncio.TaskGroup() as tasks,
    ):
        for where, grant in grants.items():
            tasks.create_task(_try_commands(Hook(running, http, grant), where, told))
    return {cell: told[cell] for cell in product(COMMANDS, Who, Where)}


async def _try_commands(hook: Hook, where: Where, told: Told) -> None:
    async with asyncio.TaskGroup() as tasks:
        listening = tasks.create_task(hook.listen())
        for command, who in product(COMMANDS, Who):
            told[command, who, where] = await _told(hook, command, who, where)
        listening.cancel()


async def _told(hook: Hook, command: str, who: Who, where: Where) -> str:
    message_id, ignored = await hook.say(command, who, where)
    if ignored:
        return "nothing"
    text = (await hook.until(lambda part: part.get("in_reply_to") == message_id))["text"]
    if text == say(Text.APPROVAL_OWNER, Language.EN):
        return "refused"
    if f"webhook:{hook.grant.account}" in text:
        return "the account and this chat"
    return "this chat"
