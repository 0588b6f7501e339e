"""The doctor and the daemon: running, its accounts, and reached from outside."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest
from aiohttp import web

from bridge.accounts import AccountSetup
from bridge.channel import Http
from bridge.channel.http import http_session
from bridge.cli import doctor_daemon
from bridge.cli.doctor_daemon import accounts, public, status
from bridge.cli.findings import Level
from bridge.config import Config
from bridge.errors import BridgeError
from bridge.paths import Home
from bridge.version import VERSION
from tests.cli.fake_systemd import with_systemd
from tests.cli.socket_daemon import refusal, short_home, socket_daemon
from tests.cli.socket_daemon import status as told
from tests.cli.test_doctor_accounts import account
from tests.daemons import free_port

HOME = Home(Path("/x"))


def component(state: str, **more: Any) -> dict[str, Any]:
    return {"id": "feishu:main", "enabled": True, "state": state, "error": None, **more}


def test_one_that_does_not_run_is_a_fault_and_how_to_start_it_is_told(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    systemd = with_systemd(tmp_path, monkeypatch)
    with short_home() as where:
        found, (finding,) = status(where)
        assert (found, finding.level) == (None, Level.FAULT)
        assert "service install" in finding.cure
        systemd.say(state="offline")
        _, (finding,) = status(where)
    assert "service install" not in finding.cure
    assert "or let another service manager run: " in finding.cure


def test_one_that_runs_is_well_unless_it_is_of_another_version(monkeypatch: pytest.MonkeyPatch) -> None:
    answer = told()
    with socket_daemon(answer) as daemon:
        found, (finding,) = status(daemon.home)
    assert found is not None
    assert (finding.level, finding.cure) == (Level.WARNING, "restart it")
    answer["status"]["version"] = VERSION
    with socket_daemon(answer) as daemon:
        assert status(daemon.home)[1][0].level is Level.GOOD


def test_settings_that_are_not_in_effect_have_their_cure() -> None:
    answer = told()
    answer["status"] |= {"version": VERSION, "settings_error": "/x/config.toml: not TOML at line 1"}
    with socket_daemon(answer) as daemon:
        runs, finding = status(daemon.home)[1]
    assert (runs.level, finding.level) == (Level.GOOD, Level.FAULT)
    assert finding.text.endswith("read before: /x/config.toml: not TOML at line 1")
    assert "config check" in finding.cure
    answer["status"] |= {"settings_error": None, "waits_for_restart": ["web"]}
    with socket_daemon(answer) as daemon:
        _, finding = status(daemon.home)[1]
    assert (finding.level, finding.cure) == (Level.WARNING, "restart it")
    assert "[web]" in finding.text


def test_one_that_does_not_answer_is_a_fault(monkeypatch: pytest.MonkeyPatch) -> None:
    for error in (BridgeError("look at its log"), PermissionError(13, "Permission denied")):

        def fail(*_: object, error: Exception = error) -> None:
            raise error

        monkeypatch.setattr(doctor_daemon, "ask_daemon", fail)
        found, (finding,) = status(HOME)
        assert (found, finding.level) == (None, Level.FAULT)
        assert "it does not answer: " in finding.text


@pytest.mark.parametrize(
    ("state", "level", "cure"),
    [
        ("connected", Level.GOOD, ""),
        ("starting", Level.WARNING, "look again in a minute"),
        ("stopping", Level.WARNING, "tried again by itself"),
        ("stopped", Level.FAULT, "tried again by itself"),
        ("disconnected", Level.FAULT, "tried again by itself"),
        ("backoff", Level.FAULT, "tried again by itself"),
        ("failed", Level.FAULT, "channels login feishu:main --home /x"),
    ],
)
def test_each_state_of_an_account_has_its_cure(state: str, level: Level, cure: str) -> None:
    (found,) = accounts({"components": [component(state)]}, HOME)
    assert (found.level, cure in found.cure) == (level, True)


def test_the_reason_is_told_and_what_is_switched_off_is_not() -> None:
    components = [component("failed", error="no"), component("disabled", enabled=False)]
    (found,) = accounts({"components": components}, HOME)
    assert found.text == "feishu:main: failed: no"


def test_credentials_mend_no_mistake_of_the_settings() -> None:
    wrong = f"{HOME.config}: channels.feishu.main.workspace: must be an existing directory"
    (found,) = accounts({"components": [component("failed", error=wrong)]}, HOME)
    assert "config check --home /x" in found.cure
    assert "login" not in found.cure


def test_dead_letters_are_a_warning() -> None:
    components = [component("connected", dead_letters=2), component("connected", dead_letters=1)]
    *_, found = accounts({"components": components}, HOME)
    assert (found.level, found.text) == (Level.WARNING, "replies that were given up: 3")
    assert "dead list" in found.cure


def test_requests_that_proved_nothing_are_a_warning_with_the_command_that_sets_keys() -> None:
    one = component("connected", unproven_requests=3, last_unproven_unix_seconds=0)
    found, state = accounts({"components": [one]}, HOME)
    assert (state.level, found.level) == (Level.GOOD, Level.WARNING)
    assert found.text.startswith("feishu:main: 3 requests refused as unproven, the last ")
    assert "channels login feishu:main --home /x" in found.cure
    (state,) = accounts({"components": [component("connected", unproven_requests=0)]}, HOME)
    assert state.level is Level.GOOD


@asynccontextmanager
async def answering(status_: int, body: str = "{}") -> AsyncIterator[int]:
    """A port on which everything is answered so."""

    async def answer(_: web.BaseRequest) -> web.StreamResponse:
        return web.Response(status=status_, text=body)

    runner = web.ServerRunner(web.Server(answer))
    await runner.setup()
    site = web.TCPSite(runner, "127.0.0.1", 0)
    await site.start()
    try:
        yield runner.addresses[0][1]
    finally:
        await runner.cleanup()


async def from_outside(public_url: str, port: int, *pushed: AccountSetup, host: str = "127.0.0.1") -> Any:
    config = Config.model_validate({"web": {"port": port, "public_url": public_url, "host": host}})
    async with http_session() as session:
        return await public(pushed or [account("webhook")], config, Http(session))


async def test_what_answers_outside_as_it_does_here_is_reached() -> None:
    async with answering(405, '{"error":"use POST"}') as port:
        (found,) = await from_outside(f"http://127.0.0.1:{port}/", port, host="0.0.0.0")
    assert (found.level, found.text) == (
        Level.GOOD,
        f"webhook:a is reached at http://127.0.0.1:{port}/channels/webhook/a",
    )


@pytest.mark.parametrize(
    ("status_", "words"), [(502, "answers 502, the"), (301, "it redirects: set public_url")]
)
async def test_a_proxy_that_leads_elsewhere_is_a_fault(status_: int, words: str) -> None:
    async with answering(405) as port, answering(status_) as outside:
        (found,) = await from_outside(f"http://127.0.0.1:{outside}", port)
    assert (found.level, words in found.text) == (Level.FAULT, True)
    assert f"pass /channels/ to http://127.0.0.1:{port}" in found.cure


async def test_a_public_address_where_nothing_listens_is_a_fault() -> None:
    (found,) = await from_outside(f"http://127.0.0.1:{free_port()}", 1)
    assert (found.level, "web.public_url: 127.0.0.1" in found.text) == (Level.FAULT, True)


async def test_a_daemon_that_does_not_listen_where_it_should_is_a_fault() -> None:
    async with answering(405) as outside:
        (found,) = await from_outside(f"http://127.0.0.1:{outside}", free_port(), host="::")
    assert found.level is Level.FAULT
    assert "no connection" in found.text


async def test_without_a_public_address_nobody_can_tell() -> None:
    (found,) = await from_outside("", 1)
    assert (found.level, "webhook:a" in found.text) == (Level.UNKNOWN, True)


async def test_without_accounts_that_are_pushed_to_nothing_is_looked_at() -> None:
    async with http_session() as session:
        assert await public([], Config(), Http(session)) == []


async def test_a_port_that_is_chosen_anew_at_each_start_cannot_be_compared() -> None:
    async with answering(405) as outside:
        (found,) = await from_outside(f"http://127.0.0.1:{outside}", 0)
    assert (found.level, "web.port is 0" in found.text) == (Level.UNKNOWN, True)


async def test_an_address_of_version_6_is_asked_as_such() -> None:
    async with answering(405) as outside:
        (found,) = await from_outside(f"http://127.0.0.1:{outside}", free_port(), host="::1")
    assert found.level is Level.FAULT


def test_each_server_of_tools_is_told_as_the_daemon_has_it() -> None:
    kinds = {
        "connected": Level.GOOD,
        "starting": Level.WARNING,
        "backoff": Level.FAULT,
        "failed": Level.FAULT,
    }
    servers = [{"name": state, "state": state, "reason": f"why {state}"} for state in kinds]
    servers[0]["tools"], servers[0]["notes"] = [{}, {}], ["a note"]  # type: ignore[assignment]  # as on the wire
    answer = told()
    answer["status"]["mcp"] = [*servers, {"name": "off", "state": "disabled"}]
    with socket_daemon(answer) as daemon:
        first, note, *rest = doctor_daemon.servers(daemon.home)
        assert daemon.command == {"action": "mcp"}
    assert (first.level, first.text) == (Level.GOOD, "connected: connected, 2 tools")
    assert (note.level, note.text) == (Level.WARNING, "connected: a note")
    assert [each.level for each in rest] == list(kinds.values())[1:]
    assert rest[1].text == "backoff: backoff: why backoff"
    assert "mcp test backoff" in rest[1].cure


def test_a_daemon_that_does_not_know_of_servers_is_no_fault() -> None:
    with socket_daemon(refusal("what?")) as daemon:
        (found,) = doctor_daemon.servers(daemon.home)
    assert found.level is Level.UNKNOWN
