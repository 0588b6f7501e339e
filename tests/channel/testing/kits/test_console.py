"""The console's kit plays the other side as ``turnbridge chat`` does."""

import json
from pathlib import Path

import pytest
from _pytest.outcomes import Skipped

from bridge.channel.testing.kit import FilesKit, Kit, KitFile, KitMessage, PushedKit, Trouble
from bridge.channel.testing.kits.console import ConsoleKit

HELLO = KitMessage("hello", sender="you", chat="conversation 0")


async def test_it_is_a_kit_that_pushes_and_brings_files() -> None:
    async with ConsoleKit() as kit:
        for kind in (PushedKit, FilesKit):
            assert isinstance(kit, kind)
        plain: Kit = kit
        assert plain.spec.name == "console"
        assert (kit.settings, kit.credentials) == ({}, {})


async def test_its_files_are_real_and_gone_at_the_end() -> None:
    file = KitFile("图.txt", "text/plain", b"abc")
    async with ConsoleKit() as kit:
        request = kit.push(KitMessage("look", "you", "c", files=(file,)))
        (sent,) = json.loads(request.body)["files"]
        path = Path(sent["path"])
        assert (path.name, path.read_bytes(), sent["size"]) == ("图.txt", b"abc", 3)
        assert Path(kit.remote(file).key).read_bytes() == b"abc"
    assert not path.exists()


async def test_ids_differ_unless_they_are_given() -> None:
    async with ConsoleKit() as kit:
        bodies = [json.loads(kit.push(HELLO).body)["id"] for _ in range(2)]
        assert bodies[0] != bodies[1]
        assert json.loads(kit.push(KitMessage("hi", message_id="m7", chat="c")).body)["id"] == "m7"


async def test_forged_requests_differ_from_the_genuine_one_and_from_each_other() -> None:
    async with ConsoleKit() as kit:
        forged = [(request.method, request.body) for request in kit.forged(HELLO)]
        assert len(set(forged)) == len(forged) >= 10
        assert kit.uninteresting() == []


async def test_nothing_is_sent_to_it_and_it_has_one_person_and_no_groups() -> None:
    async with ConsoleKit() as kit:
        assert kit.sent() == []
        assert not any(kit.supports(trouble) for trouble in Trouble)
        with pytest.raises(NotImplementedError):
            kit.trouble(Trouble.REFUSE)
        assert kit.person(0) == kit.person(1)
        assert kit.chat(0) != kit.chat(1)
        with pytest.raises(Skipped):
            kit.chat(0, group=True)
