"""The whole daemon: a message's way through it, reloading, and every way in which it ends."""

import asyncio
import json
import os
import signal
import socket
import subprocess
from collections.abc import AsyncIterator, Awaitable, Callable, Iterable
from contextlib import asynccontextmanager
from datetime import timedelta
from functools import partial
from pathlib import Path
from typing import Any

import aiohttp
import pytest
from multidict import CIMultiDict, CIMultiDictProxy

from bridge import daemon as daemon_module
from bridge.channel import Answer, Request
from bridge.channel.testing.clock import START, FakeClock, until
from bridge.channel.testing.fakes.feishu import FakeFeishu
from bridge.cli.common import ask_daemon
from bridge.client import connected, expect
from bridge.clock import unix_ms
from bridge.config import Config, WebTable, load
from bridge.daemon import AddressTakenError
from bridge.errors import BridgeError, ConfigError, SessionError, StoreError
from bridge.health import Snapshot, State
from bridge.ids import AccountId, ConversationKey, SessionId
from bridge.media.disk import Disk
from bridge.paths import Home, write_private
from bridge.process import RunningError
from bridge.protocol import commands, ours
from bridge.relay import notices, outages
from bridge.relay.texts import Language, Text, say
from bridge.store.contract import (
    Bind,
    LoadSession,
    NewPart,
    Notify,
    OpenParts,
    OpenSession,
    PartKind,
    PartState,
    Post,
    Prune,
    Reply,
    SessionRecord,
    Settle,
    Step,
    Store,
    ToldOf,
)
from bridge.store.sqlite import open_store
from bridge.supervisor import Plan, Supervisor
from bridge.web.listener import listening
from tests.daemons import DEMO, Running, daemon, free_port, keep, short_home, until_ended, write_settings
from tests.media.test_disk import Filling
from tests.scarce import no_descriptors
from tests.store.around import Around

OTHER_SECRETS = json.dumps({"secrets": ["whsec_" + "REVG" * 11], "ask_token": "token-4712"}).encode()


async def control(home: Home, command: ours.Command) -> ours.DaemonStatus:
    async with connected(home.socket, "test", "1", "hello") as connection:
        await connection.send(ours.DaemonControl(request_id="1", command=command))
        return expect(await connection.next(), ours.DaemonStatusEvent).status


def states(status: ours.DaemonStatus) -> dict[str, str]:
    return {component.id: component.state.value for component in status.components}


async def test_a_message_is_answered_and_sigterm_ends_with_0() -> None:
    with short_home() as home:
        async with daemon(home) as running:
            assert running.state is not None
            assert [account.id for account in running.state.accounts] == ["webhook:demo"]
            assert "hello" in (await running.ask("hello 你好"))[0]
            assert states(await control(home, commands.Status())) == {"webhook:demo": "connected"}
        assert (running.code, running.error) == (0, None)
        assert not home.socket.exists()


async def test_accounts_that_were_not_made_to_the_end_are_made_anew(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(daemon_module, "WATCH_SECONDS", 0.02)
    makes, broken = Supervisor.reconcile, [True]

    async def reconcile(self: Supervisor, plans: Iterable[Plan], *, revive: bool = False) -> None:
        if revive and broken and broken.pop():  # the client's, not the watch's
            raise StoreError("cut off in the middle")
        await makes(self, plans, revive=revive)

    with short_home() as home:
        async with daemon(home):
            monkeypatch.setattr(Supervisor, "reconcile", reconcile)
            command = ours.ChannelSet(channel="webhook", account="demo", enabled=False)
            with pytest.raises(BridgeError):
                await control(home, command)
            async with asyncio.timeout(10):
                while states(await control(home, commands.Status())) != {"webhook:demo": "disabled"}:
                    await asyncio.sleep(0.01)


async def test_what_was_stored_is_there_after_a_restart() -> None:
    with short_home() as home:
        async with daemon(home) as running:
            client = running.client()
            sent = await asyncio.to_thread(client.send, "you", "first", [])
            assert await asyncio.to_thread(client._ask, 20.0)  # shown, and not settled
            assert (await control(home, commands.Status())).components[0].queue_depth == 1
        async with daemon(home) as running:
            parts = await asyncio.to_thread(lambda: list(running.client().replies(sent, 20.0)))
        assert "first" in parts[0]["text"]


async def test_reload_starts_new_accounts_and_leaves_the_others_alone() -> None:
    with short_home() as home:
        async with daemon(home) as running:
            before = (await control(home, commands.Status())).components[0]
            keep(home, "second")
            write_settings(home, DEMO + '[channels.webhook.second]\nowner = "you"\n[limits]\n')
            await control(home, commands.Reload())
            assert "hi" in (await running.ask("hi", "second"))[0]
            after = (await control(home, commands.Status())).components[0]
            assert (after.since_unix_seconds, after.restarts) == (before.since_unix_seconds, 0)


async def test_a_reload_tells_which_accounts_it_started_started_anew_and_stopped() -> None:
    def table(name: str, more: str = "") -> str:
        return f'[channels.webhook.{name}]\nowner = "you"\n{more}'

    with short_home(DEMO + table("gone") + table("off") + table("on", "enabled = false\n")) as home:
        for name in ("gone", "off", "on", "new"):
            keep(home, name)
        async with daemon(home):
            bystander = table("same", "enabled = false\n")
            changed = table("demo", 'senders = "anyone"\n') + table("off", "enabled = false\n")
            write_settings(home, changed + table("on") + table("new") + bystander)
            told = (await control(home, commands.Reload())).reloaded
            assert told == ours.Reloaded(
                started=("webhook:new", "webhook:on"),
                anew=("webhook:demo",),
                stopped=("webhook:gone", "webhook:off"),
            )
            assert (await control(home, commands.Reload())).reloaded == ours.Reloaded()


async def test_a_reload_with_a_broken_account_tells_so_and_serves_the_others() -> None:
    with short_home() as home:
        async with daemon(home) as running:
            bad = '[channels.webhook.bad]\nownr = "you"\n[channels.webhook.off]\nenabled = false\n'
            keep(home, "off")
            write_settings(home, DEMO + bad)
            with pytest.raises(SessionError) as caught:
                await control(home, commands.Reload())
            assert caught.value.code == "component_error"
            assert "hi" in (await running.ask("hi"))[0]
            status = await control(home, commands.Status())
            assert states(status) == {
                "webhook:bad": "failed",
                "webhook:demo": "connected",
                "webhook:off": "disabled",
            }
            assert "did you mean owner?" in (status.components[0].error or "")
            client = running.client()
            for path, answer in (("bad", "503"), ("off", "404")):  # what is broken is mended: come again
                with pytest.raises(Exception, match=answer):
                    await asyncio.to_thread(client._request, "POST", f"/channels/webhook/{path}", b"{}")


async def test_the_console_is_reached_by_its_socket_alone_and_that_serves_no_other_channel() -> None:
    with short_home(DEMO + "[channels.console.local]\n") as home:
        async with daemon(home) as running:
            assert states(await control(home, commands.Status()))["console:local"] == "connected"
            body = b'{"type":"message","id":"m1","conversation":"main","text":"hi"}'
            with pytest.raises(Exception, match="404"):
                client = running.client()
                await asyncio.to_thread(client._request, "POST", "/channels/console/local", body)
            async with aiohttp.ClientSession(
                connector=aiohttp.UnixConnector(str(home.console_socket))
            ) as http:
                for path, status in (("console/local", 202), ("console/other", 404), ("webhook/demo", 404)):
                    async with http.post(f"http://x/channels/{path}", data=body) as answer:
                        assert answer.status == status, path
                asked = "http://x/channels/console/local/replies?conversation=main&wait=20"
                async with http.get(asked) as answer:
                    assert (await answer.json())["replies"][0]["text"].endswith("hi")
        assert not home.console_socket.exists()


async def test_a_socket_that_a_killed_daemon_left_is_no_hindrance() -> None:
    with short_home("[channels.console.local]\n") as home, socket.socket(socket.AF_UNIX) as left:
        home.private_dir(home.state)
        left.bind(str(home.console_socket))
        async with daemon(home) as running:
            assert running.state is not None
            assert running.state.accounts[0].id == "console:local"


async def test_before_the_accounts_are_known_and_when_they_went_nobody_is_told_that_there_is_none() -> None:
    with short_home() as home:
        write_settings(home, "")
        asked = Request("POST", "", {}, CIMultiDictProxy(CIMultiDict()), b"{}", START)
        stop: asyncio.Future[int] = asyncio.get_running_loop().create_future()
        starting = daemon_module.Daemon(home, load(home.config), FakeClock(), stop)
        assert starting._states() is None  # health: not "ready, with no accounts"
        route = starting._find("webhook", "demo")
        assert route is not None
        assert route.body_limit_bytes > 0
        answer = await route.handle(asked)
        assert isinstance(answer, Answer)
        assert (answer.status, answer.headers) == (503, {"Retry-After": "5"})


async def test_a_reload_of_a_broken_file_changes_nothing(capsys: pytest.CaptureFixture[str]) -> None:
    with short_home() as home:
        async with daemon(home) as running:
            write_settings(home, "[[[")
            with pytest.raises(SessionError):
                await control(home, commands.Reload())
            assert "hi" in (await running.ask("hi"))[0]
            assert "hi" in (await running.ask("hi"))[0]


async def test_a_reload_says_which_tables_wait_for_a_restart_and_touches_no_account_for_them(
    capsys: pytest.CaptureFixture[str],
) -> None:
    with short_home() as home:
        async with daemon(home) as running:
            before = (await control(home, commands.Status())).components
            write_settings(home, DEMO + "[sessions]\nmax_transcript_items = 5\n[store]\nkeep_days = 3\n")
            with pytest.raises(BridgeError, match=r"\[store\], \[sessions\] .*restart"):
                await asyncio.to_thread(ask_daemon, home, {"action": "reload"})
            assert (await control(home, commands.Status())).components == before
            write_settings(home, DEMO + "[store]\nmax_waiting = 3\n[daemon]\nworkspace = '/'\n")
            await control(home, commands.Reload())  # all of it is what accounts use, so it is in effect
            assert "hi" in (await running.ask("hi"))[0]
    assert "reload.needs_restart" in capsys.readouterr().err


async def test_settings_that_change_on_disk_are_read_within_two_seconds(
    capsys: pytest.CaptureFixture[str],
) -> None:
    clock = FakeClock()
    with short_home() as home:
        async with daemon(home, clock):
            await until(lambda: 2.0 in clock.waits())
            await clock.advance(2)
            keep(home, "second")
            write_settings(home, DEMO + "[channels.webhook.second]\n")
            await until(lambda: 2.0 in clock.waits())
            await clock.advance(2)
            while len((await control(home, commands.Status())).components) < 2:
                await asyncio.sleep(0.002)
            write_settings(home, "[[[")
            await until(lambda: 2.0 in clock.waits())
            await clock.advance(2)
            await until(lambda: 2.0 in clock.waits())
    assert "reload.failed" in capsys.readouterr().err


@asynccontextmanager
async def watched(home: Home, clock: FakeClock) -> AsyncIterator[Callable[[], Awaitable[list[Snapshot]]]]:
    """A daemon; what is yielded lets it look at its files once, and tells how the accounts are then."""

    async def looked() -> list[Snapshot]:
        for _ in range(2):  # the second look begins when what the first one found is done
            await until(lambda: 2.0 in clock.waits())
            await clock.advance(2)
        await until(lambda: 2.0 in clock.waits())
        return daemons[-1]._supervisor.snapshots()

    daemons: list[daemon_module.Daemon] = []
    made = daemon_module.Daemon

    def making(*given: Any) -> daemon_module.Daemon:
        daemons.append(made(*given))
        return daemons[-1]

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(daemon_module, "Daemon", making)
        async with daemon(home, clock):
            yield looked


async def test_the_status_tells_why_the_settings_on_disk_are_not_in_effect_until_they_are() -> None:
    clock = FakeClock()
    with short_home() as home:
        file, kept = home.config, home.root / "kept.toml"
        file.rename(kept)
        file.symlink_to(kept)
        async with watched(home, clock) as looked:
            assert (await control(home, commands.Status())).settings_error is None
            for _ in range(2):  # the second time they are missing as they were before
                file.unlink()
                await looked()
                status = await control(home, commands.Status())
                assert "config.toml is missing" in (status.settings_error or "")
                assert states(status) == {"webhook:demo": "connected"}
                file.symlink_to(kept)
                await looked()
                assert (await control(home, commands.Status())).settings_error is None
            kept.chmod(0o644)
            await looked()
            assert "chmod 600" in ((await control(home, commands.Status())).settings_error or "")
            with pytest.raises(SessionError):
                await control(home, commands.Reload())
            kept.chmod(0o600)
            await looked()
            assert (await control(home, commands.Status())).settings_error is None


async def test_the_status_tells_which_tables_wait_for_a_restart_until_they_are_as_they_were() -> None:
    clock = FakeClock()
    with short_home() as home:
        async with watched(home, clock) as looked:
            write_settings(home, DEMO + "[sessions]\nmax_transcript_items = 5\n[store]\nkeep_days = 3\n")
            await looked()
            assert (await control(home, commands.Status())).waits_for_restart == ("store", "sessions")
            write_settings(home, DEMO)
            await looked()
            assert (await control(home, commands.Status())).waits_for_restart == ()


async def test_case_23_credentials_of_one_account_touch_no_other() -> None:
    clock = FakeClock()
    with short_home(DEMO + "[channels.webhook.other]\n") as home:
        keep(home, "other")
        async with watched(home, clock) as looked:
            before = {one.account: one.since for one in await looked()}
            write_private(home.credentials("webhook", "other"), OTHER_SECRETS)
            after = {one.account: one.since for one in await looked()}
            assert after["demo"] == before["demo"]
            assert after["other"] > before["other"]


async def test_changes_are_taken_up_once_the_system_has_descriptors_again_and_nothing_stops_meanwhile(
    capsys: pytest.CaptureFixture[str],
) -> None:
    clock = FakeClock()
    with short_home(DEMO + "[channels.webhook.other]\n") as home:
        keep(home, "other")
        async with watched(home, clock) as looked:
            before = {one.account: one.since for one in await looked()}
            write_private(home.credentials("webhook", "other"), OTHER_SECRETS)
            with no_descriptors():
                for _ in range(3):
                    assert {one.account: one.since for one in await looked()} == before
            assert {one.account: one.since for one in await looked()}["other"] > before["other"]
    assert capsys.readouterr().err.count("reload.failed") == 1


async def test_a_channel_whose_credentials_cannot_be_listed_fails_alone_and_comes_back() -> None:
    clock = FakeClock()
    console = "[channels.console.local]\n"
    with short_home(DEMO + console) as home:
        folder = home.credentials("webhook", "demo").parent
        async with watched(home, clock) as looked:
            since = {one.id: one.since for one in await looked()}
            folder.rename(folder.with_name("elsewhere"))
            folder.write_text("no directory")
            found = {one.id: one for one in await looked()}
            assert found.keys() == {"webhook:discovery-error", "console:local"}
            assert found[AccountId("webhook:discovery-error")].state is State.FAILED
            assert found[AccountId("console:local")].since == since[AccountId("console:local")]
            with pytest.raises(SessionError, match="component_error"):
                await control(home, commands.Reload())
            folder.unlink()
            folder.with_name("elsewhere").rename(folder)
            assert {one.id: one.state for one in await looked()} == {
                "webhook:demo": State.CONNECTED, "console:local": State.CONNECTED
            }  # fmt: skip


async def test_a_workspace_that_is_made_ends_the_failure_of_its_account() -> None:
    clock = FakeClock()
    with short_home() as home:
        place = home.root / "work"
        write_settings(home, DEMO + f'workspace = "{place}"\n')
        async with watched(home, clock) as looked:
            assert [one.state for one in await looked()] == [State.FAILED]
            place.mkdir()
            assert [one.state for one in await looked()] == [State.CONNECTED]


async def test_a_change_revives_no_account_that_it_is_not_about_and_a_reload_does() -> None:
    clock = FakeClock()
    with short_home() as home:
        async with FakeFeishu() as fake, watched(home, clock) as looked:
            path = home.credentials("feishu", "bad")
            home.private_dir(path.parent)
            write_private(path, b'{"app_secret": "wrong", "verification_token": "v"}')
            bad = f'[channels.feishu.bad]\napp_id = "{fake.app_id}"\nbase = "{fake.base}"\n'
            write_settings(home, DEMO + bad)
            await looked()
            await until(lambda: len(fake.requests) == 1)
            assert {one.account: one.state for one in await looked()}["bad"] is State.FAILED
            write_settings(home, DEMO + 'language = "zh"\n' + bad)
            assert {one.account: one.state for one in await looked()}["bad"] is State.FAILED
            assert len(fake.requests) == 1
            for enabled in (False, True):
                await control(home, ours.ChannelSet(channel="webhook", account="demo", enabled=enabled))
            assert {one.account: one.state for one in await looked()}["bad"] is State.FAILED
            assert len(fake.requests) == 1
            await control(home, ours.ChannelSet(channel="feishu", account="bad", enabled=True))
            await until(lambda: len(fake.requests) == 2)
            await control(home, commands.Reload())
            await until(lambda: len(fake.requests) == 3)


async def test_health_is_served_and_other_paths_are_not() -> None:
    with short_home() as home:
        async with daemon(home) as running:
            client = running.client()
            assert json.loads(await asyncio.to_thread(client._request, "GET", "/healthz"))["ok"]
            for path in ("/channels/webhook/none", "/channels/none/demo"):
                with pytest.raises(Exception, match="404"):
                    await asyncio.to_thread(client._request, "GET", path)


async def test_a_second_daemon_is_refused_and_the_first_goes_on() -> None:
    with short_home() as home:
        async with daemon(home) as running:
            config = load(home.config)
            with pytest.raises(RunningError, match=f"pid {os.getpid()}"):
                await daemon_module.run_daemon(home, config, clock=FakeClock())
            assert "hi" in (await running.ask("hi"))[0]


async def test_an_address_that_is_taken_ends_it_with_1_since_it_may_be_free_later() -> None:
    with short_home() as home, socket.create_server(("127.0.0.1", 0)) as taken:
        home.config.write_text(f"[web]\nport = {taken.getsockname()[1]}\n")
        async with daemon(home) as running:
            await until_ended(running)
    assert isinstance(running.error, AddressTakenError)
    assert "choose another" in str(running.error)


async def test_an_address_that_this_machine_has_not_ends_it_with_2() -> None:
    with short_home() as home:
        home.config.write_text('[web]\nport = 0\nhost = "192.0.2.1"\n')
        async with daemon(home) as running:
            await until_ended(running)
    assert isinstance(running.error, ConfigError)


@pytest.mark.parametrize(
    ("settings", "told"),
    [
        ('[daemon]\nagent = "nobody"\n', "nobody"),
        ("[agents.echo]\nnonsense = 1\n", r"agents\.echo\.nonsense: no such setting"),
    ],
)
async def test_an_agent_that_cannot_be_used_ends_it(settings: str, told: str) -> None:
    with short_home(settings) as home:
        async with daemon(home) as running:
            await until_ended(running)
    with pytest.raises(ConfigError, match=told):
        raise running.error or AssertionError


async def test_a_disk_that_cannot_be_trusted_ends_it_with_1(monkeypatch: pytest.MonkeyPatch) -> None:
    fatal: list[Any] = []

    @asynccontextmanager
    async def noting(path: Path, **options: Any) -> AsyncIterator[Store]:
        fatal.append(options["fatal"])
        async with open_store(path, **options) as store:
            yield store

    monkeypatch.setattr(daemon_module, "open_store", noting)
    with short_home() as home:
        async with daemon(home) as running:
            fatal[0](StoreError("a sync failed"))
            fatal[0](StoreError("and once more"))
            await until_ended(running)
    assert running.code == 1


async def test_cancelling_stops_it_too() -> None:
    with short_home() as home:
        ready = asyncio.Event()
        async with asyncio.TaskGroup() as tasks:
            run = daemon_module.run_daemon(
                home, load(home.config), clock=FakeClock(), ready=lambda _: ready.set()
            )
            task = tasks.create_task(run)
            await ready.wait()
            task.cancel()
        assert task.cancelled()
        assert not home.socket.exists()


class Crashing:
    """A part of the daemon that crashes ``times`` times, and then works."""

    def __init__(self, times: int) -> None:
        self.left = times
        self._real = listening

    @asynccontextmanager
    async def __call__(self, *args: Any) -> AsyncIterator[Any]:
        if self.left:
            self.left -= 1
            raise ZeroDivisionError
        async with self._real(*args) as listener:
            yield listener


async def after_crashes(times: int, apart_seconds: float, monkeypatch: pytest.MonkeyPatch) -> Running:
    """What became of a daemon whose listener crashes ``times`` times, ``apart_seconds`` apart."""
    clock, crashing = FakeClock(), Crashing(times)
    monkeypatch.setattr(daemon_module, "listening", crashing)
    monkeypatch.setattr(daemon_module, "PAUSE_SECONDS", apart_seconds)

    async def pass_time() -> None:
        while True:
            await until(lambda: apart_seconds in clock.waits())
            await clock.advance(apart_seconds)

    with short_home() as home:
        async with asyncio.TaskGroup() as tasks:
            time = tasks.create_task(pass_time())
            async with daemon(home, clock) as running:
                time.cancel()
    assert crashing.left == 0
    return running


async def test_a_part_that_crashes_is_started_again(monkeypatch: pytest.MonkeyPatch) -> None:
    running = await after_crashes(2, 1, monkeypatch)
    assert (running.code, running.error) == (0, None)


async def test_a_listener_that_crashes_while_it_serves_serves_again_at_the_same_address(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    crash, began = asyncio.Event(), [0]

    async def crashing() -> None:
        await crash.wait()
        crash.clear()
        raise ZeroDivisionError

    @asynccontextmanager
    async def serving(*args: Any) -> AsyncIterator[Any]:
        async with listening(*args) as listener, asyncio.TaskGroup() as tasks:
            tasks.create_task(crashing())
            began[0] += 1
            yield listener

    monkeypatch.setattr(daemon_module, "listening", serving)
    monkeypatch.setattr(daemon_module, "PAUSE_SECONDS", 0.0)
    with short_home() as home:
        write_private(home.config, home.config.read_bytes().replace(b"port = 0", b"port = %d" % free_port()))
        async with daemon(home) as running:
            assert await running.ask("before") == ["You said: before"]
            crash.set()
            await until(lambda: began == [2])
            assert await running.ask("after") == ["You said: after"]
    assert (running.code, running.error) == (0, None)


async def test_three_crashes_within_a_minute_end_it(monkeypatch: pytest.MonkeyPatch) -> None:
    running = await after_crashes(3, 1, monkeypatch)
    assert isinstance(running.error, daemon_module.CrashedError)


async def test_three_crashes_over_a_longer_time_do_not(monkeypatch: pytest.MonkeyPatch) -> None:
    running = await after_crashes(5, 40, monkeypatch)
    assert (running.code, running.error) == (0, None)


# --- upkeep ----------------------------------------------------------------------------------


class Noting(Around):
    """A store that notes its steps, and fails when told to."""

    def __init__(self, store: Store) -> None:
        super().__init__(store)
        self.taken: list[Step[Any]] = []
        self.fails = False

    async def do(self, step: Step[Any]) -> Any:
        self.taken.append(step)
        if self.fails:
            raise StoreError("the disk is full")
        return await self._store.do(step)


async def test_what_is_old_is_forgotten_with_its_files(tmp_path: Path) -> None:
    home, clock, account = Home(tmp_path), FakeClock(), AccountId("webhook:demo")
    home.private_dir(home.outbox)
    copy = home.outbox / "0123456789ab-a.txt"
    copy.write_text("x")
    async with open_store(home.db) as file:
        store = Noting(file)
        await store.do(Bind(account, "x"))
        body = json.dumps({"path": str(copy), "name": "a", "mime": "text/plain", "size": 1})
        part = NewPart(PartKind.FILE, body, "0" * 32)
        await store.do(Post(account, Reply("r", ConversationKey("c"), "to", "", (part,)), unix_ms(START)))
        (open_part,) = await store.get(OpenParts(account))
        later = unix_ms(START + timedelta(hours=1))
        await store.do(Settle(open_part.part_id, PartState.SENT, unix_ms(START), keep_until_ms=later))
        store.taken.clear()
        async with asyncio.TaskGroup() as tasks:
            task = tasks.create_task(daemon_module.upkeep(store, Config(), home, clock))
            await until(lambda: bool(clock.waits()))
            assert copy.exists()
            store.fails = True
            await clock.advance(60)
            await until(lambda: len(store.taken) == 2 and bool(clock.waits()))
            store.fails = False
            clock.jump(86_400 * 31)
            await clock.advance(60)
            await until(lambda: not copy.exists())
            task.cancel()
    first = store.taken[0]
    assert isinstance(first, Prune)
    assert first.before_ms == unix_ms(START - timedelta(days=30))
    assert first.held_before_ms == unix_ms(START - timedelta(days=7))


async def test_a_session_that_nobody_uses_is_forgotten_in_time(tmp_path: Path) -> None:
    home, clock, name = Home(tmp_path), FakeClock(), SessionId("s")
    home.private_dir(home.outbox)
    async with open_store(home.db) as store, asyncio.TaskGroup() as tasks:
        await store.do(OpenSession(SessionRecord(name, "/", "{}", 1), unix_ms(START)))
        task = tasks.create_task(daemon_module.upkeep(store, Config(), home, clock))
        await until(lambda: bool(clock.waits()))
        assert await store.get(LoadSession(name)) is not None
        clock.jump(86_400 * 31)
        await clock.advance(60)
        await until(lambda: bool(clock.waits()))
        assert await store.get(LoadSession(name)) is None
        task.cancel()


async def test_a_copy_that_a_crash_left_in_the_outbox_is_swept_in_time(tmp_path: Path) -> None:
    home, clock = Home(tmp_path), FakeClock()
    home.private_dir(home.outbox)
    for name, age_days in (("old", 9), ("waits", 7)):  # it may wait for a day, and be fetched for another
        path = home.outbox / name
        path.write_text("x")
        written = (START - timedelta(days=age_days)).timestamp()
        os.utime(path, (written, written))
    async with open_store(home.db) as store, asyncio.TaskGroup() as tasks:
        task = tasks.create_task(daemon_module.upkeep(store, Config(), home, clock))
        await until(lambda: bool(clock.waits()))
        assert [path.name for path in home.outbox.iterdir()] == ["waits"]
        task.cancel()


async def test_the_owner_is_told_of_a_full_disk_where_they_wrote_last_and_of_its_end(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    filling = Filling(50)
    monkeypatch.setattr(daemon_module, "Disk", partial(Disk, usage=filling))
    monkeypatch.setattr(notices, "DISK_SECONDS", 0.01)
    full, free = say(Text.DISK_FULL, Language.EN, percent=20), say(Text.DISK_FREE, Language.EN)

    with short_home() as home:
        write_settings(home, "[media]\n" + DEMO)
        async with daemon(home) as running:
            await running.ask("hello")
            filling.free = 10
            assert await until_told(running, 1) == [full]
        async with daemon(home) as again:
            assert await until_told(again, 1) == [full]
            filling.free = 50
            assert await until_told(again, 2) == [full, free]


async def until_told(running: Running, count: int) -> list[str]:
    texts: list[str] = []
    async with asyncio.timeout(20):
        while len(texts) < count:
            await asyncio.sleep(0.01)
            texts = [part["text"] for part in await asyncio.to_thread(running.client().waiting)]
    return texts


async def test_what_a_daemon_left_running_that_was_killed_is_ended_by_the_next() -> None:
    """As a program that keeps its keeper stopped: here one with a mark that a daemon gave."""
    with short_home() as home:
        async with daemon(home) as running:
            (said,) = await running.ask("run echo $TURNBRIDGE_PROGRAM")
        mark = next(line for line in said.splitlines() if "." in line)
        env = {"TURNBRIDGE_PROGRAM": mark}
        with subprocess.Popen(["/bin/sleep", "60"], env=env) as left:
            left.send_signal(signal.SIGSTOP)
            async with daemon(home):
                assert await asyncio.to_thread(left.wait) == -signal.SIGKILL


async def test_the_owner_is_told_once_of_a_crash_and_not_of_a_proper_stop(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(outages, "CRASH_SECONDS", 0.01)
    with short_home() as home:
        for _ in range(2):
            async with daemon(home) as running:
                await running.ask("hello")
                assert await asyncio.to_thread(running.client().waiting) == []
        async with open_store(home.db) as store:
            assert await store.get(ToldOf("running")) == ""
            killed = Notify(AccountId(""), "running", "since 1", None, 1)
            await store.do(killed)  # as a daemon leaves it that is killed
        write_settings(home, "")
        async with daemon(home):
            """Nobody can be told now."""
        write_settings(home, DEMO)
        for _ in range(2):
            async with daemon(home) as running:
                assert await until_told(running, 1) == [say(Text.CRASHED, Language.EN)]


async def test_an_account_that_is_parked_is_told_of_through_the_one_that_is_named(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(outages, "LOOK_SECONDS", 0.01)
    monkeypatch.setattr(outages, "PARKED_SECONDS", 0.0)
    other = (
        '[channels.webhook.other]\nowner = "you"\n[notices]\naccounts = ["webhook:other", "webhook:demo"]\n'
    )
    with short_home(DEMO + other) as home:
        keep(home, "other")
        async with daemon(home) as running:
            home.credentials("webhook", "other").unlink()
            parked = say(Text.PARKED, Language.EN, account="webhook:other")
            assert await until_told(running, 1) == [parked]
            keep(home, "other")
            again = say(Text.CONTACT_AGAIN, Language.EN, account="webhook:other")
            assert await until_told(running, 2) == [parked, again]


def test_there_are_never_more_connections_than_descriptors(monkeypatch: pytest.MonkeyPatch) -> None:
    for descriptors, most in ((64, 16), (90, 23), (256, 64), (1024, 512), (65_536, 4096)):
        monkeypatch.setattr(daemon_module, "raise_descriptor_limit", lambda limit=descriptors: limit)
        assert daemon_module._bounded(WebTable()).max_connections == most


async def test_who_sends_the_code_becomes_the_owner_and_is_answered_from_then_on() -> None:
    settings = "# Mine.\n[channels.webhook.demo]\n"
    with short_home(settings) as home:
        async with daemon(home) as running:
            code = ours.Pair(account="webhook:demo", code="48217730")
            pairing = (await control(home, code)).pairing
            assert pairing is not None
            assert "you are being made the owner" in (await running.ask("4821-7730"))[0]
            while pairing.state != "paired":
                pairing = (await control(home, ours.PairState(id=pairing.id))).pairing
                assert pairing is not None
            assert pairing.owner == "you"
            assert "hello" in (await running.ask("hello"))[0]
            assert (await control(home, commands.Status())).components[0].user_id == "you"
            assert home.config.read_text().endswith(f'{settings}owner = "you"\n')
            with pytest.raises(SessionError):
                await control(home, code)


async def test_the_owner_s_answer_to_a_question_is_known_to_whoever_asked_it() -> None:
    with short_home() as home:
        async with daemon(home) as running:
            await running.ask("hello")
            asked = ours.Confirm(text="Deploy now?", account="webhook:demo")
            question = (await control(home, asked)).question
            assert question is not None
            client = running.client()
            await until_told(running, 1)
            assert ["Deploy now?" in part["text"] for part in await asyncio.to_thread(client._ask, 0.0)] == [
                True
            ]
            while question.state != "yes":
                await asyncio.to_thread(lambda: list(client.all_replies()))  # which the platform has then
                if question.state == "open":
                    await asyncio.to_thread(client.send, "you", "yes", [])
                question = (await control(home, ours.QuestionState(id=question.id))).question
                assert question is not None
