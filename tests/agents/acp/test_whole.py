"""The agent in a whole daemon: what the owner meets in the chat, and what a ``kill -9`` leaves."""

import asyncio
import json
import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from bridge.cli.webhook_client import WebhookClient
from bridge.errors import BridgeError
from bridge.paths import Home
from bridge.relay.texts import Language, Text, say
from tests.agents.acp.stage import PROGRAM, alive
from tests.daemons import DEMO, SECRET, TOKEN, daemon, free_port, short_home, write_settings
from tests.test_approvals import Owner

DEADLINE_SECONDS = 20.0


def settings(folder: Path, fault: str = "", more: str = "") -> str:
    (folder / "sessions").mkdir(exist_ok=True)
    env = [f"LOG={folder / 'log'}", f"STATE={folder / 'sessions'}", f"FAULT={fault}"]
    agent = f"command = {json.dumps([sys.executable, PROGRAM])}\nenv = {json.dumps(env)}\n"
    return (
        f'{DEMO}guest_agent = "echo"\n{more}[daemon]\nagent = "coder"\n[agents.coder]\ntype = "acp"\n{agent}'
    )


async def test_an_owner_works_with_it_and_goes_on_after_a_restart(tmp_path: Path) -> None:
    with short_home(settings(tmp_path)) as home:
        async with daemon(home) as running:
            assert running.error is None
            assert await running.ask("hello") == ["hello"]
        async with daemon(home) as running:
            assert await running.ask("again") == ["again"]
    told = [json.loads(line) for line in (tmp_path / "log").read_text().splitlines()]
    methods = [one.get("method") for one in told]
    assert (methods.count("session/new"), methods.count("session/load")) == (1, 1)
    assert not any("Now:" in json.dumps(one) for one in told)  # it knew all of it


async def test_a_missing_sign_in_is_told_in_the_chat_with_its_cure(tmp_path: Path) -> None:
    with short_home(settings(tmp_path, "auth")) as home:
        async with daemon(home) as running:
            (said,) = await running.ask("hello")
    assert said.startswith("I could not answer this: ")
    assert "is not signed in on the machine of this bot: sign in with the program's own command" in said


async def test_a_question_with_three_answers_is_answered_by_its_number(tmp_path: Path) -> None:
    with short_home(settings(tmp_path, more='approvals = "ask"\n')) as home:
        async with daemon(home) as running:
            owner = Owner(running)
            await owner.say("shell=date")
            question = await owner.read()
            assert "1. Once\n2. Slowly\n3. No" in question
            assert '"command": "date"' in question
            await owner.say("/approve 2")
            assert (await owner.read()).startswith("Approved")
            assert await owner.read() == "slowly"


@contextmanager
def child(home: Home) -> Iterator["subprocess.Popen[bytes]"]:
    """A daemon in a process of its own, which does not outlive the test."""
    with open(home.root / "out", "ab") as out:
        start = "import sys; from bridge.cli.main import main; sys.exit(main())"
        argv = [sys.executable, "-c", start, "run", "--home", str(home.root)]
        with subprocess.Popen(argv, stdout=out, stderr=out) as process:
            try:
                yield process
            finally:
                process.kill()


async def until_sent(client: WebhookClient, text: str) -> None:
    """Send a message, once the daemon is there to take it."""
    while True:
        with suppress(BridgeError):  # it does not listen yet, or is not ready
            await asyncio.to_thread(client.send, "you", text, [])
            return
        await asyncio.sleep(0.05)


async def until_told(client: WebhookClient) -> list[str]:
    while True:
        with suppress(BridgeError):
            if parts := await asyncio.to_thread(client._ask, 5.0):
                return [part["text"] for part in parts]
        await asyncio.sleep(0.05)


async def test_killed_in_a_turn_the_daemon_leaves_no_process_and_the_message_is_reported(
    tmp_path: Path,
) -> None:
    with short_home() as home:
        port, log = free_port(), tmp_path / "log"
        write_settings(home, settings(tmp_path))
        home.config.write_text(home.config.read_text().replace("port = 0", f"port = {port}"))
        client = WebhookClient("127.0.0.1", port, "/channels/webhook/demo", SECRET, TOKEN)
        async with asyncio.timeout(3 * DEADLINE_SECONDS):
            with child(home) as first:
                await until_sent(client, "deaf")
                while not (log.exists() and '"pids"' in log.read_text()):
                    await asyncio.sleep(0.02)
                (pids,) = [
                    one["pids"] for one in map(json.loads, log.read_text().splitlines()) if "pids" in one
                ]
                os.kill(first.pid, signal.SIGKILL)
                first.wait()
                while any(map(alive, pids)):
                    await asyncio.sleep(0.02)
            with child(home):
                told = await until_told(client)
    assert told == [say(Text.INTERRUPTED, Language.EN)]
