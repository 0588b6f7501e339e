"""The example in plain shell, run as it stands before a real daemon."""

import asyncio
import json
import os
import shutil
import subprocess
from pathlib import Path

import pytest

from bridge.paths import Home
from tests.channels.webhook.serving import DEMO, ROUTE, Live, live
from tests.channels.webhook.tools import CALLBACK, OTHER
from tests.daemons import short_home

SCRIPT = Path(__file__).parents[2] / "examples" / "webhook.sh"
MISSING = [program for program in ("sh", "curl", "openssl", "awk", "sed", "od") if not shutil.which(program)]

pytestmark = pytest.mark.skipif(bool(MISSING), reason=f"not installed here: {', '.join(MISSING)}")


async def run(home: Home, there: Live, *arguments: str) -> subprocess.CompletedProcess[str]:
    environment = {
        **os.environ,
        "CREDENTIALS": str(home.credentials("webhook", "demo")),
        "URL": f"{there.running.address}{ROUTE}",
    }
    return await asyncio.to_thread(
        subprocess.run,
        ["sh", str(SCRIPT), *arguments],
        env=environment,
        capture_output=True,
        text=True,
        timeout=50,
        check=False,
    )


async def test_a_text_of_any_kind_is_sent_asked_for_and_settled() -> None:
    text = 'say "hello" \\ and\n\ta second 你好 $line'
    with short_home() as home:
        async with live(home) as there:
            done = await run(home, there, text)
            assert (done.returncode, done.stderr) == (0, "")
            reply = json.loads(done.stdout)
            assert reply["text"] == f"You said: {text}"
            assert await there.replies(wait=0) == []


async def test_a_file_travels_inside_the_message(tmp_path: Path) -> None:
    note = tmp_path / "my notes.txt"
    note.write_bytes(b"remember the milk\n" * 10_000)
    with short_home() as home:
        async with live(home, f'{DEMO}owner = "you"\n') as there:
            done = await run(home, there, "look", str(note))
    assert (done.returncode, done.stderr) == (0, "")
    assert "my notes.txt" in done.stdout


async def test_a_wrong_secret_is_told_and_ends_with_1() -> None:
    with short_home() as home:
        async with live(home) as there:
            home.credentials("webhook", "demo").write_text(json.dumps({"secrets": [OTHER]}, indent=2))
            done = await run(home, there, "hello")
    assert (done.returncode, done.stderr) == (1, "refused with status 401\n")


async def test_an_account_that_posts_its_replies_is_told_of() -> None:
    calling = 'callback_url = "http://127.0.0.1:9/"\nprivate_hosts = ["127.0.0.1:9"]\n'
    with short_home() as home:
        async with live(home, DEMO + calling, callback_secrets=[CALLBACK]) as there:
            done = await run(home, there, "hello")
    told = "sent, but no reply can be asked for: an account with a callback_url posts them there\n"
    assert (done.returncode, done.stderr) == (1, told)
