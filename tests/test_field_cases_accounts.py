"""What broke comparable systems when accounts changed, tried on a whole daemon; numbers name the cases."""

import asyncio
import json
import os
import socket
import stat
import time
from pathlib import Path
from typing import Any

import pytest

from bridge.channel.testing.clock import FakeClock, until
from bridge.channel.testing.fakes.feishu import FakeFeishu
from bridge.cli.webhook_client import File, WebhookClient, sign
from bridge.client import connected, expect
from bridge.health import State
from bridge.paths import Home, write_private
from bridge.protocol import commands, ours
from tests.daemons import DEMO, SECRET, TOKEN, Running, daemon, keep, short_home, write_settings
from tests.media.pictures import picture
from tests.test_daemon import control, watched


async def reload(home: Home) -> None:
    await control(home, commands.Reload())


async def parts_for(client: WebhookClient, message_id: str) -> list[str]:
    parts: list[dict[str, Any]] = await asyncio.to_thread(lambda: list(client.replies(message_id, 20.0)))
    return [part["text"] for part in parts]


# --- 79: five reloads are one listener ---------------------------------------------------------


def descriptors() -> int:
    return len(os.listdir("/dev/fd"))


async def test_case_79_five_reloads_of_an_account_leave_one_reply_and_no_task_or_socket_more() -> None:
    with short_home() as home:
        async with daemon(home) as running:
            assert len(await running.ask("before")) == 1

            async def held() -> tuple[int, int]:
                await asyncio.sleep(0)
                return len(asyncio.all_tasks()), descriptors()

            counts = []
            for n in range(5):
                write_settings(home, DEMO + f"turns_per_day = {1000 + n}\n")  # so it is another account
                await reload(home)
                await reload(home)  # and this time the same
                assert await running.ask(f"text {n}") == [f"You said: text {n}"]
                counts.append(await held())
            assert max(tasks for tasks, _ in counts) <= counts[0][0] + 2
            assert max(opened for _, opened in counts) <= counts[0][1] + 2
            client = running.client()
            assert await asyncio.to_thread(client.waiting) == []


# --- 80: a change of settings is everywhere ----------------------------------------------------


def say_in_group(client: WebhookClient, text: str) -> str:
    message_id, now = f"group-{text[:4]}-{os.urandom(4).hex()}", int(time.time())  # noqa: TID251 - signed
    data = {
        "conversation_id": "team",
        "message_id": message_id,
        "sender": {"id": "you"},
        "text": text,
        "is_direct": False,
    }
    stamp = time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime(now))
    body = json.dumps({"type": "message.created", "timestamp": stamp, "data": data}).encode()
    headers = {"Content-Type": "application/json", **sign(SECRET, message_id, now, body)}
    client._request("POST", "/channels/webhook/demo", body, headers)
    return message_id


async def in_group(running: Running, text: str) -> str:
    client = running.client()
    sent = await asyncio.to_thread(say_in_group, client, text)
    return " ".join(await parts_for(client, sent))


async def test_case_80_after_a_reload_direct_chats_and_groups_have_the_new_settings_alike() -> None:
    with short_home() as home:
        write_settings(home, DEMO)
        async with daemon(home) as running:
            work = home.root / "workspace"
            (work / "a.txt").write_text("what is in it")
            (work / "elsewhere").mkdir()
            (work / "elsewhere" / "b.txt").write_text("what is there")
            assert "what is in it" in (await running.ask("read a.txt"))[0]
            assert "what is in it" not in await in_group(running, "read a.txt")
            changed = f'language = "zh"\nworkspace = "{work}/elsewhere"\n'
            write_settings(home, DEMO + changed)
            await reload(home)
            assert "what is there" in (await running.ask("read b.txt"))[0]
            assert await running.ask("fail") == [await in_group(running, "fail")]  # both in the new language
            assert "没" in (await running.ask("fail"))[0]
            write_settings(home, '[channels.webhook.demo]\nowner = "you"\n')  # tools are taken away
            await reload(home)
            assert "what is in it" not in (await running.ask("read a.txt"))[0]
            assert "what is in it" not in await in_group(running, "read a.txt")


# --- 24: new credentials, at once ---------------------------------------------------------------


async def test_case_24_a_refused_account_says_so_at_once_and_new_credentials_need_no_restart() -> None:
    clock = FakeClock()
    with short_home() as home:
        async with FakeFeishu() as fake, watched(home, clock) as looked:
            path = home.credentials("feishu", "main")
            home.private_dir(path.parent)
            secrets = {"app_secret": "revoked", "verification_token": fake.token}
            write_private(path, json.dumps(secrets).encode())
            table = f'[channels.feishu.main]\napp_id = "{fake.app_id}"\nbase = "{fake.base}"\n'
            write_settings(home, DEMO + table)
            await looked()
            await until(lambda: len(fake.requests) == 1)
            refused = {one.account: one for one in await looked()}["main"]
            assert refused.state is State.FAILED
            assert "refused" in refused.reason
            write_private(path, json.dumps({**secrets, "app_secret": fake.app_secret}).encode())
            before = clock.monotonic()
            await looked()
            await until(lambda: len(fake.requests) > 1)
            assert {one.account: one.state for one in await looked()}["main"] is State.CONNECTED
            assert clock.monotonic() - before <= 10  # and no pause of a minute, or an hour


# --- the secrets of an account may change while its messages wait -------------------------------


async def test_renewed_secrets_keep_what_waits_under_its_own_ids() -> None:
    with short_home() as home:
        async with daemon(home) as running:
            client = running.client()
            await asyncio.to_thread(client.send, "you", "keep this", [])
            while not (before := await asyncio.to_thread(client.waiting)):
                await asyncio.sleep(0.002)
            renewed = {"secrets": ["whsec_" + "REVG" * 11], "ask_token": "token-renewed"}
            write_private(home.credentials("webhook", "demo"), json.dumps(renewed).encode())
            await reload(home)
            with pytest.raises(Exception, match="401"):
                await asyncio.to_thread(client.waiting)
            port = int(running.address.rpartition(":")[2])
            new = WebhookClient("127.0.0.1", port, "/channels/webhook/demo", "", "token-renewed")
            assert await asyncio.to_thread(new.waiting) == before


# --- private files ------------------------------------------------------------------------------


async def test_whatever_a_run_with_a_file_writes_is_for_its_owner_alone() -> None:
    before = os.umask(0)
    try:
        with short_home() as home:
            async with daemon(home) as running:
                client = running.client()
                sent = await asyncio.to_thread(
                    client.send, "you", "picture a.png", [File("图.png", "image/png", picture("PNG"))]
                )
                await parts_for(client, sent)
                found = {path: stat.S_IMODE(path.lstat().st_mode) for path in home.root.rglob("*")}
                work = home.root / "workspace"  # the agent's own files are as the agent makes them
                own = {path: mode for path, mode in found.items() if work not in path.parents}
                assert {mode for path, mode in own.items() if path.is_dir()} == {0o700}
                assert {mode for path, mode in own.items() if not path.is_dir()} == {0o600}
                names = {path.name.split("-")[-1] for path in own}
                assert {"config.toml", "demo.json", "turnbridge.db", "daemon.lock", "图.png"} <= names
    finally:
        os.umask(before)


# --- whoever asks and does not read -------------------------------------------------------------


async def test_a_client_that_does_not_read_its_answer_holds_up_nobody() -> None:
    with short_home() as home:
        async with daemon(home):
            mute = await asyncio.to_thread(asking_without_reading, home.socket)
            command = ours.ChannelSet(channel="webhook", account="demo", enabled=True)
            async with asyncio.timeout(10):
                for _ in range(3):
                    assert (await control(home, command)).components[0].state.value == "connected"
            mute.close()


def asking_without_reading(path: Path) -> socket.socket:
    """A client that has asked for changes over and over, and takes no byte of any answer."""
    client = socket.socket(socket.AF_UNIX)
    client.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 1)
    client.connect(str(path))
    hello = {"type": "initialize", "request_id": "0", "protocol_version": 3}
    hello |= {"client": {"name": "mute", "version": "1"}}
    client.sendall(json.dumps(hello).encode() + b"\n")
    command = {"action": "channel_set", "channel": "webhook", "account": "demo", "enabled": True}
    for n in range(30):
        frame = {"type": "daemon.control", "request_id": str(n + 1), "command": command}
        client.sendall(json.dumps(frame).encode() + b"\n")
    return client


async def test_accounts_are_shown_in_the_order_of_their_ids() -> None:
    with short_home() as home:
        tables = "".join(f"[channels.webhook.{name}]\n" for name in ("z", "B", "a", "m-1"))
        for name in ("z", "B", "a", "m-1"):
            keep(home, name)
        write_settings(home, tables + "[channels.console.local]\n")
        async with daemon(home):
            async with connected(home.socket, "test", "1", "hello") as connection:
                await connection.send(ours.DaemonControl(request_id="1", command=commands.Status()))
                status = expect(await connection.next(), ours.DaemonStatusEvent).status
            ids = [one.id for one in status.components]
            assert ids == sorted(ids)
            assert len(ids) == 5
            shown = status.model_dump_json()
            assert SECRET not in shown
            assert TOKEN not in shown


async def test_a_logout_tells_the_platform_nothing() -> None:
    with short_home() as home:
        async with FakeFeishu() as fake, daemon(home):
            path = home.credentials("feishu", "main")
            home.private_dir(path.parent)
            secrets = {"app_secret": fake.app_secret, "verification_token": fake.token}
            write_private(path, json.dumps(secrets).encode())
            table = f'[channels.feishu.main]\napp_id = "{fake.app_id}"\nbase = "{fake.base}"\n'
            write_settings(home, DEMO + table)
            await reload(home)
            await until(lambda: fake.requests[-1:] != [] and fake.requests[-1].endswith("/bot/v3/info"))
            asked = list(fake.requests)
            left = await control(home, commands.ChannelLogout(channel="feishu", account="main"))
            assert [one.id for one in left.components] == ["webhook:demo"]
            assert (fake.requests, path.exists()) == (asked, False)
