import argparse
import io
import os
import subprocess
import sys
from pathlib import Path

import pytest

from bridge.cli import fake_play
from bridge.cli.fake import register
from bridge.errors import ConfigError
from tests.cli.feishu_bot import free_port
from tests.cli.socket_daemon import MAIN


def run(*arguments: str, platform: str = "feishu") -> int:
    parser = argparse.ArgumentParser()
    register(parser.add_subparsers())
    args = parser.parse_args(["fake", platform, *arguments])
    code: int = args.run(args)
    return code


@pytest.fixture(autouse=True)
def _nothing_is_typed(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "stdin", io.StringIO())


def test_it_plays_until_the_input_ends(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    port = free_port()
    assert run("--port", str(port), "--out", str(tmp_path / "out")) == 0
    shown = capsys.readouterr().out
    assert f"http://127.0.0.1:{port}, pushing to http://127.0.0.1:8470/channels/feishu/fake" in shown
    assert (tmp_path / "out").is_dir()


def test_into_a_home_it_writes_the_account_and_keeps_files_there(tmp_path: Path) -> None:
    assert run("--port", str(free_port()), "--write", str(tmp_path)) == 0
    assert "[channels.feishu.fake]" in (tmp_path / "config.toml").read_text()
    assert (tmp_path / "replies").is_dir()


def test_without_either_files_go_to_a_new_folder(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    assert run("--port", str(free_port())) == 0
    assert f"{tmp_path}/turnbridge-fake-" in capsys.readouterr().out
    assert [*tmp_path.iterdir()] == []  # nothing came into it


def test_a_new_folder_with_files_of_the_bot_stays(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    async def plays(_: object, folder: Path, *more: object) -> int:
        (folder / "a.png").touch()
        return 0

    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    monkeypatch.setattr(fake_play, "play", plays)
    assert run("--port", str(free_port())) == 0
    assert [path.name for path in tmp_path.glob("*/*")] == ["a.png"]


def test_a_signal_leaves_no_empty_folder_either(tmp_path: Path) -> None:
    command = [sys.executable, "-c", MAIN, "fake", "feishu", "--port", str(free_port())]
    environ = {**os.environ, "TMPDIR": str(tmp_path)}
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, env=environ) as fake:
        assert fake.stdout is not None
        assert fake.stdout.readline()
        fake.terminate()
        assert fake.wait(10) == 143
    assert [*tmp_path.iterdir()] == []


def test_with_a_folder_its_secrets_are_the_same_at_the_next_start(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    secrets = []
    for _ in range(2):
        assert run("--port", str(free_port()), "--out", str(tmp_path / "out")) == 0
        secrets.append([line for line in capsys.readouterr().out.splitlines() if '": "' in line])
    assert secrets[0] == secrets[1] != []
    kept = tmp_path / "out" / "feishu-fake.json"
    assert kept.stat().st_mode & 0o777 == 0o600


def test_a_folder_that_cannot_be_made_is_told(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(ConfigError, match="--out"):
        run("--port", str(free_port()), "--out", str(tmp_path / "file" / "x"))


def test_a_reader_that_leaves_is_told_as_such(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    class Closing(io.StringIO):
        def write(self, text: str) -> int:
            if "there is nothing to send" in text:
                raise BrokenPipeError
            return len(text)

    monkeypatch.setattr(sys, "stdin", io.StringIO("/group\n"))
    monkeypatch.setattr(sys, "stdout", Closing())
    with pytest.raises(BrokenPipeError):
        run("--port", str(free_port()), "--out", str(tmp_path))


def test_its_help_tells_what_can_be_typed(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit):
        run("--help")
    assert "/recall" in capsys.readouterr().out


def test_wechat_is_played_until_the_input_ends(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    port = free_port()
    assert run("--port", str(port), "--out", str(tmp_path / "out"), platform="wechat_mp") == 0
    shown = capsys.readouterr().out
    assert f"http://127.0.0.1:{port}, pushing to http://127.0.0.1:8470/channels/wechat_mp/fake" in shown
    assert "customer_service = true" in shown
    assert 'mode = "secure"' in shown


def test_a_wechat_account_is_written_as_it_is_chosen(tmp_path: Path) -> None:
    arguments = ("--port", str(free_port()), "--write", str(tmp_path), "--no-kf", "--mode", "compat")
    assert run(*arguments, platform="wechat_mp") == 0
    written = (tmp_path / "config.toml").read_text()
    assert "[channels.wechat_mp.fake]" in written
    assert "customer_service = false" in written
    assert 'mode = "compat"' in written


def test_the_help_of_wechat_tells_what_can_be_typed(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit):
        run("--help", platform="wechat_mp")
    assert "/unsubscribe" in capsys.readouterr().out
