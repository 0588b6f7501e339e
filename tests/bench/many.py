"""200 accounts, of which ten fail in ten ways: what the other 190 notice of it, and what a reload touches.

The 190 are pushed to, by a webhook each; every message runs as a turn of the echo agent, and its reply is
posted to a server here. The ten are pigeon's, which are polled at a platform here: in one half of a round it
answers, in the other each of the ten meets a trouble of its own. Halves alternate in one daemon, so that all
else is the same.
"""

from __future__ import annotations

import asyncio
import json
import logging
import os
import statistics
import tempfile
import time
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import aiohttp
import tomlkit
import uvloop
from aiohttp import web

from bridge.cli.webhook_client import sign
from bridge.process import raise_descriptor_limit
from tests.bench.commands import COMMAND, free_port
from tests.bench.figures import Figure
from tests.bench.outside import ROOT
from tests.bench.webhooks import ChildError

GOOD, TROUBLES = 190, 10
RATE = 40.0  # messages a second
HALF_SECONDS = 15.0
WARM_SECONDS = 3.0
POLL_SECONDS = 5.0
LAST_SECONDS = 10.0  # for replies after the last message of a half
SECRET, CALLBACK_SECRET = "whsec_" + "QUJD" * 11, "whsec_" + "REVG" * 11
VARIABLES = {
    "PYTHONPATH": str(ROOT / "tests" / "outside" / "pigeon"),
    "BENCH_SECRET": SECRET,
    "BENCH_CALLBACK_SECRET": CALLBACK_SECRET,
}


def refused(request: web.BaseRequest) -> None:
    """The connection ends without a word."""
    if request.transport is not None:
        request.transport.abort()
    raise ConnectionError


async def trouble(number: int, request: web.BaseRequest) -> web.StreamResponse:
    """What the account of that number meets."""
    match number:
        case 0:
            refused(request)
        case 1:
            await asyncio.sleep(3600)  # it stalls
        case 2:
            return web.Response(status=401)
        case 3:
            return web.Response(status=429, headers={"Retry-After": "1"})
        case 4:
            return web.Response(status=500)
        case 5:
            return web.Response(body=b"<html>" * 1000)
        case 6:
            return web.Response(body=b"[" * 1_000_000)  # and so deep
        case 7:
            return web.Response(body=b" " * 8_000_000)  # more than is taken
        case 8:
            response = web.StreamResponse()
            await response.prepare(request)
            await response.write(b'{"updates": [')  # half an answer, and the end
            refused(request)
    await asyncio.sleep(1)  # updates that nobody can read, again and again
    bad = [{"id": n, "sender": None} for n in range(50)]
    return web.json_response({"updates": bad, "next": time.monotonic_ns()})


@dataclass
class World:
    """The platforms of all accounts. ``is_failing``: the ten meet their troubles."""

    is_failing: bool = False
    port: int = 0
    sockets: set[int] = field(default_factory=set)
    due: dict[str, float] = field(default_factory=dict)  # when each message was sent that has no reply yet
    replies: list[float] = field(default_factory=list)

    async def answer(self, request: web.BaseRequest) -> web.StreamResponse:
        if request.path == "/replies":
            data = json.loads(await request.read())["data"]
            sent = self.due.pop(data["in_reply_to"], None)
            if sent is not None:
                self.replies.append(time.perf_counter() - sent)
            return web.Response()
        self.sockets.add(id(request.transport))
        if self.is_failing:
            return await trouble(int(request.path.split("/")[1]), request)
        await asyncio.sleep(float(request.query.get("wait", "0")))
        return web.json_response({"updates": [], "next": 0})


@asynccontextmanager
async def world() -> AsyncIterator[World]:
    here = World()
    runner = web.ServerRunner(web.Server(here.answer), shutdown_timeout=0.1)
    await runner.setup()
    await web.TCPSite(runner, "127.0.0.1", 0, backlog=1024).start()
    here.port = runner.addresses[0][1]
    try:
        yield here
    finally:
        await runner.cleanup()


def settings(port: int, world_port: int, title: str = "") -> str:
    """``title`` changes what one of pigeon's accounts is, and no other."""
    own = f"127.0.0.1:{world_port}"
    webhooks = {
        f"w{number}": {
            "senders": "anyone",
            "callback_url": f"http://{own}/replies",
            "private_hosts": [own],
            "credentials": {
                "secrets": {"env": "BENCH_SECRET"},
                "callback_secrets": {"env": "BENCH_CALLBACK_SECRET"},
            },
        }
        for number in range(GOOD)
    }
    pigeons: dict[str, Any] = {
        f"p{number}": {
            "base": f"http://{own}/{number}",
            "poll_seconds": POLL_SECONDS,
            "credentials": {"token": {"env": "BENCH_SECRET"}},
        }
        for number in range(TROUBLES)
    }
    pigeons["p0"]["owner"] = title
    tables = {"webhook": webhooks, "pigeon": pigeons}
    return tomlkit.dumps({"web": {"port": port}, "log": {"level": "error"}, "channels": tables})


@asynccontextmanager
async def running(home: Path, port: int) -> AsyncIterator[None]:
    process = await asyncio.create_subprocess_exec(
        str(COMMAND), "run", "--home", str(home),
        env={**os.environ, **VARIABLES}, stdout=asyncio.subprocess.DEVNULL, stderr=asyncio.subprocess.DEVNULL,
    )  # fmt: skip
    try:
        while not await _is_ready(port):
            if process.returncode is not None:
                raise ChildError(f"the daemon ended with {process.returncode}")
            await asyncio.sleep(0.2)
        yield
    finally:
        process.terminate()
        await process.wait()


async def _is_ready(port: int) -> bool:
    """Whether every account has contact."""
    try:
        reader, writer = await asyncio.open_connection("127.0.0.1", port)
    except OSError:
        return False
    writer.write(b"GET /readyz HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n")
    answer = await reader.read()
    writer.close()
    return b" 200 " in answer.partition(b"\r\n")[0]


async def command(home: Path, *args: str) -> int:
    process = await asyncio.create_subprocess_exec(
        str(COMMAND), *args, "--home", str(home),
        env={**os.environ, **VARIABLES}, stdout=asyncio.subprocess.DEVNULL, stderr=asyncio.subprocess.DEVNULL,
    )  # fmt: skip
    return await process.wait()


class Load:
    """Sends messages at their times, whatever becomes of the earlier ones."""

    def __init__(self, port: int, here: World, client: aiohttp.ClientSession) -> None:
        self._port, self._world, self._client = port, here, client
        self._sent = 0
        self._claims: list[float] = []

    async def half(self, seconds: float) -> tuple[float, float]:
        """The p99, in seconds, of being answered 200 and of having the reply.

        Raises:
            ChildError: a message was not taken, or not answered.
        """
        self._claims, self._world.replies = [], []
        began = time.perf_counter()
        async with asyncio.TaskGroup() as tasks:
            for number in range(int(seconds * RATE)):
                await asyncio.sleep(began + number / RATE - time.perf_counter())
                tasks.create_task(self._send())
        async with asyncio.timeout(LAST_SECONDS):
            while self._world.due:
                await asyncio.sleep(0.01)
        return p99(self._claims), p99(self._world.replies)

    async def _send(self) -> None:
        self._sent += 1
        id_, account = f"many-{self._sent}", self._sent % GOOD
        now = int(time.time())  # noqa: TID251 - what is signed is of now
        data = {
            "conversation_id": f"c{account}",
            "message_id": id_,
            "sender": {"id": "u1"},
            "text": "hello",
            "is_direct": True,
        }
        stamp = time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime(now))
        body = json.dumps({"type": "message.created", "timestamp": stamp, "data": data}).encode()
        headers = {"Content-Type": "application/json", **sign(SECRET, id_, now, body)}
        began = self._world.due[id_] = time.perf_counter()
        url = f"http://127.0.0.1:{self._port}/channels/webhook/w{account}"
        async with self._client.post(url, data=body, headers=headers) as answer:
            await answer.read()
            if answer.status >= 300:
                raise ChildError(f"a message was answered {answer.status}")
        self._claims.append(time.perf_counter() - began)


def p99(seconds: list[float]) -> float:
    return statistics.quantiles(seconds, n=100)[-1]


def measure(rounds: int, say: Callable[[str], None]) -> list[Figure]:
    logging.getLogger("aiohttp").setLevel(
        logging.CRITICAL
    )  # its server tells of each connection that we break
    raise_descriptor_limit()
    return uvloop.run(_measure(rounds, say))


async def _measure(rounds: int, say: Callable[[str], None]) -> list[Figure]:
    halves: dict[bool, list[tuple[float, float]]] = {False: [], True: []}
    with tempfile.TemporaryDirectory(prefix="tb-bench-") as folder:
        home, port = Path(folder, "home"), free_port()
        home.mkdir(mode=0o700)
        config = home / "config.toml"
        config.touch(mode=0o600)
        async with world() as here, aiohttp.ClientSession() as client:
            config.write_text(settings(port, here.port))
            async with running(home, port):
                load = Load(port, here, client)
                await load.half(WARM_SECONDS)
                touched = await _reload(home, config, port, here)
                say(f"a reload of one account opened {touched} new connection to the platforms of ten")
                for number in range(rounds):
                    for failing in (False, True) if number % 2 else (True, False):
                        here.is_failing = failing
                        await command(home, "reload")  # whoever was parked is tried again
                        await load.half(WARM_SECONDS)
                        halves[failing].append(await load.half(HALF_SECONDS))
                    say(f"many round {number + 1}: " + _told(halves))
    return [_figure(0, "being stored", halves), _figure(1, "having a reply", halves)]


async def _reload(home: Path, config: Path, port: int, here: World) -> int:
    """Change one account, and count the connections that are new at the platforms.

    Raises:
        ChildError: another account connected anew, too.
    """
    await asyncio.sleep(2 * POLL_SECONDS)
    here.sockets.clear()
    await asyncio.sleep(2 * POLL_SECONDS)
    before = set(here.sockets)
    config.write_text(settings(port, here.port, title="somebody"))
    if await command(home, "reload"):
        raise ChildError("the reload failed")
    here.sockets.clear()
    await asyncio.sleep(2 * POLL_SECONDS)
    new = len(here.sockets - before)
    if len(before) != TROUBLES or new > 1:
        raise ChildError(f"of {len(before)} connections {new} were made anew by the reload of one account")
    return new


def _told(halves: dict[bool, list[tuple[float, float]]]) -> str:
    return ", ".join(
        f"{'ten failing' if failing else 'all well'} {claim * 1000:.1f} and {reply * 1000:.1f} ms"
        for failing in (False, True)
        for claim, reply in halves[failing][-1:]
    )


def _figure(place: int, what: str, halves: dict[bool, list[tuple[float, float]]]) -> Figure:
    well, failing = ([half[place] for half in halves[which]] for which in (False, True))
    return Figure(
        name="many",
        what=f"p99 of {what}, 190 accounts while ten others fail, against while they do not",
        ratios=tuple(bad / good for bad, good in zip(failing, well, strict=True)),
        must=1.1,
        aim=1.05,
        most=True,
        absolute=f"{statistics.median(failing) * 1000:.1f} ms, else {statistics.median(well) * 1000:.1f} ms",
    )
