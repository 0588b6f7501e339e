"""``try``: the whole way through a real daemon, with pictures and files of any name."""

import asyncio
import json
from pathlib import Path

import pytest

from bridge.cli.main import main
from bridge.cli.picture import sunset
from bridge.paths import Home, write_private
from tests.daemons import DEMO, daemon, free_port, short_home


async def tried(home: Home, *args: str) -> int:
    return await asyncio.to_thread(main, ["try", "--home", str(home.root), *args])


def with_port(home: Home) -> None:
    """``try`` reads the port from the settings, so it must be a number there."""
    write_private(home.config, f"[web]\nport = {free_port()}\n{DEMO}".encode())


async def test_a_picture_goes_there_and_one_comes_back(capsys: pytest.CaptureFixture[str]) -> None:
    with short_home() as home:
        with_port(home)
        async with daemon(home):
            assert await tried(home) == 0
            replies = sorted((home.root / "replies").iterdir())
            assert [path.name for path in replies] == ["回声.png"]
            assert replies[0].read_bytes().startswith(b"\x89PNG")
            assert await tried(home) == 0  # what is there is kept
            assert (home.root / "replies" / "回声 (2).png").exists()
    said = capsys.readouterr().out
    assert "晚霞.png (image/png, 2.4 KiB)" in said
    assert "480 x 300 pixels" in said
    assert str(replies[0]) in said


async def test_files_of_ones_own_and_a_text_are_one_message(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "图 片.png").write_bytes(sunset())
    (tmp_path / "报告.pdf").write_bytes(b"%PDF-1.4\n%%EOF\n")
    with short_home() as home:
        with_port(home)
        async with daemon(home):
            picture, report = str(tmp_path / "图 片.png"), str(tmp_path / "报告.pdf")
            assert await tried(home, picture, "--file", report, "--text", "looks good") == 0
    said = capsys.readouterr().out
    assert "You said: looks good" in said
    assert "图 片.png (image/png" in said
    assert "报告.pdf (application/pdf" in said
    assert said.count("you      ") == 1


async def test_a_large_file_comes_back_by_its_address(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    with short_home() as home:
        with_port(home)
        async with daemon(home):
            workspace = home.root / "workspace"
            (workspace / "large.bin").write_bytes(b"0123456789" * 100_000)
            assert await tried(home, "--text", "attach large.bin", "--out", str(tmp_path / "out")) == 0
    assert (tmp_path / "out" / "large.bin").read_bytes() == b"0123456789" * 100_000
    assert "976.6 KiB" in capsys.readouterr().out


async def test_what_is_wrong_is_one_line_and_a_code(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    with short_home() as home:
        with_port(home)
        assert await tried(home) == 3
        assert await tried(home, str(tmp_path / "none.png")) == 1
        assert await tried(home, "--account", "other") == 2
        assert await tried(home, "--account", "../x") == 2
        said = capsys.readouterr().err.splitlines()
    assert len(said) == 4
    wanted = ["turnbridge run", "none.png", "[channels.webhook.other]", "rename"]
    assert all(told in line for told, line in zip(wanted, said, strict=True)), said


async def test_an_account_that_is_not_asked_is_refused(capsys: pytest.CaptureFixture[str]) -> None:
    with short_home() as home:
        with_port(home)
        path = home.credentials("webhook", "demo")
        write_private(path, json.dumps({"secrets": ["whsec_" + "QUJD" * 11]}).encode())
        assert await tried(home) == 2
    assert "needs an ask_token" in capsys.readouterr().err


async def test_small_files_are_shown_in_bytes(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "a.txt").write_text("hello")
    with short_home() as home:
        with_port(home)
        async with daemon(home):
            assert await tried(home, "--file", str(tmp_path / "a.txt"), "--text", "x") == 0
    assert "a.txt (text/plain, 5 bytes)" in capsys.readouterr().out


def test_a_folder_full_of_one_name_is_told(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    from bridge.cli import try_it
    from bridge.errors import BridgeError

    monkeypatch.setattr(try_it, "MOST_NAMES", 3)
    for _ in range(2):
        try_it._save(b"x", "a.txt", tmp_path)
    with pytest.raises(BridgeError, match="full of files of that name"):
        try_it._save(b"x", "a.txt", tmp_path)
    assert sorted(path.name for path in tmp_path.iterdir()) == ["a (2).txt", "a.txt"]
