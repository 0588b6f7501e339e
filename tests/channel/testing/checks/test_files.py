from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from bridge.channel import ChannelSpec, FileWanted, Http, Place
from bridge.channel.testing.checks import files, stage
from tests.channel.testing.checks.tools import Spoilt, mistakes, notices, passes, skips, sound, unable
from tests.outside.mistakes import adapter, changes_items, kit_with, never_hangs_up


@sound(files)
def test_sound_adapters_pass(check: Callable[[Any], None], channel: str, outside: None) -> None:
    passes(check, channel)


@mistakes(files)
def test_mistakes_are_noticed(spoilt: Spoilt, channel: str, outside: None) -> None:
    notices(spoilt, channel)


def test_connections_that_are_never_given_back_are_noticed(
    outside: None, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Only by the deadline, so the check is run with a short one."""
    monkeypatch.setattr(stage, "DEADLINE_SECONDS", 1.0)
    notices(
        adapter("a held connection", "hanging_up_on_a_file_leaves_nothing_behind", never_hangs_up), "pigeon"
    )


@pytest.mark.parametrize("arrived", ["%E6%B5%8B.pdf", "a\r\nb", "other.pdf"])
def test_names_that_nobody_can_read_are_noticed(arrived: str) -> None:
    files.readable('a "quote"', "a _quote_")
    with pytest.raises(AssertionError):
        files.readable("测.pdf", arrived)


def test_an_address_that_leads_to_another_file_is_noticed() -> None:
    def change(spec: ChannelSpec) -> ChannelSpec:
        def create(settings: Any, credentials: Any, http: Http, place: Place) -> Any:
            made: Any = spec.create(settings, credentials, http, place)
            made.file = lambda request: FileWanted("another-copy")
            return made

        return replace(spec, create=create)

    with pytest.raises(AssertionError, match="leads to another file"):
        files.test_a_sent_file_arrives_byte_by_byte_under_a_readable_name(kit_with("wechat_mp", change))


def test_open_copies_are_seen() -> None:
    with files.copy_of(b"x") as path:
        before = files.open_files()
        with path.open("rb"):
            seen = files.open_files() - before
    assert seen == ({str(path)} if Path("/proc/self/fd").is_dir() else set())


def test_what_has_no_files_is_skipped(outside: None) -> None:
    skips(files.test_a_file_is_fetched_byte_by_byte_also_after_a_restart, "pigeon", unable)
    skips(files.test_an_address_that_was_never_signed_gives_no_file, "webhook", unable)
    fileless = adapter("", "", changes_items(files=())).change
    skips(files.test_what_a_message_brings_can_be_fetched, "webhook", fileless)
