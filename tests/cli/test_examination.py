"""All that the doctor looks at, on a whole home: what is wrong is found, named and cured."""

import asyncio
import json
from collections.abc import Iterator
from pathlib import Path

import pytest

from bridge.channel.testing.fakes.feishu import FakeFeishu
from bridge.cli import service_unit
from bridge.cli.examination import enabled, examined, settings
from bridge.cli.findings import Finding, Level
from bridge.config import load
from bridge.paths import Home, write_private
from tests.cli.fake_systemd import with_systemd
from tests.daemons import daemon, short_home, write_settings

ACCOUNT = '[channels.feishu.main]\napp_id = "cli_fake0001"\nbase = "{}"\nsenders = "anyone"\n'
GOOD = {"app_secret": "fake-app-secret", "verification_token": "fake-verification-token"}


@pytest.fixture(autouse=True)
def _machine(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """What the tests' machine is like does not matter here."""
    with_systemd(tmp_path, monkeypatch)
    monkeypatch.setattr(service_unit, "TEMPORARY", ())


@pytest.fixture
def where() -> Iterator[Home]:
    with short_home("") as home:
        home.credentials("webhook", "demo").unlink()
        yield home


def keep(home: Home, secrets: dict[str, str]) -> None:
    path = home.credentials("feishu", "main")
    home.private_dir(path.parent)
    write_private(path, json.dumps(secrets).encode())


def faults(found: list[Finding]) -> list[str]:
    return [each.check for each in found if each.level is Level.FAULT]


async def test_broken_credentials_are_found_and_once_they_are_mended_all_is_well(where: Home) -> None:
    async with FakeFeishu() as fake:
        write_settings(where, ACCOUNT.format(fake.base))
        keep(where, {**GOOD, "app_secret": "s3cr3t-wrong"})
        async with daemon(where):
            found = await asyncio.to_thread(examined, where)
            assert faults(found) == ["credentials", "account"]
            assert "s3cr3t" not in repr(found)
        keep(where, GOOD)
        async with daemon(where):
            found = await asyncio.to_thread(examined, where)
    assert faults(found) == [], found
    assert {each.check for each in found} >= {
        "installation", "home", "disk", "database", "settings", "credentials", "permissions",
        "clock", "webhook", "daemon", "account", "service",
    }  # fmt: skip


def test_without_a_daemon_and_with_a_file_that_is_open_both_are_told(where: Home) -> None:
    write_settings(where, ACCOUNT.format("http://127.0.0.1:1"))
    keep(where, GOOD)
    where.credentials("feishu", "main").chmod(0o644)
    found = examined(where)
    assert faults(found) == ["settings", "daemon"]
    assert any("is open to others: run chmod 600" in each.text for each in found)


def test_settings_that_are_no_toml_are_one_fault(where: Home) -> None:
    write_private(where.config, b"[[[")
    assert faults(examined(where)) == ["settings", "daemon"]


def test_a_variable_that_only_this_shell_lacks_is_a_warning(where: Home) -> None:
    write_settings(
        where, ACCOUNT.format("http://127.0.0.1:1") + "credentials.app_secret = { env = 'NO_SUCH' }\n"
    )
    keep(where, GOOD)

    def levels(state: str) -> list[Level]:
        status = {"components": [{"id": "feishu:main", "state": state}]}
        return [each.level for each in settings(where, status)]

    assert levels("connected") == [Level.WARNING]
    assert levels("failed") == [Level.FAULT]
    assert [each.level for each in settings(where, None)] == [Level.FAULT]


def test_a_variable_of_a_server_of_tools_is_the_daemons_to_have(where: Home) -> None:
    write_settings(where, '[mcp.web]\nurl = "http://127.0.0.1:1/mcp"\nbearer = { env = "NO_SUCH" }\n')
    assert [each.level for each in settings(where, {"components": []})][:1] == [Level.WARNING]
    assert [each.level for each in settings(where, None)][:1] == [Level.FAULT]


def test_what_is_odd_is_a_warning(where: Home) -> None:
    write_settings(where, ACCOUNT.format("http://127.0.0.1:1") + "remote_tools = 'owner'\n")
    keep(where, GOOD)
    assert [each.level for each in settings(where, None)] == [Level.GOOD, Level.WARNING]


def test_accounts_that_are_broken_or_switched_off_are_not_asked(where: Home) -> None:
    write_settings(
        where,
        "[channels.console.a]\n[channels.console.b]\nenabled = false\n[channels.console.c]\nnonsense = 1\n",
    )
    assert [one.id for one in enabled(where, load(where.config))] == ["console:a"]


def test_a_home_that_may_not_be_looked_into_is_all_that_is_told(
    where: Home, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("os.access", lambda path, _: path != where.root)
    assert [each.check for each in examined(where)] == ["installation", "descriptors", "home"]


def test_settings_that_are_not_there_yet_are_made_by_init(where: Home) -> None:
    where.config.unlink()
    (finding,) = settings(where, None)
    assert (finding.level, finding.cure.startswith("make it: turnbridge init --home ")) == (Level.FAULT, True)
