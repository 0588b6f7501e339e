"""A whole daemon inside a test: its home, the other side of its account, and how it is stopped."""

import asyncio
import json
import os
import shutil
import signal
import socket
import tempfile
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import asynccontextmanager, contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from bridge.cli.webhook_client import WebhookClient
from bridge.clock import Clock, SystemClock
from bridge.config import load
from bridge.daemon import Ready, StoreWrap, run_daemon
from bridge.paths import Home, write_private

SECRET = "whsec_" + "QUJD" * 11
TOKEN = "token-4711"
DEMO = '[channels.webhook.demo]\nowner = "you"\nremote_tools = "owner"\n'


@contextmanager
def short_home(settings: str = DEMO, parent: str = "/tmp") -> Iterator[Home]:
    """A home whose socket's path is short enough anywhere, with an account ``demo`` and a free port."""
    folder = Path(tempfile.mkdtemp(prefix="tb-", dir=parent))
    home = Home(folder)
    try:
        write_settings(home, settings)
        keep(home, "demo")
        yield home
    finally:
        shutil.rmtree(folder, ignore_errors=True)


def write_settings(home: Home, settings: str) -> None:
    """However full the disk of this machine is, files are taken in."""
    disk = "" if "[media]" in settings else "[media]\nmin_free_percent = 0\n"
    write_private(home.config, f"[web]\nport = 0\n{disk}{settings}".encode())


def keep(home: Home, account: str) -> None:
    path = home.credentials("webhook", account)
    home.private_dir(path.parent)
    write_private(path, json.dumps({"secrets": [SECRET], "ask_token": TOKEN}).encode())


def free_port() -> int:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        return int(taken.getsockname()[1])


@dataclass
class Running:
    """``code`` once it has ended, or ``error``."""

    home: Home
    ready: asyncio.Event = field(default_factory=asyncio.Event)
    state: Ready | None = None
    code: int | None = None
    error: BaseException | None = None

    @property
    def address(self) -> str:
        assert self.state is not None
        return self.state.address

    def client(self, account: str = "demo") -> WebhookClient:
        port = int(self.address.rpartition(":")[2])
        return WebhookClient("127.0.0.1", port, f"/channels/webhook/{account}", SECRET, TOKEN)

    async def ask(self, text: str, account: str = "demo") -> list[str]:
        """Send a message and return the texts of its reply."""
        client = self.client(account)
        sent = await asyncio.to_thread(client.send, "you", text, [])
        parts: list[dict[str, Any]] = await asyncio.to_thread(lambda: list(client.replies(sent, 20.0)))
        return [part["text"] for part in parts]


@asynccontextmanager
async def daemon(
    home: Home, clock: Clock | None = None, store_wrap: StoreWrap | None = None
) -> AsyncIterator[Running]:
    """Run one; at the end it is told to stop by a signal and waited for."""
    running = Running(home)

    def ready(state: Ready) -> None:
        running.state = state
        running.ready.set()

    async def run() -> None:
        try:
            config = load(home.config)
            running.code = await run_daemon(
                home, config, clock=clock or SystemClock(), store_wrap=store_wrap, ready=ready
            )
        except Exception as error:  # noqa: BLE001 - looked at by the test
            running.error = error
        finally:
            running.ready.set()

    async with asyncio.TaskGroup() as tasks:
        task = tasks.create_task(run())
        await running.ready.wait()
        try:
            yield running
        finally:
            if signal.getsignal(signal.SIGTERM) is not signal.SIG_DFL:  # it listens: not at its very end
                os.kill(os.getpid(), signal.SIGTERM)
            else:
                task.cancel()


async def until_ended(running: Running) -> None:
    await _until(lambda: running.code is not None or running.error is not None)


async def _until(condition: Callable[[], bool]) -> None:
    async with asyncio.timeout(20):
        while not condition():
            await asyncio.sleep(0.002)
