"""The example in Python, as a program before a real daemon, and its verification by itself."""

import asyncio
import json
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from standardwebhooks import Webhook as Reference

from bridge.clock import SystemClock
from bridge.paths import Home
from examples.webhook_client import (
    Client,
    Receiver,
    RefusedError,
    attachment,
    saved,
    secret_texts,
    sign,
    verify,
)
from tests.channels.webhook.serving import DEMO, ROUTE, Live, live, plain_event
from tests.channels.webhook.tools import CALLBACK, INBOUND, OTHER
from tests.daemons import SECRET, TOKEN, free_port, short_home

SCRIPT = Path(__file__).parents[2] / "examples" / "webhook_client.py"
OWNED = f'{DEMO}owner = "you"\nremote_tools = "owner"\n'


def now() -> int:
    return int(SystemClock().now().timestamp())


def credentials(home: Home) -> str:
    return str(home.credentials("webhook", "demo"))


async def run(home: Home, *arguments: str) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, str(SCRIPT), "--credentials", credentials(home), *arguments]
    return await asyncio.to_thread(
        subprocess.run, command, capture_output=True, text=True, timeout=50, check=False
    )


def at(there: Live) -> tuple[str, str]:
    return "--url", f"{there.running.address}{ROUTE}"


async def test_a_message_with_a_file_is_sent_and_its_reply_printed_and_saved(tmp_path: Path) -> None:
    note = tmp_path / "笔记.txt"
    note.write_text("remember the milk", encoding="utf-8")
    with short_home() as home:
        async with live(home, OWNED) as there:
            sent = await run(home, "send", "look at this", "--file", str(note), *at(there))
            assert (sent.returncode, sent.stderr) == (0, "")
            assert "You said: look at this" in sent.stdout
            assert "笔记.txt" in sent.stdout
            drawn = await run(home, "send", "picture 图.png 48x30", *at(there), "--save", str(tmp_path))
            assert (drawn.returncode, f"saved as {tmp_path.resolve()}/图.png" in drawn.stdout) == (0, True)
            assert (tmp_path / "图.png").read_bytes().startswith(b"\x89PNG")
            assert await there.replies(wait=0) == []  # all of it was settled


async def test_a_file_by_address_is_fetched_from_where_it_was_asked_for(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("channels.webhook.files.INLINE_BYTES", 10)
    with short_home() as home:
        async with live(home, OWNED) as there:
            drawn = await run(home, "send", "picture a.png 48x30", *at(there), "--save", str(tmp_path))
    assert (drawn.returncode, drawn.stderr) == (0, "")
    assert (tmp_path / "a.png").read_bytes().startswith(b"\x89PNG")


async def test_what_is_refused_ends_with_1_and_says_why(tmp_path: Path) -> None:
    large = tmp_path / "large"
    large.write_bytes(bytes(262_145))
    with short_home() as home:
        async with live(home, DEMO, secrets=[INBOUND]) as there:
            home.credentials("webhook", "demo").write_text(json.dumps({"secrets": [OTHER]}))
            wrong = await run(home, "send", "hello", *at(there))
            too_large = await run(home, "send", "hello", "--file", str(large), *at(there))
    assert (wrong.returncode, wrong.stderr[:10]) == (1, "status 401")
    assert (too_large.returncode, "over 256 KiB" in too_large.stderr) == (1, True)


@contextmanager
def receiving(port: int, file: Path) -> Iterator[subprocess.Popen[str]]:
    command = [sys.executable, str(SCRIPT), "--credentials", str(file), "receive", "--port", str(port)]
    process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    try:
        assert process.stderr is not None
        assert "listening" in process.stderr.readline()
        yield process
    finally:
        process.terminate()
        process.communicate(timeout=20)


async def test_replies_are_received_at_a_callback_and_printed_once() -> None:
    port = free_port()
    calling = f'callback_url = "http://127.0.0.1:{port}/"\nprivate_hosts = ["127.0.0.1:{port}"]\n'
    with short_home() as home:
        async with live(home, DEMO + calling, callback_secrets=[CALLBACK]) as there:
            with receiving(port, home.credentials("webhook", "demo")) as process:
                assert process.stdout is not None
                for number in (1, 2):
                    assert (await there.post(plain_event("hello"), f"msg_{number}")).status == 202
                    printed = json.loads(await asyncio.to_thread(process.stdout.readline))
                    assert printed["type"] == "reply.created"
                    assert printed["data"]["text"] == "You said: hello"
                for secret, status in ((CALLBACK, 204), (CALLBACK, 204), (OTHER, 401)):
                    headers = headers_of(secret, b"{}")
                    async with there.http.post(
                        f"http://127.0.0.1:{port}/", data=b"{}", headers=headers
                    ) as told:
                        assert told.status == status
                assert await asyncio.to_thread(process.stdout.readline) == "{}\n"


def headers_of(secret: str, body: bytes, age_seconds: int = 0) -> dict[str, str]:
    stamp = str(now() - age_seconds)
    signature = sign(secret, "msg_1", stamp, body)
    return {"webhook-id": "msg_1", "webhook-timestamp": stamp, "webhook-signature": signature}


def test_signatures_are_those_of_the_reference_library() -> None:
    Reference(SECRET).verify('{"a":1}', headers_of(SECRET, b'{"a":1}'))
    assert verify([OTHER, SECRET], headers_of(SECRET, b"x"), b"x")


def test_anything_else_is_not_verified() -> None:
    good = headers_of(SECRET, b"x")
    assert not verify([SECRET], good, b"y")
    assert not verify([OTHER], good, b"x")
    assert not verify([], good, b"x")
    assert not verify([SECRET], headers_of(SECRET, b"x", 900), b"x")
    for name, value in (("webhook-id", ""), ("webhook-timestamp", "٣"), ("webhook-signature", "v1,é")):
        assert not verify([SECRET], {**good, name: value}, b"x")
    assert not verify([SECRET], {}, b"x")


def test_a_repeat_is_known_and_old_ids_make_room(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("examples.webhook_client.KEPT_IDS", 2)
    with Receiver("127.0.0.1", 0, [SECRET]) as server:
        assert [server.is_new(one) for one in ("a", "a", "b", "c", "a")] == [True, False, True, True, True]


def test_the_current_secret_is_the_first_whether_or_not_one_is_being_replaced() -> None:
    assert secret_texts(["a", {"secret": "b", "until": "2100-01-01T00:00:00Z"}]) == ["a", "b"]


def test_nobody_there_is_told_after_all_tries(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    slept: list[float] = []
    monkeypatch.setattr(time, "sleep", slept.append)
    client = Client(f"http://127.0.0.1:{free_port()}/x", SECRET, TOKEN)
    with pytest.raises(RefusedError, match="nobody answers"):
        client.send("hello", [], "c", "you")
    assert slept == [1, 2, 5, 10, 30, 60, 0]
    note = tmp_path / "a.unknown-kind"
    note.write_bytes(b"x")
    assert attachment(note)["mime_type"] == "application/octet-stream"


async def test_the_credentials_may_stand_behind_the_command() -> None:
    with short_home() as home:
        async with live(home, OWNED) as there:
            command = [
                sys.executable,
                str(SCRIPT),
                "send",
                "hi",
                "--credentials",
                credentials(home),
                *at(there),
            ]
            sent = await asyncio.to_thread(
                subprocess.run, command, capture_output=True, text=True, timeout=50, check=False
            )
    assert (sent.returncode, sent.stdout) == (0, "You said: hi\n")


def test_a_file_that_is_there_is_not_overwritten(tmp_path: Path) -> None:
    for number, name in enumerate(("a.png", "a-2.png", "a-3.png")):
        assert saved(tmp_path, "a.png", bytes([number])) == tmp_path.resolve() / name
    assert (tmp_path / "a.png").read_bytes() == b"\0"


async def test_an_account_that_posts_its_replies_and_a_missing_file_are_told_of(tmp_path: Path) -> None:
    calling = 'callback_url = "http://127.0.0.1:9/"\nprivate_hosts = ["127.0.0.1:9"]\n'
    with short_home() as home:
        async with live(home, DEMO + calling, callback_secrets=[CALLBACK]) as there:
            posted = await run(home, "send", "hi", *at(there))
            missing = await run(home, "send", "hi", "--credentials", str(tmp_path / "none"), *at(there))
    assert (posted.returncode, "with a callback_url posts them there" in posted.stderr) == (1, True)
    assert (missing.returncode, missing.stderr.count("\n")) == (1, 1)
