import asyncio
import json
import os
import stat
import threading
from pathlib import Path
from typing import Any

import pytest

from bridge.agents.echo_files import make
from bridge.media import outbox
from bridge.media.outbox import MAX_BYTES
from bridge.paths import Home
from bridge.protocol.helpers import reply_attachment
from bridge.tools import chat_attach
from bridge.tools.chat_attach import AttachArguments, ChatAttach
from bridge.tools.contract import ArgumentsError, CallPlace, Risk, Said, ToolResult, read_arguments
from tests.tools.place import Shown


@pytest.fixture
def cwd(tmp_path: Path) -> Path:
    folder = tmp_path / "work"
    folder.mkdir()
    return folder


@pytest.fixture
def home(tmp_path: Path) -> Home:
    return Home(tmp_path / "home")


async def attach(cwd: Path, home: Home, path: str, **fields: Any) -> ToolResult:
    tool = ChatAttach(home, user=cwd.parent)
    return await tool.run(AttachArguments(path=path, **fields), Shown(cwd).place)


def copies(home: Home) -> list[Path]:
    return list(home.outbox.iterdir()) if home.outbox.exists() else []


def test_it_is_a_network_risk_and_says_what_it_sends(home: Home) -> None:
    tool = ChatAttach(home)
    assert (tool.name, tool.risk) == ("chat_attach", Risk.NETWORK)
    assert tool.summary(AttachArguments(path="a.png")) == "Send a.png to the chat"


async def test_a_file_is_copied_into_the_outbox_and_reported(cwd: Path, home: Home) -> None:
    (cwd / "a.png").write_bytes(make("a.png", "3x2"))
    result = await attach(cwd, home, "a.png", caption="  look  ")
    attachment = reply_attachment("chat_attach", result.success, result.output)
    assert attachment is not None
    (copy,) = copies(home)
    assert attachment.path == str(copy)
    assert (attachment.name, attachment.mime, attachment.caption) == ("a.png", "image/png", "look")
    assert attachment.size == copy.stat().st_size == (cwd / "a.png").stat().st_size
    assert (stat.S_IMODE(copy.stat().st_mode), stat.S_IMODE(home.outbox.stat().st_mode)) == (0o600, 0o700)
    prefix, _, rest = copy.name.partition("-")
    assert (len(prefix), rest) == (12, "a.png")
    assert json.loads(result.output)["note"]


async def test_an_absolute_path_or_a_link_leads_to_the_file_itself(cwd: Path, home: Home) -> None:
    target = cwd.parent / "报告.txt"
    target.write_text("text")
    (cwd / "link").symlink_to(target)
    for path in (str(target), "link", "../报告.txt"):
        result = await attach(cwd, home, path)
        assert json.loads(result.output)["attached"]["name"] == "报告.txt"
    assert len(copies(home)) == 3


@pytest.mark.parametrize(
    "raw",
    [
        {},
        {"path": ""},
        {"path": " \n"},
        {"path": 1},
        {"path": "a", "more": 1},
        {"path": "a", "caption": None},
        {"path": "a", "caption": "é" * 513},
    ],
)
def test_bad_arguments_are_refused(raw: dict[str, Any]) -> None:
    with pytest.raises(ArgumentsError):
        read_arguments(AttachArguments, raw)


def test_a_caption_may_have_1024_bytes() -> None:
    assert AttachArguments(path="a", caption="é" * 512).caption == "é" * 512


async def test_private_places_are_refused_also_through_links(cwd: Path, home: Home) -> None:
    (cwd.parent / ".ssh").mkdir()
    (cwd.parent / ".ssh" / "config").write_text("x")
    (cwd / "innocent").symlink_to(cwd.parent / ".ssh")
    (cwd / "hosts").symlink_to("/proc/self/status")
    home.root.mkdir()
    home.config.write_text("x")
    for path in ("innocent/config", "hosts", "../home/config.toml", ".env", "../.ssh/config"):
        result = await attach(cwd, home, path)
        assert result == ToolResult(False, "The file was not attached: that place is private.")
    assert copies(home) == []


async def test_what_this_session_received_may_be_sent_again_and_what_another_did_not(
    cwd: Path, home: Home
) -> None:
    async def show(line: str) -> None: ...

    mine, others = (home.inbox("webhook", "demo", chat) / "a.png" for chat in ("mine", "others"))
    for each in (mine, others):
        each.parent.mkdir(parents=True)
        each.write_bytes(make("a.png", "3x2"))
    (cwd / "link").symlink_to(others)
    place = CallPlace(cwd, show, lambda: [Said("user", "look", (mine,)), Said("assistant", "I see")])
    tool = ChatAttach(home, user=cwd.parent)
    assert (await tool.run(AttachArguments(path=str(mine)), place)).success
    for path in (str(others), "link", str(mine.parent / ".." / "others" / "a.png")):
        result = await tool.run(AttachArguments(path=path), place)
        assert result == ToolResult(False, "The file was not attached: that place is private.")
    assert len(copies(home)) == 1


async def test_a_way_that_may_not_be_gone_is_no_matter_of_the_disk(
    cwd: Path, home: Home, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As ``/proc/1/root/…``, for whoever is not root."""

    def closed(*_: object, **__: object) -> str:
        raise PermissionError

    monkeypatch.setattr(os, "readlink", closed)
    (cwd / "link").symlink_to(cwd / "a")
    result = await attach(cwd, home, "link")
    assert result == ToolResult(False, "The file was not attached: the file cannot be opened.")


async def test_what_is_no_sendable_file_is_refused(cwd: Path, home: Home) -> None:
    (cwd / "empty").touch()
    (cwd / "one").write_text("x")
    os.link(cwd / "one", cwd / "two")
    os.mkfifo(cwd / "pipe")
    with (cwd / "large").open("wb") as file:
        file.truncate(MAX_BYTES + 1)
    (cwd / "circle").symlink_to(cwd / "circle")
    for path in ("empty", "one", "pipe", "large", ".", "none", "a\0b", "circle"):
        result = await attach(cwd, home, path)
        assert not result.success, path
        assert str(cwd) not in result.output
    assert copies(home) == []


async def test_an_outbox_that_cannot_take_it_is_said(cwd: Path, home: Home) -> None:
    (cwd / "a").write_text("x")
    home.root.mkdir()
    home.state.write_text("in the way")
    result = await attach(cwd, home, "a")
    assert "disk" in result.output


async def test_a_copy_that_cannot_be_looked_at_is_removed(
    cwd: Path, home: Home, monkeypatch: pytest.MonkeyPatch
) -> None:
    def broken(*_: object) -> str:
        raise OSError

    (cwd / "a").write_text("x")
    monkeypatch.setattr(chat_attach, "sniff_file", broken)
    assert not (await attach(cwd, home, "a")).success
    assert copies(home) == []


@pytest.mark.parametrize("path", ["a", "none"])
async def test_a_cancelled_call_leaves_no_copy(
    path: str, cwd: Path, home: Home, monkeypatch: pytest.MonkeyPatch
) -> None:
    (cwd / "a").write_text("x")
    loop = asyncio.get_running_loop()
    begun, go, real = asyncio.Event(), threading.Event(), outbox.copy

    def slow(source: Path, folder: Path) -> object:
        loop.call_soon_threadsafe(begun.set)
        go.wait()
        return real(source, folder)

    monkeypatch.setattr(chat_attach, "copy", slow)
    async with asyncio.TaskGroup() as tasks:
        call = tasks.create_task(attach(cwd, home, path))
        await begun.wait()
        call.cancel()
        loop.call_later(0.01, go.set)
    assert call.cancelled()
    assert copies(home) == []
