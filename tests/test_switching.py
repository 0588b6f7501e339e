"""channel_set and channel_logout: settings first, then what runs, then what is stored."""

import asyncio
import json
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path

import pytest

from bridge import switching
from bridge.channel.testing.clock import START, FakeClock, until
from bridge.config import load
from bridge.errors import BridgeError, StoreError
from bridge.health import Health, Snapshot, State
from bridge.ids import AccountId
from bridge.paths import Home, write_private
from bridge.protocol import commands, ours
from bridge.protocol.shared import RemoteTools
from bridge.sessions.contract import ControlError
from bridge.store.contract import Bind, Forget, OpenMessages, PartKind, Post, Store
from bridge.store.reply import NewPart
from bridge.store.sqlite import open_store
from bridge.supervisor import Plan, Supervisor
from bridge.switching import Switches
from tests.store.values import claim, reply

MAIN = AccountId("feishu:main")
SETTINGS = """\
# The team's bot.
[channels.feishu.main]
app_id = "cli_1" # from the console

# Mine.
[channels.console.local]
"""


@dataclass
class Place:
    """A home with its settings, and the accounts that run by them."""

    home: Home
    store: Store
    supervisor: Supervisor
    events: list[str] = field(default_factory=list)
    is_stubborn: bool = False

    @property
    def switches(self) -> Switches:
        return Switches(self.home, self.supervisor, self.store, self.reconcile)

    async def reconcile(self, _: AccountId = MAIN) -> None:
        config = load(self.home.config)
        await self.supervisor.reconcile(
            [
                Plan(
                    Snapshot(AccountId(f"{channel}:{name}"), channel, name, State.STARTING, START),
                    json.dumps(table),
                    partial(Bot, f"{channel}:{name}", self) if table.get("enabled", True) else None,
                )
                for channel, tables in config.channels.items()
                for name, table in tables.items()
            ]
        )

    def table(self, channel: str = "feishu", account: str = "main") -> dict[str, object]:
        return load(self.home.config).channels[channel][account]

    def runs(self) -> list[str]:
        return [one.id for one in self.supervisor.snapshots() if self.supervisor.component(one.id)]


@dataclass
class Bot:
    """An account that notes what is there of its credentials when it stops."""

    name: str
    place: Place

    async def run(self, health: Health) -> None:
        health.contact()
        self.place.events.append(f"{self.name} starts")
        try:
            await asyncio.Event().wait()
        finally:
            secrets = self.place.home.credentials("feishu", "main").exists()
            state = await self.place.store.get(OpenMessages(MAIN))
            self.place.events.append(f"{self.name} stops (credentials {secrets}, messages {len(state)})")


@asynccontextmanager
async def opened(tmp_path: Path) -> AsyncIterator[Place]:
    home = Home(tmp_path / "home")
    home.private_dir(home.credentials("feishu", "main").parent)
    home.private_dir(home.outbox)
    write_private(home.config, SETTINGS.encode())
    write_private(home.credentials("feishu", "main"), b'{"app_secret": "s", "encrypt_key": "k"}')
    supervisor = Supervisor(FakeClock())
    async with open_store(home.db) as store, supervisor.running():
        place = Place(home, store, supervisor)
        await place.reconcile()
        await until(lambda: len(place.events) == 2)
        place.events.clear()
        yield place


def setting(**words: object) -> ours.ChannelSet:
    given = {"channel": "feishu", "account": "main", "enabled": True, **words}
    return ours.ChannelSet.model_validate(given)


def logout(channel: str = "feishu", account: str = "main") -> commands.ChannelLogout:
    return commands.ChannelLogout(channel=channel, account=account)


async def test_an_account_is_switched_off_and_on_and_its_comments_stay(tmp_path: Path) -> None:
    async with opened(tmp_path) as place:
        await place.switches.set(setting(enabled=False))
        assert place.runs() == ["console:local"]
        on = '"cli_1" # from the console\n'
        assert place.home.config.read_text() == SETTINGS.replace(on, on + "enabled = false\n")
        await place.switches.set(setting(enabled=True))
        assert place.runs() == ["console:local", MAIN]
        assert place.home.config.read_text() == SETTINGS
        assert not [event for event in place.events if event.startswith("console")]


async def test_what_is_left_out_is_kept_and_what_is_a_default_is_not_written(tmp_path: Path) -> None:
    async with opened(tmp_path) as place:
        given = setting(
            workspace=str(tmp_path / "x" / ".." / "home"),
            remote_tools=RemoteTools.OWNER,
            senders=ours.Senders.ANYONE,
        )
        (tmp_path / "x").mkdir()
        await place.switches.set(given)
        wanted = {
            "app_id": "cli_1", "workspace": str((tmp_path / "home").resolve()),
            "remote_tools": "owner", "senders": "anyone",
        }  # fmt: skip
        assert place.table() == wanted
        await place.switches.set(setting())
        assert place.table() == wanted
        await place.switches.set(setting(remote_tools=RemoteTools.NONE, senders=ours.Senders.OWNER))
        assert place.table().keys() == {"app_id", "workspace"}


async def test_a_channel_s_own_default_decides(tmp_path: Path) -> None:
    async with opened(tmp_path) as place:  # the console's user has tools by default
        await place.switches.set(setting(channel="console", account="local", remote_tools=RemoteTools.NONE))
        assert place.table("console", "local") == {"remote_tools": "none"}
        await place.switches.set(setting(channel="console", account="local", remote_tools=RemoteTools.OWNER))
        assert place.table("console", "local") == {}


async def test_an_account_whose_table_is_missing_gets_one_when_its_credentials_are_there(
    tmp_path: Path,
) -> None:
    async with opened(tmp_path) as place:
        write_private(place.home.credentials("feishu", "two"), b"{}")
        await place.switches.set(setting(account="two"))
        assert place.table("feishu", "two") == {"enabled": True}


async def test_a_list_of_senders_is_kept_and_made_by_hand_only(tmp_path: Path) -> None:
    async with opened(tmp_path) as place:
        with pytest.raises(ControlError, match="written into the settings"):
            await place.switches.set(setting(senders=ours.Senders.LIST))
        listed = SETTINGS.replace("# from the console", '\nsenders = ["ou_1"]')
        write_private(place.home.config, listed.encode())
        await place.switches.set(setting(senders=ours.Senders.LIST))
        assert place.table()["senders"] == ["ou_1"]


@pytest.mark.parametrize(
    ("words", "said"),
    [
        ({"channel": "pigeon"}, "no channel called"),
        ({"account": "../x"}, "letters, digits"),
        ({"account": "none"}, "not signed in"),
        ({"account": "none", "enabled": False}, "not signed in"),
        ({"workspace": "work"}, "absolute path"),
        ({"account": "a" * 300}, "64 letters"),
        ({"workspace": "/does/not/exist"}, "existing directory"),
        ({"workspace": f"/{'a' * 300}"}, "existing directory"),
    ],
)
async def test_what_cannot_be_set_changes_nothing(
    tmp_path: Path, words: dict[str, object], said: str
) -> None:
    async with opened(tmp_path) as place:
        with pytest.raises(ControlError, match=said) as caught:
            await place.switches.set(setting(**words))
        is_unknown = said == "not signed in"
        assert caught.value.code == ("unknown_account" if is_unknown else "component_error")
        assert place.home.config.read_text() == SETTINGS
        assert place.events == []


async def test_an_account_without_credentials_can_be_switched_off_but_not_on(tmp_path: Path) -> None:
    async with opened(tmp_path) as place:
        place.home.credentials("feishu", "main").unlink()
        with pytest.raises(ControlError, match="not signed in"):
            await place.switches.set(setting())
        await place.switches.set(setting(enabled=False))
        assert place.table()["enabled"] is False


async def test_logout_stops_the_run_before_the_credentials_go_and_removes_state_and_table(
    tmp_path: Path,
) -> None:
    async with opened(tmp_path) as place:
        await place.store.do(Bind(MAIN, "one"))
        await place.store.do(claim(account=MAIN, checkpoint="position"))
        copy = place.home.outbox / "copy"
        copy.write_bytes(b"x")
        part = NewPart(PartKind.FILE, json.dumps({"path": str(copy)}), "id")
        await place.store.do(Post(MAIN, reply(part), 2000))
        inbox = place.home.private_dir(place.home.inbox("feishu", "main", "abc"))
        (inbox / "received.txt").write_bytes(b"x")
        await place.switches.logout(logout())
        assert place.events == ["feishu:main starts", f"{MAIN} stops (credentials True, messages 1)"][1:]
        assert [one.id for one in place.supervisor.snapshots()] == ["console:local"]
        assert not place.home.credentials("feishu", "main").exists()
        assert await place.store.get(OpenMessages(MAIN)) == ()
        assert await place.store.do(Bind(MAIN, "another")) == ""
        assert not inbox.parent.exists()
        assert not copy.exists()
        assert place.home.config.read_text() == "# The team's bot.\n\n# Mine.\n[channels.console.local]\n"
        assert (place.home.state / "config.lock").exists()


@pytest.mark.parametrize(("channel", "account"), [("feishu", "none"), ("pigeon", "main")])
async def test_logging_out_what_nobody_knows_succeeds(tmp_path: Path, channel: str, account: str) -> None:
    async with opened(tmp_path) as place:
        await place.switches.logout(logout(channel, account))
        assert place.home.config.read_text() == SETTINGS
        assert place.events == []


async def test_a_name_that_is_none_is_refused(tmp_path: Path) -> None:
    async with opened(tmp_path) as place:
        with pytest.raises(ControlError, match="letters, digits"):
            await place.switches.logout(logout(account="../main"))


async def test_what_a_crash_left_of_a_logout_is_removed_by_the_next(tmp_path: Path) -> None:
    async with opened(tmp_path) as place:
        place.home.credentials("feishu", "main").unlink()
        await place.store.do(claim(account=MAIN))
        await place.switches.logout(logout())
        assert await place.store.get(OpenMessages(MAIN)) == ()
        assert "feishu" not in load(place.home.config).channels


STEPS = ["set_keys", "remove", "remove_copies", "_remove_folder", "remove_account"]


@pytest.mark.parametrize("at", STEPS)
async def test_a_logout_that_ended_anywhere_is_completed_by_the_next_and_runs_nothing_meanwhile(
    tmp_path: Path, at: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    class Crash(BaseException):
        pass

    def crash(*args: object) -> None:
        raise Crash

    async with opened(tmp_path) as place:
        await place.store.do(Bind(MAIN, "one"))
        await place.store.do(claim(account=MAIN))
        with monkeypatch.context() as patched, pytest.raises(Crash):
            patched.setattr(switching, at, crash)
            await place.switches.logout(logout())
        assert (MAIN in place.runs()) == (at == "set_keys")  # before that, nothing has happened
        assert place.home.credentials("feishu", "main").exists() == (at in ("set_keys", "remove"))
        await place.reconcile()  # as a restart does
        assert (MAIN in place.runs()) == (at == "set_keys")
        await place.switches.logout(logout())
        assert not place.home.credentials("feishu", "main").exists()
        assert await place.store.do(Bind(MAIN, "another")) == ""
        assert "feishu" not in load(place.home.config).channels


async def test_nothing_is_removed_while_the_settings_cannot_be_changed(tmp_path: Path) -> None:
    async with opened(tmp_path) as place:
        write_private(place.home.config, b"[oops\n")
        with pytest.raises(ControlError, match="not TOML"):
            await place.switches.logout(logout())
        assert place.home.credentials("feishu", "main").exists()
        assert place.events == []


async def test_nothing_is_removed_while_the_account_does_not_stop(tmp_path: Path) -> None:
    async with opened(tmp_path) as place:

        async def nothing(_: AccountId) -> None:
            pass

        switches = Switches(place.home, place.supervisor, place.store, nothing)
        with pytest.raises(ControlError, match="did not stop"):
            await switches.logout(logout())
        assert place.home.credentials("feishu", "main").exists()
        assert place.table()["enabled"] is False


async def test_state_that_cannot_be_removed_is_told_and_the_table_stays(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    class Full:
        async def do(self, step: Forget) -> None:
            raise StoreError("the disk is full")

    async with opened(tmp_path) as place:
        switches = Switches(place.home, place.supervisor, Full(), place.reconcile)  # type: ignore[arg-type] # fails
        with pytest.raises(ControlError, match="the disk is full"):
            await switches.logout(logout())
        assert place.table()["enabled"] is False
        folder = place.home.inbox("feishu", "main", "abc").parent
        folder.parent.mkdir(parents=True)
        folder.write_bytes(b"no folder")
        with pytest.raises(ControlError, match="cannot remove"):
            await place.switches.logout(logout())


async def test_a_much_used_account_goes_in_several_pieces(tmp_path: Path) -> None:
    async with opened(tmp_path) as place:
        for n in range(3):
            await place.store.do(Post(MAIN, reply(NewPart(PartKind.TEXT, "x", f"c{n}"), reply_id=f"r{n}"), 1))
        await place.switches.logout(logout())
        assert await place.store.do(Bind(MAIN, "another")) == ""


async def test_a_new_owner_is_written_into_the_account_s_own_table_and_in_effect(tmp_path: Path) -> None:
    async with opened(tmp_path) as place:
        await place.switches.own(MAIN, "ou_1")
        assert place.table() == {"app_id": "cli_1", "owner": "ou_1"}
        assert "# The team's bot." in place.home.config.read_text()
        await until(lambda: "feishu:main starts" in place.events)
        assert not any("console" in event for event in place.events)


async def test_an_account_that_is_gone_gets_no_owner_and_no_table(tmp_path: Path) -> None:
    async with opened(tmp_path) as place:
        with pytest.raises(BridgeError, match="does not run any more"):
            await place.switches.own(AccountId("feishu:other"), "ou_1")
        assert place.home.config.read_text() == SETTINGS


async def test_an_owner_whom_the_settings_would_refuse_is_not_written(tmp_path: Path) -> None:
    async with opened(tmp_path) as place:
        with pytest.raises(
            BridgeError, match=r"channels\.feishu\.main\.owner: must be ids of the platform's users"
        ):
            await place.switches.own(MAIN, "Ann")
        assert place.home.config.read_text() == SETTINGS
        assert place.events == []
