"""What broke comparable systems in the field, tried on a whole daemon; the numbers name the cases."""

import asyncio
import json
import os
import signal
import sqlite3
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, closing
from typing import Any

import pytest

from bridge import logs
from bridge.channel import ChannelError, ConfigError, CredentialsError, UnreachableError
from bridge.channel.testing.fakes.feishu import FakeFeishu, FakeFile, Refusal
from bridge.channel.testing.fakes.webhook_receiver import CallbackReceiver
from bridge.cli.webhook_client import File
from bridge.client import connected, expect
from bridge.health import State
from bridge.paths import Home, write_private
from bridge.protocol import commands, ours
from channels.feishu import Feishu
from tests.daemons import DEMO, Running, daemon, short_home, until_ended, write_settings
from tests.media.pictures import HEIC, HTML, animated, picture, png_header

KEPT = ("credentials", "config.toml")  # what an operator wrote


def spilt(home: Home, secret: str) -> list[str]:
    """The files under the home that hold ``secret``, but for what the operator wrote."""
    found = [path for path in home.root.rglob("*") if path.is_file()]
    return [
        str(path)
        for path in found
        if path.relative_to(home.root).parts[0] not in KEPT and secret.encode() in path.read_bytes()
    ]


async def status(home: Home) -> ours.DaemonStatus:
    async with connected(home.socket, "test", "1", "hello") as connection:
        await connection.send(ours.DaemonControl(request_id="1", command=commands.Status()))
        return expect(await connection.next(), ours.DaemonStatusEvent).status


async def eventually(condition: Any) -> None:
    async with asyncio.timeout(20):
        while not await condition():
            await asyncio.sleep(0.005)


# --- 57: finished replies outlive the process -------------------------------------------------


@pytest.mark.parametrize("how", [signal.SIGTERM, signal.SIGINT])
async def test_case_57_twelve_finished_replies_outlive_a_stop_and_go_out_once(how: signal.Signals) -> None:
    with short_home() as home:
        async with daemon(home) as running:
            client = running.client()
            sent = []
            for n in range(12):
                client.conversation = f"chat {n}"
                sent.append(await asyncio.to_thread(client.send, "you", f"text {n}", []))

            async def all_answered() -> bool:
                return len(await asyncio.to_thread(client.waiting)) == 12

            await eventually(all_answered)
            os.kill(os.getpid(), how)
            await until_ended(running)
        async with daemon(home) as running:
            client = running.client()
            parts = await asyncio.to_thread(lambda: list(client.all_replies()))
            assert sorted(part["in_reply_to"] for part in parts) == sorted(sent)
            assert await asyncio.to_thread(client.waiting) == []


# --- 77, 78: no secret leaves its place -------------------------------------------------------


@asynccontextmanager
async def feishu(home: Home, fake: FakeFeishu) -> AsyncIterator[Running]:
    """A daemon whose one account is a bot of the fake platform, which pushes to it."""
    path = home.credentials("feishu", "main")
    home.private_dir(path.parent)
    secrets = {
        "app_secret": fake.app_secret,
        "verification_token": fake.token,
        "encrypt_key": fake.encrypt_key,
    }
    write_private(path, json.dumps(secrets).encode())
    write_settings(
        home,
        f'[channels.feishu.main]\napp_id = "{fake.app_id}"\nbase = "{fake.base}"\nowner = "ou_fake_owner"\n'
        'remote_tools = "owner"\n',
    )
    async with daemon(home) as running:
        fake.pusher.to = f"{running.address}/channels/feishu/main"
        yield running


def rows(home: Home) -> str:
    """All that the tables hold, as SQL."""
    with closing(sqlite3.connect(f"file:{home.db}?mode=ro", uri=True)) as db:
        return "\n".join(db.iterdump())


async def test_case_77_of_a_feishu_file_only_an_opaque_reference_is_kept(
    capsys: pytest.CaptureFixture[str],
) -> None:
    async with FakeFeishu(delays=()) as fake:
        with short_home() as home:
            logs.configure("debug", as_json=True)
            async with feishu(home, fake):
                await fake.say("look", files=[FakeFile("图.png", "image/png", picture("PNG"))])
                await fake.wait_sent(1)
                shown = (await status(home)).model_dump_json()
                assert any("/resources/" in request for request in fake.requests)  # it was fetched
            told = capsys.readouterr().err + shown + rows(home) + fake.sent[0].text
            for secret in (fake.app_secret, fake.token, fake.encrypt_key, *fake.interface._tokens):
                assert secret not in told
                assert spilt(home, secret) == []
            assert fake.base not in rows(home)
            assert list((home.state / "media").rglob("*图.png"))


async def test_case_77_the_secrets_of_a_webhook_file_and_its_address_are_nowhere_once_it_is_answered(
    capsys: pytest.CaptureFixture[str],
) -> None:
    async with CallbackReceiver([]) as host:
        host.files["a"], host.file_token = picture("PNG"), "file-token-4712"
        with short_home() as home:
            write_settings(
                home,
                DEMO + f'file_hosts = ["{host.host}"]\nprivate_hosts = ["{host.host}"]\n',
            )
            path = home.credentials("webhook", "demo")
            write_private(
                path, json.dumps(json.loads(path.read_text()) | {"file_token": host.file_token}).encode()
            )
            logs.configure("debug", as_json=True)
            async with daemon(home) as running:
                client = running.client()
                addresses = [f"{host.address}/files/{name}?signature=hunter2-4713" for name in ("a", "gone")]
                files = [File("图.png", "image/png", picture("PNG"), url) for url in addresses]
                sent = await asyncio.to_thread(client.send, "you", "look", files)
                parts = await asyncio.to_thread(lambda: list(client.replies(sent, 20.0)))
                shown = (await status(home)).model_dump_json()
            told = capsys.readouterr().err + shown + rows(home) + json.dumps(parts)
            assert host.file_requests[0]["Authorization"] == f"Bearer {host.file_token}"
            assert host.file_token not in told
            assert spilt(home, host.file_token) == []
            assert "hunter2-4713" not in told
            assert host.address not in told


SECRET = "AAE-4714-very-secret"
ADDRESS = f"https://api.example.org/bot123:{SECRET}/getMe"


@pytest.mark.parametrize(
    ("error", "state"),
    [
        (RuntimeError(f"cannot reach {ADDRESS}"), State.BACKOFF),
        (OSError(5, "input/output", ADDRESS), State.BACKOFF),
        (UnreachableError(f"{ADDRESS} is down"), None),
        (ChannelError(f"{ADDRESS} answered 500"), None),
        (CredentialsError(f"{ADDRESS} answered 401"), State.FAILED),
        (ConfigError(f"{ADDRESS} is not one of ours"), State.FAILED),
    ],
    ids=lambda value: type(value).__name__ if isinstance(value, Exception) else "",
)
async def test_case_78_an_error_at_the_start_with_a_secret_in_it_shows_none(
    error: Exception, state: State | None, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    tries: list[str] = []

    async def probe(self: Feishu) -> Any:
        tries.append("")
        raise error

    monkeypatch.setattr(Feishu, "probe", probe)
    async with FakeFeishu(app_secret=SECRET, delays=()) as fake:
        with short_home() as home:
            logs.configure("debug", as_json=True)
            async with feishu(home, fake):

                async def told_of() -> bool:
                    component = (await status(home)).components[0]
                    return bool(tries) and (state is None or component.state.value == state.value)

                await eventually(told_of)
                shown = (await status(home)).model_dump_json()
            assert shown.count("feishu:main") == 1
            assert SECRET not in shown + capsys.readouterr().err + rows(home)
            assert spilt(home, SECRET) == []


async def test_case_78_a_platform_that_repeats_the_secret_in_its_refusal_is_not_quoted(
    capsys: pytest.CaptureFixture[str],
) -> None:
    async with FakeFeishu(app_secret=SECRET, delays=()) as fake:
        for code in (10014, 99991662, 7):
            seen = len(fake.requests)
            fake.next(*[Refusal(code, text=ADDRESS)] * 9, at="token")
            with short_home() as home:
                logs.configure("debug", as_json=True)
                async with feishu(home, fake):

                    async def was_asked(seen: int = seen) -> bool:
                        return len(fake.requests) > seen

                    await eventually(was_asked)
                    shown = (await status(home)).model_dump_json()
                assert SECRET not in shown + capsys.readouterr().err + rows(home)
                assert spilt(home, SECRET) == []


# --- 83, 84: pictures that are none, and too large ones ---------------------------------------

ODD = [
    File("empty.png", "image/png", b""),
    File("empty.pdf", "application/pdf", b""),
    File("empty.txt", "text/plain", b""),
    File("one.png", "image/png", b"x"),
    File("page.png", "image/png", HTML),
    File("bomb.png", "image/png", png_header(30_000, 30_000) + bytes(200_000)),
    File("photo.heic", "image/heic", HEIC),
    File("animated.webp", "image/webp", animated()),
    File("cmyk.jpg", "image/jpeg", picture("JPEG", mode="CMYK")),
]


async def test_case_83_and_84_odd_pictures_are_told_as_what_they_are_and_later_turns_are_as_ever() -> None:
    with short_home() as home:
        async with daemon(home) as running:
            client = running.client()

            async def ask(text: str, files: list[File]) -> str:
                sent = await asyncio.to_thread(client.send, "you", text, files)
                parts = await asyncio.to_thread(lambda: list(client.replies(sent, 20.0)))
                return " ".join(part["text"] for part in parts)

            for odd in ODD:
                told = await ask("see", [odd])
                assert odd.name in told
                assert "hello again" in await ask("hello again", [])
