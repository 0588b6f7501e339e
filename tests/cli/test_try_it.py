"""``try``: the whole way through a real daemon, with pictures and files of any name."""

import asyncio
import json
import re
import threading
from pathlib import Path

import pytest
from PIL import Image

from bridge.cli import webhook_client
from bridge.cli.main import main
from bridge.cli.picture import sunset
from bridge.paths import Home, write_private
from tests.daemons import DEMO, daemon, free_port, short_home


async def tried(home: Home, *args: str) -> int:
    return await asyncio.to_thread(main, ["try", "--home", str(home.root), *args])


def with_port(home: Home, more: str = "") -> None:
    """``try`` reads the port from the settings, so it must be a number there."""
    disk = "[media]\nmin_free_percent = 0\n"  # however full this machine's is
    write_private(home.config, f"[web]\nport = {free_port()}\n{disk}{DEMO}{more}\n".encode())


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


def photo(tmp_path: Path) -> Path:
    """A picture as phones make them: some MiB of JPEG."""
    path = tmp_path / "IMG_4711.jpg"
    Image.effect_noise((2400, 1600), 90).convert("RGB").save(path, quality=93)
    assert path.stat().st_size > 1_500_000
    return path


async def test_a_photo_is_fetched_from_here_where_the_account_may(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    with short_home() as home:
        with_port(home, f"file_hosts = ['127.0.0.1:{(port := free_port())}']")
        async with daemon(home):
            assert await tried(home, str(photo(tmp_path)), "--text", "look") == 1
            assert 'file_hosts = ["127.0.0.1:8472"]' in capsys.readouterr().err
        hosts = f"file_hosts = ['127.0.0.1:{port}']\nprivate_hosts = ['127.0.0.1:{port}']"
        with_port(home, hosts)
        async with daemon(home):
            assert await tried(home, str(photo(tmp_path)), "--text", "look", "--account", "webhook:demo") == 0
    said = capsys.readouterr().out
    assert "image IMG_4711.jpg (image/jpeg" in said
    assert "2400 x 1600 pixels" in said
    assert "MiB" in said


async def test_replies_of_other_conversations_are_named_and_left_until_they_are_asked_for(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(webhook_client, "PAUSE_SECONDS", 0.001)
    with short_home() as home:
        with_port(home)
        async with daemon(home) as running:
            client = running.client()
            client.conversation = "shell"
            await asyncio.to_thread(client.send, "you", "from a shell", [])
            while not await asyncio.to_thread(client.waiting):
                await asyncio.sleep(0.01)
            assert await tried(home, "--text", "hi") == 0
            assert await tried(home, "--text", "hi again") == 0
            said = capsys.readouterr().out
            assert "replies wait in: shell;" in said
            assert "replies wait in: shell, try;" in said
            assert "from a shell" not in said
            assert await tried(home, "--waiting") == 0
            said = capsys.readouterr().out
            assert "in shell:\nanswer   You said: from a shell" in said
            assert "3 parts of replies" in said
            assert await tried(home, "--waiting") == 0
            assert "no reply waits" in capsys.readouterr().out


async def test_a_name_that_plays_with_the_terminal_is_shown_harmlessly(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "a\x1b[2J\u202egpj.txt").write_text("x")
    with short_home() as home:
        with_port(home)
        async with daemon(home):
            assert await tried(home, str(tmp_path / "a\x1b[2J\u202egpj.txt"), "--text", "hi") == 0
    said = capsys.readouterr().out
    assert "\x1b" not in said
    assert "\u202e" not in said


async def test_what_is_wrong_is_one_line_and_a_code(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    with short_home() as home:
        with_port(home)
        assert await tried(home) == 3
        assert await tried(home, str(tmp_path / "none.png")) == 2
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


async def test_secrets_as_signing_in_writes_them_are_used(capsys: pytest.CaptureFixture[str]) -> None:
    with short_home() as home:
        with_port(home)
        path = home.credentials("webhook", "demo")
        secrets = json.loads(path.read_text())
        secrets["secrets"] = [{"secret": secret} for secret in secrets["secrets"]]
        write_private(path, json.dumps(secrets).encode())
        async with daemon(home):
            assert await tried(home, "--text", "x") == 0
        secrets["secrets"] = "plain:a-token-of-thirty-two-characters"
        write_private(path, json.dumps(secrets).encode())
        assert await tried(home, "--text", "x") == 2
    said = capsys.readouterr()
    assert "You said: x" in said.out
    assert "has no secret that signs" in said.err


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


async def test_a_question_is_shown_with_how_it_is_answered_and_it_can_be(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    with short_home() as home:
        asks = f'\napprovals = "ask"\nworkspace = "{tmp_path}"\n'
        with_port(home, asks)
        async with daemon(home):
            assert await tried(home, "--text", "write a.txt hi") == 1
            said, error = capsys.readouterr()
            assert "May I do this?" in said
            found = re.search(r'--text "(/approve \w{5})"', error)
            assert found is not None
            assert not (tmp_path / "a.txt").exists()
            assert await tried(home, "--text", found[1]) == 0
            assert "Approved" in capsys.readouterr().out
            await asyncio.to_thread(_written, tmp_path / "a.txt")


def _written(path: Path) -> None:
    for _ in range(1000):
        if path.exists():
            return
        threading.Event().wait(0.01)
    raise AssertionError(path)
