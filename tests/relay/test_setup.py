import os
from datetime import timedelta
from pathlib import Path
from typing import Any

from bridge.channel.testing.clock import FakeClock
from bridge.ids import ConversationKey
from bridge.paths import Home
from bridge.relay.setup import MIB, Setup
from tests.relay.harness import OWNER, PushedChannel, setup_for

HOME = Home(Path("/h"))


def setup(**changes: Any) -> Setup:
    return setup_for(HOME, None, FakeClock(), PushedChannel(), **changes)


def test_the_account_s_route_as_the_world_sees_it() -> None:
    assert setup(public_url="https://x.example/").place.address == "https://x.example/channels/test/a"
    assert setup().place.address == ""
    assert (setup().channel_name, setup().account_name) == ("test", "a")


def test_tools_are_granted_by_the_settings_alone() -> None:
    assert not setup().policy.tools
    assert setup(settings={"remote_tools": "owner"}).policy.tools
    assert setup().policy.owner == OWNER


def test_the_fingerprint_follows_what_identifies_the_account() -> None:
    other = setup(spec={"identity": lambda settings, credentials: ("other",)})
    assert setup().fingerprint == setup(public_url="https://y.example").fingerprint
    assert setup().fingerprint != other.fingerprint


def test_received_files_have_a_folder_without_any_remote_id_and_limits_in_bytes() -> None:
    terms = setup(settings={"media": {"owner_max_mib": 2}}).media(ConversationKey("../../x"))
    assert terms.folder.parent == HOME.inbox("test", "a", "0" * 16).parent
    assert ".." not in str(terms.folder)
    assert terms.limits.owner_max_bytes == 2 * MIB
    assert setup().caps.part_bytes == 16_384


async def test_an_account_s_received_files_have_the_quota_that_is_set(tmp_path: Path) -> None:
    shelf = setup_for(Home(tmp_path), None, FakeClock(), PushedChannel(), media={"quota_mib": 1}).shelf
    old, new = (tmp_path / "state" / "media" / "test" / "a" / name for name in ("0-old", "0-new"))
    for stamp, path in enumerate((old, new)):
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(bytes(MIB))
        os.utime(path, (stamp, stamp))
    await shelf.sweep(timedelta(days=36_500), FakeClock().now())
    assert [path.exists() for path in (old, new)] == [False, True]
