"""A whole daemon, all that can go well and wrong with its accounts, and what it showed meanwhile."""

from __future__ import annotations

import asyncio
import contextlib
import io
import json
import logging
import sqlite3
from collections.abc import AsyncIterator, Iterator
from contextlib import AsyncExitStack, asynccontextmanager, closing, contextmanager
from dataclasses import dataclass, field
from typing import Any

import aiohttp
import structlog

from bridge import logs
from bridge.channel.testing.fakes.feishu import FakeFeishu, FakeFile, Fault, Refusal
from bridge.channel.testing.fakes.webhook_receiver import CallbackReceiver
from bridge.channel.testing.fakes.wechat_mp import FakeWechatMp
from bridge.cli.common import ask_daemon
from bridge.cli.main import main
from bridge.cli.webhook_client import File, WebhookClient
from bridge.client import connected, expect
from bridge.paths import Home, write_private
from bridge.protocol import commands, ours
from channels.feishu import Feishu
from tests.crash import followers
from tests.daemons import SECRET, TOKEN, Running, daemon, short_home, write_settings
from tests.media.pictures import picture
from tests.security.scan import Evidence, Kind

HOOK_NEXT, HOOK_LOUD = "next-owner-of-the-hook-4724", "loud-at-the-hook-4725"
HOOK_OWNER, HOOK_STRANGER = "owner-of-the-hook-4711", "stranger-at-the-hook-4712"
BOT_OWNER, BOT_STRANGER, FOLLOWER = "ou_owner_4713", "ou_stranger_4714", "oFollower_4715"
GROUP, CONVERSATION = "oc_group_4716", "ticket-of-a-stranger-4717"
MISPLACED, GARBLED, WRONG = "misplaced-secret-4718", "garbled-secret-4719", "wrong-app-secret-4720"
FILE_TOKEN, FILE_SIGNATURE = "file-token-4721", "signature-of-a-file-4722"
CALLBACK = "whsec_" + "R0hJ" * 11
FILE_NAME = "plans-of-4723.png"


@dataclass
class Run:
    """What the daemon is surrounded by. ``said`` are the texts that people wrote."""

    home: Home
    feishu: FakeFeishu
    wechat: FakeWechatMp
    receiver: CallbackReceiver
    evidence: Evidence
    log: io.StringIO
    running: Running | None = None
    said: list[str] = field(default_factory=list)

    def text(self, what: str) -> str:
        """A text that nobody else says, and that the echo agent repeats."""
        text = f"{what} of message {len(self.said) + 4800} 密文"
        self.said.append(text)
        self.evidence.mark(Kind.TEXT, text)
        return text

    @property
    def address(self) -> str:
        assert self.running is not None
        return self.running.address


async def whole_run() -> Evidence:
    """Let all of it happen once, on the real clock, in some seconds."""
    async with _surroundings() as run:
        async with daemon(run.home) as running:
            assert running.error is None, running.error
            run.running = running
            run.feishu.pusher.to = f"{running.address}/channels/feishu/main"
            run.wechat.pusher.to = f"{running.address}/channels/wechat_mp/main"
            await _good(run)
            await _refused(run)
            await _attacks(run)
            await _owners(run)
            await _broken(run)
            await _shown(run)
        run.evidence.show("log", run.log.getvalue())
        run.evidence.show_files(run.home.root)
        run.evidence.show("database rows", _rows(run.home))
        run.evidence.mark(Kind.TOKEN, *run.feishu.interface._tokens, *run.wechat.tokens._stable)
        return run.evidence


# --- the surroundings


@asynccontextmanager
async def _surroundings() -> AsyncIterator[Run]:
    async with AsyncExitStack() as stack:
        home = stack.enter_context(short_home())
        feishu = await stack.enter_async_context(FakeFeishu(delays=()))
        wechat = await stack.enter_async_context(followers.wechat("http://127.0.0.1:1", "main", service=True))
        receiver = await stack.enter_async_context(CallbackReceiver([CALLBACK]))
        receiver.files, receiver.file_token = {"a": picture("PNG")}, FILE_TOKEN
        log = stack.enter_context(_captured())
        run = Run(home, feishu, wechat, receiver, Evidence(), log)
        _write(run)
        _mark(run)
        yield run


@contextmanager
def _captured() -> Iterator[io.StringIO]:
    """All logs of this process, from the finest level on; then as it was."""
    before, handlers, out = structlog.get_config(), list(logging.getLogger().handlers), io.StringIO()
    logs.configure("debug", as_json=True, stream=out)
    try:
        yield out
    finally:
        structlog.configure(**before)
        logging.getLogger().handlers = handlers


def _write(run: Run) -> None:
    write_settings(run.home, _settings(run))
    feishu, wechat = run.feishu, run.wechat
    verified = {"verification_token": feishu.token, "encrypt_key": feishu.encrypt_key}
    hook = {"secrets": [SECRET], "ask_token": TOKEN, "file_token": FILE_TOKEN}
    _keep(run.home, "webhook", "demo", hook)
    _keep(run.home, "webhook", "called", {"secrets": [SECRET], "callback_secrets": [CALLBACK]})
    _keep(run.home, "webhook", "misplaced", hook)
    _keep(run.home, "webhook", "garbled", hook)
    write_private(run.home.credentials("webhook", "garbled"), f'{{"ask_token": "{GARBLED}"'.encode())
    _keep(run.home, "feishu", "main", {"app_secret": feishu.app_secret, **verified})
    _keep(run.home, "feishu", "wrong", {"app_secret": WRONG, **verified})
    keys = {"token": wechat.account.token, "encoding_aes_key": wechat.account.encoding_aes_key}
    _keep(run.home, "wechat_mp", "main", {"app_secret": wechat.app_secret, **keys})


def _keep(home: Home, channel: str, account: str, secrets: dict[str, Any]) -> None:
    path = home.credentials(channel, account)
    home.private_dir(path.parent)
    write_private(path, json.dumps(secrets).encode())


def _settings(run: Run) -> str:
    hook = f'owner = "{HOOK_OWNER}"\nsenders = "anyone"\nremote_tools = "owner"\n'
    bot = f'base = "{run.feishu.base}"\nowner = "{BOT_OWNER}"\n'
    return f"""
[channels.webhook.demo]
{hook}
file_hosts = ["{run.receiver.host}"]
private_hosts = ["{run.receiver.host}"]
[channels.webhook.called]
{hook}
callback_url = "{run.receiver.url}"
approvals = "ask"
messages_per_minute = 20
turns_per_day = 2
private_hosts = ["{run.receiver.host}"]
[channels.webhook.misplaced]
{hook}
ask_token = "{MISPLACED}"
[channels.webhook.garbled]
{hook}
[channels.feishu.main]
app_id = "{run.feishu.app_id}"
remote_tools = "owner"
{bot}
[channels.feishu.wrong]
app_id = "cli_wrong"
{bot}
[channels.console.local]
{followers.table(run.wechat, "main")}
"""


def _mark(run: Run) -> None:
    feishu, wechat, mark = run.feishu, run.wechat, run.evidence.mark
    mark(Kind.SECRET, SECRET, SECRET.removeprefix("whsec_"), TOKEN, CALLBACK, FILE_TOKEN, WRONG, GARBLED)
    mark(Kind.SECRET, feishu.app_secret, feishu.token, feishu.encrypt_key)
    mark(Kind.SECRET, wechat.app_secret, wechat.account.token, wechat.account.encoding_aes_key)
    mark(Kind.MISPLACED, MISPLACED)
    mark(Kind.TOKEN, FILE_SIGNATURE)
    mark(Kind.OWNER, HOOK_OWNER, HOOK_NEXT, BOT_OWNER, "oOwnerWhoNeverWrites")
    mark(Kind.ID, HOOK_STRANGER, HOOK_LOUD, BOT_STRANGER, FOLLOWER, GROUP, CONVERSATION)


# --- what happens


async def _good(run: Run) -> None:
    """Everybody who may write writes, and is answered; files come and go."""
    feishu = run.feishu
    await feishu.say(
        run.text("hello"), sender=BOT_OWNER, files=[FakeFile(FILE_NAME, "image/png", picture("PNG"))]
    )
    await feishu.say(run.text("in the group"), sender=BOT_OWNER, chat=GROUP, group=True)
    await feishu.say("write notes.txt " + run.text("a note"), sender=BOT_OWNER)
    await feishu.say("read notes.txt", sender=BOT_OWNER)
    await feishu.wait_sent(4)
    url = f"{run.receiver.address}/files/a?signature={FILE_SIGNATURE}"
    for sender in (HOOK_OWNER, HOOK_STRANGER):
        file = File(FILE_NAME, "image/png", picture("PNG"), url)
        parts = await _ask(run, sender, run.text("look"), [file])
        run.evidence.show("reply", json.dumps(parts))
    before = len(run.wechat.sent)
    run.wechat.say(run.text("from a follower"), sender=FOLLOWER)
    await _until(lambda: len(run.wechat.sent) > before)
    await asyncio.to_thread(_client(run, "called").send, HOOK_STRANGER, run.text("call me"), [])
    await run.receiver.wait_for(1)
    body = {"type": "message", "id": "m1", "conversation": "main", "text": run.text("at the console")}
    async with _console(run) as http:
        await _show_answer(run, http, "POST", "http://x/channels/console/local", json=body)
        async with http.get("http://x/channels/console/local/replies?conversation=main&wait=20") as answer:
            run.evidence.show("reply", await answer.read())


async def _refused(run: Run) -> None:
    """Platforms refuse, throttle and hang up, and say what they were told; the agent fails."""
    feishu = run.feishu
    said = run.text("refuse this")
    echoed = f"invalid {BOT_OWNER} {BOT_STRANGER} {said} {feishu.app_secret}"
    feishu.next(Refusal(230013, text=echoed), at="send")
    await feishu.say(said, sender=BOT_OWNER)
    await _until(lambda: "delivery.refused" in run.log.getvalue())
    feishu.next(Refusal(230013, text=echoed), at="upload")
    await feishu.say("make lost.txt", sender=BOT_OWNER)
    await _until(lambda: run.log.getvalue().count("delivery.refused") == 2)
    feishu.next(Refusal(230001, text=echoed), Fault.BROKEN, at="download")
    await feishu.say(
        run.text("a file"), sender=BOT_OWNER, files=[FakeFile(FILE_NAME, "image/png", b"x" * 99)]
    )
    feishu.next(Refusal(230002, text=echoed), at="get")
    await feishu.quote(feishu.sent[0].message_id, run.text("a quote"), sender=BOT_OWNER)
    feishu.next(Fault.GARBAGE, Fault.DROP_AFTER, at="send")
    await feishu.say(run.text("lost for a while"), sender=BOT_OWNER)
    await feishu.say("fail provider_error", sender=BOT_OWNER)
    await feishu.say("call no_such_tool a=" + run.text("b").replace(" ", "_"), sender=BOT_OWNER)
    await feishu.say(run.text("not for me"), sender=BOT_STRANGER)
    await feishu.say(run.text("nor this"), sender=BOT_STRANGER, chat=GROUP, group=True)
    await feishu.wait_sent(11)


async def _owners(run: Run) -> None:
    """Somebody becomes an owner by a code and is asked for a tool; others give commands, and too much."""
    code, wrong = "47250816", "10203040"
    run.evidence.mark(Kind.SECRET, code, f"{code[:4]}-{code[4:]}")
    run.evidence.mark(Kind.TEXT, wrong)
    ask = {"action": "pair", "account": "webhook:called", "code": code, "replace": True}
    pairing = (await _control(run, ask))["pairing"]
    for sender, text in ((HOOK_STRANGER, wrong), (HOOK_STRANGER, "/whoami"), (HOOK_NEXT, code)):
        await _call(run, sender, text)
    await _until(lambda: HOOK_NEXT in run.home.config.read_text())
    await _control(run, {"action": "pair_state", "id": pairing["id"]})
    for command in ("/status", "/queue", "/whoami", "/stop", "/help", "/我是谁"):
        await _call(run, HOOK_STRANGER, command)
    await _settled(run)
    note = run.text("an asked note").replace(" ", "_")
    run.evidence.mark(Kind.TEXT, note)
    await _call(run, HOOK_NEXT, f"write asked.txt {note}")
    await _until(lambda: any(kept.data.get("notice") == "approval" for kept in run.receiver.kept))
    await _call(run, HOOK_STRANGER, "/approve")
    await _call(run, HOOK_NEXT, "/approve")
    await _until((run.home.root / "workspace" / "asked.txt").exists)
    ask = {"action": "confirm", "text": run.text("shall I"), "account": "webhook:called", "wait_seconds": 60}
    question = (await _control(run, ask))["question"]
    state = {"action": "question_state", "id": question["id"]}
    while question["state"] == "sending":
        question = (await _control(run, state))["question"]
    await _call(run, HOOK_STRANGER, "yes")
    await _call(run, HOOK_NEXT, "yes")
    assert (await _control(run, state))["question"]["state"] == "yes"
    for _ in range(3):
        await _call(run, HOOK_LOUD, run.text("too much"))


async def _settled(run: Run) -> None:
    """The account runs with its new owner."""

    async def is_so() -> bool:
        components = (await _control(run, {"action": "status"}))["components"]
        called = next(one for one in components if one["id"] == "webhook:called")
        return bool(called["user_id"] == HOOK_NEXT and called["state"] == "connected")

    async with asyncio.timeout(20):
        while not await is_so():
            await asyncio.sleep(0.02)


async def _attacks(run: Run) -> None:
    """Who has no business here gets an answer, and no log tells what they sent."""
    said, base = run.text("forged"), f"{run.address}/channels"
    forged = {"webhook-id": "m-1", "webhook-timestamp": "1", "webhook-signature": f"v1,{said.encode().hex()}"}
    async with aiohttp.ClientSession() as http:
        for account in ("demo", "called", "garbled", "misplaced", HOOK_STRANGER):
            await _show_answer(
                run, http, "POST", f"{base}/webhook/{account}", json={"text": said}, headers=forged
            )
        for channel in ("feishu", "wechat_mp"):
            data = f"<xml><FromUserName>{FOLLOWER}</FromUserName>{said}"
            await _show_answer(
                run, http, "POST", f"{base}/{channel}/main?signature={FILE_SIGNATURE}", data=data
            )
        bearer = {"Authorization": f"Bearer {WRONG}"}
        for path in ("replies?after=0", f"files/{HOOK_STRANGER}?signature=x", f"live?{HOOK_STRANGER}"):
            await _show_answer(run, http, "GET", f"{base}/webhook/demo/{path}", headers=bearer)
        for path in ("healthz", "readyz", "metrics", "v3/sessions", f"{HOOK_STRANGER}?token={TOKEN}", ""):
            await _show_answer(run, http, "GET", f"{run.address}/{path}")
        await _show_answer(run, http, "PUT", f"{base}/webhook/demo", data=b"\xff\xfe" + said.encode())
    async with _console(run) as http:
        await _show_answer(run, http, "POST", "http://x/channels/console/local", json={"text": said})
        await _show_answer(run, http, "GET", "http://x/healthz")


async def _broken(run: Run) -> None:
    """Our own code breaks, with the worst words that it can find."""
    said = run.text("break")
    worst = RuntimeError(
        f"{said} {BOT_STRANGER} {run.feishu.app_secret} {sorted(run.feishu.interface._tokens)}"
    )

    async def broken(self: Feishu, *_: object) -> Any:
        raise worst

    with _patched(Feishu, "read", lambda *_: (_ for _ in ()).throw(worst)):
        await run.feishu.say(said, sender=BOT_OWNER)
    with _patched(Feishu, "send", broken):
        await run.feishu.say(said, sender=BOT_OWNER)
        await _until(lambda: "delivery.bug" in run.log.getvalue())
    settings = run.home.config.read_text().removeprefix("[web]\nport = 0\n")
    write_settings(run.home, settings + f"\n[channels.webhook.{HOOK_OWNER}]\nsenders = 4711\n{MISPLACED}\n")
    await _command(run, "reload", "--home", str(run.home.root))
    await _command(run, "config", "check", "--home", str(run.home.root))
    write_settings(run.home, settings)


async def _shown(run: Run) -> None:
    """All that an operator is shown, in each form."""
    for command in (
        ["status"],
        ["status", "--json"],
        ["config", "check"],
        ["config", "show"],
        ["dead", "list"],
        ["doctor"],
        ["doctor", "--json"],
        ["channels", "list"],
        ["channels", "list", "--json"],
    ):
        await _command(run, *command, "--home", str(run.home.root))
    async with connected(run.home.socket, "test", "1", "hello") as connection:
        await connection.send(ours.DaemonControl(request_id="1", command=commands.Status()))
        status = expect(await connection.next(), ours.DaemonStatusEvent).status
    assert {one.state.value for one in status.components} >= {"connected", "failed"}
    token = (run.home.state / "metrics.token").read_text().strip()
    run.evidence.mark(Kind.METRICS, token)
    async with aiohttp.ClientSession(headers={"Authorization": f"Bearer {token}"}) as http:
        async with http.get(f"{run.address}/metrics") as answer:
            assert answer.status == 200
            run.evidence.show("metrics", await answer.read())
    run.evidence.show("status over the socket", status.model_dump_json())
    assert run.running is not None
    run.evidence.show("status at the start", repr(run.running.state))


# --- how


def _client(run: Run, account: str) -> WebhookClient:
    assert run.running is not None
    client = run.running.client(account)
    client.conversation = CONVERSATION
    return client


async def _ask(run: Run, sender: str, text: str, files: list[File]) -> list[dict[str, Any]]:
    client = _client(run, "demo")
    sent = await asyncio.to_thread(client.send, sender, text, files)
    return await asyncio.to_thread(lambda: list(client.replies(sent, 20.0)))


async def _call(run: Run, sender: str, text: str) -> None:
    """Somebody writes to the account that answers by calling back, and waits until that came."""
    before = len(run.receiver.kept)
    await asyncio.to_thread(_client(run, "called").send, sender, text, [])
    if sender != HOOK_LOUD:
        await _until(lambda: len(run.receiver.kept) > before)


async def _control(run: Run, command: dict[str, Any]) -> dict[str, Any]:
    status: dict[str, Any] = await asyncio.to_thread(ask_daemon, run.home, command)
    run.evidence.show("status over the socket", json.dumps(status))
    return status


def _console(run: Run) -> aiohttp.ClientSession:
    return aiohttp.ClientSession(connector=aiohttp.UnixConnector(str(run.home.console_socket)))


async def _show_answer(
    run: Run, http: aiohttp.ClientSession, method: str, address: str, **request: Any
) -> None:
    try:
        async with http.request(method, address, **request) as answer:
            head = f"{answer.status} {dict(answer.headers)} "
            run.evidence.show("HTTP answers", head.encode() + await answer.read())
    except aiohttp.ClientError as error:
        run.evidence.show("HTTP answers", type(error).__name__)


async def _command(run: Run, *words: str) -> None:
    """Run a command of ours and take down what it prints."""
    out = io.StringIO()

    def call() -> None:
        with contextlib.redirect_stdout(out), contextlib.redirect_stderr(out):
            main(words)

    await asyncio.to_thread(call)
    place = "status by command" if words[0] == "status" else f"command {' '.join(words[:-2])}"
    run.evidence.show(place, out.getvalue())


@contextmanager
def _patched(kind: type, name: str, value: object) -> Iterator[None]:
    before = getattr(kind, name)
    setattr(kind, name, value)
    try:
        yield
    finally:
        setattr(kind, name, before)


def _rows(home: Home) -> str:
    with closing(sqlite3.connect(f"file:{home.db}?mode=ro", uri=True)) as db:
        return "\n".join(db.iterdump())


async def _until(condition: Any) -> None:
    async with asyncio.timeout(20):
        while not condition():
            await asyncio.sleep(0.005)
