"""``init``: from nothing to an account that can run, and nothing left where that fails."""

import asyncio
import io
import json
import stat
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from bridge.accounts import AccountSetup
from bridge.channel.testing.fakes.feishu import FakeFeishu
from bridge.cli import login
from bridge.cli.examination import enabled
from bridge.cli.main import main
from bridge.config import load
from bridge.errors import BridgeError
from bridge.paths import Home, write_private
from tests.agents.llm.server import ModelServer
from tests.cli.fake_systemd import with_systemd, without_systemd
from tests.daemons import free_port


@pytest.fixture
def where(tmp_path: Path) -> Home:
    return Home(tmp_path / "home")


def init(where: Home, lines: str, monkeypatch: pytest.MonkeyPatch, *more: str) -> int:
    monkeypatch.setattr(sys, "stdin", io.StringIO(f"port={free_port()}\n{lines}"))
    return main(["init", "--home", str(where.root), *more])


def only(where: Home) -> AccountSetup:
    """The account that was signed in: beside it, there is the console."""
    *_, account = sorted(enabled(where, load(where.config)), key=lambda one: one.id != "console:local")
    return account


def test_a_console_is_ready_at_once(
    where: Home, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    with_systemd(tmp_path, monkeypatch)
    assert init(where, "channel=console", monkeypatch) == 0
    assert only(where).id == "console:local"
    said = capsys.readouterr().out
    for words in ("service install", "run", "doctor", "chat"):
        assert f"  turnbridge {words} --home " in said
    assert stat.S_IMODE(where.config.stat().st_mode) == 0o600
    assert isinstance(sys.stdin, io.StringIO)


def test_where_no_service_can_be_it_is_run_in_the_foreground_or_by_another_manager(
    where: Home, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    without_systemd(tmp_path, monkeypatch)
    assert init(where, "channel=console", monkeypatch) == 0
    said = capsys.readouterr().out
    assert "service install" not in said
    assert "run it here, in the foreground; or have your own service manager run it" in said


def test_an_account_gets_its_settings_and_secrets(
    where: Home, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    lines = "channel=webhook\naccount=ci\nowner=u1\npublic_url=https://bot.example\nask_token=s3cr3t-token\n"
    assert init(where, lines, monkeypatch) == 0
    account = only(where)
    assert (account.id, account.settings.owner) == ("webhook:ci", "u1")
    secrets = json.loads(where.credentials("webhook", "ci").read_text())
    assert secrets["ask_token"] == "s3cr3t-token"
    assert load(where.config).web.public_url == "https://bot.example"
    said = capsys.readouterr()
    assert "s3cr3t" not in said.out + said.err
    assert "pair webhook:ci" not in said.out  # it has an owner
    assert [one.id for one in enabled(where, load(where.config))] == ["console:local", "webhook:ci"]
    assert "chat --home" in said.out


async def test_what_the_platform_refuses_leaves_nothing_so_it_can_be_done_again(
    where: Home, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    async with FakeFeishu() as fake:
        lines = f"channel=feishu\napp_id={fake.app_id}\nbase={fake.base}\nverification_token=t\napp_secret="
        assert await asyncio.to_thread(init, where, f"{lines}wrong", monkeypatch) == 1
        assert not where.root.exists()
        assert await asyncio.to_thread(init, where, f"{lines}{fake.app_secret}", monkeypatch) == 0
    assert only(where).id == "feishu:main"
    assert "nothing was saved" in capsys.readouterr().err


def test_a_home_that_was_there_stays_as_it_was(where: Home, monkeypatch: pytest.MonkeyPatch) -> None:
    where.root.mkdir()
    assert init(where, "channel=feishu", monkeypatch) == 2
    assert [*where.root.iterdir()] == []
    (where.root / "notes").touch()
    assert init(where, "channel=feishu", monkeypatch) == 2
    assert [path.name for path in where.root.iterdir()] == ["notes"]


def test_without_a_way_to_the_platform_it_is_saved_unchecked(
    where: Home, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    lines = f"channel=feishu\napp_id=cli_0123456789abcdef\nbase=http://127.0.0.1:{free_port()}\n"
    secrets = "verification_token=t\napp_secret=s\n"
    assert init(where, lines + secrets, monkeypatch) == 1
    assert "to save it all the same: --no-check" in capsys.readouterr().err
    assert init(where, lines + secrets, monkeypatch, "--no-check") == 0
    assert only(where).id == "feishu:main"
    assert "pair feishu:main --home" in capsys.readouterr().out


def test_a_line_that_sets_nothing_is_named_by_its_place_among_all(
    where: Home, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    assert init(where, "channel=webhook\n\naccount=ci\nownr=u1\n", monkeypatch) == 2
    assert "line 5 of standard input sets nothing" in capsys.readouterr().err


def test_what_was_saved_meanwhile_stays(where: Home, monkeypatch: pytest.MonkeyPatch) -> None:
    def saves_and_fails(home: Home, channel: str, account: str, **_: bool) -> int:
        home.private_dir(home.root)
        write_private(home.config, f"[channels.{channel}.{account}]\n".encode())
        raise BridgeError("the daemon hung up")

    monkeypatch.setattr(login, "sign_in", saves_and_fails)
    assert init(where, "channel=console", monkeypatch) == 1
    assert only(where).id == "console:local"


def test_settings_that_are_there_are_never_written_over(
    where: Home, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    where.private_dir(where.state)
    write_private(where.config, b"# mine\n")
    assert init(where, "channel=console", monkeypatch) == 2
    assert where.config.read_bytes() == b"# mine\n"
    assert "for another account: turnbridge channels login CHANNEL --home" in capsys.readouterr().err


def test_a_person_at_a_terminal_is_asked(where: Home, monkeypatch: pytest.MonkeyPatch) -> None:
    class Terminal(io.StringIO):
        def isatty(self) -> bool:
            return True

    terminal = Terminal()
    monkeypatch.setattr(sys, "stdin", terminal)
    answers = iter(["console", "desk", str(free_port())])
    monkeypatch.setattr("builtins.input", lambda _: next(answers, ""))
    seen = []

    def sign_in(home: Home, channel: str, account: str, fresh: Callable[[], str], **_: bool) -> int:
        seen.append((channel, account, sys.stdin is terminal))
        home.private_dir(home.root)
        write_private(home.config, f"{fresh()}[channels.{channel}.{account}]\n".encode())
        return 1

    monkeypatch.setattr(login, "sign_in", sign_in)
    assert main(["init", "--home", str(where.root)]) == 1
    assert seen == [("console", "desk", True)]


def test_until_the_last_answer_nothing_is_on_disk_so_whatever_ends_it_leaves_nothing(
    where: Home, monkeypatch: pytest.MonkeyPatch
) -> None:
    class Terminal(io.StringIO):
        def isatty(self) -> bool:
            return True

    there_at_a_question = []

    def asked(question: str) -> str:
        there_at_a_question.append(where.root.exists())
        if question.startswith("verification_token"):
            raise KeyboardInterrupt
        answers = {"Which channel": "feishu", "Have a new bot": "n", "app_": "cli_0123456789abcdef"}
        return next((text for start, text in answers.items() if question.startswith(start)), "")

    monkeypatch.setattr(sys, "stdin", Terminal())
    monkeypatch.setattr("builtins.input", asked)
    monkeypatch.setattr("getpass.getpass", asked)
    assert main(["init", "--home", str(where.root)]) == 130
    assert there_at_a_question == [False] * len(there_at_a_question)
    assert len(there_at_a_question) > 5
    assert not where.root.exists()


def test_the_key_of_the_agent_is_there_before_the_settings_are(
    where: Home, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    where.private_dir(where.root)
    (where.root / "credentials").symlink_to(where.root)
    assert init(where, "channel=console\nagent=llm\nagent_key=sk-1\n", monkeypatch, "--no-check") == 2
    assert "cannot make the directory" in capsys.readouterr().err
    assert not where.config.exists()


async def test_a_model_is_asked_for_checked_and_written_with_its_key_in_a_private_file(
    where: Home, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    async with ModelServer().serving() as server:
        lines = (
            f"channel=console\nagent=llm\nagent_provider=compatible\nagent_base_url={server.address}/v1/\n"
            "agent_model=small\nagent_key=sk-s3cr3t\n"
        )
        assert await asyncio.to_thread(init, where, lines, monkeypatch) == 0
        assert server.asked[0].headers["Authorization"] == "Bearer sk-s3cr3t"
    config, key = load(where.config), where.credentials("agents", "model")
    assert config.daemon.agent == "model"
    assert config.agents["model"] == {
        "type": "llm", "provider": "compatible", "base_url": f"{server.address}/v1", "model": "small",
    }  # fmt: skip
    assert json.loads(key.read_text()) == {"api_key": "sk-s3cr3t"}
    assert stat.S_IMODE(key.stat().st_mode) == 0o600
    said = capsys.readouterr()
    assert "the model small is there" in said.out
    assert "s3cr3t" not in said.out + said.err + where.config.read_text()


def test_a_program_gets_an_account_where_it_may_answer_and_somebody_for_everybody_else(
    where: Home, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    lines = "channel=webhook\nowner=u1\nagent=acp\nagent_preset=other\nagent_command=no-such-program --acp\n"
    assert init(where, lines + "ask_token=t0ken-of-16-chars\napprovals=auto\n", monkeypatch) == 0
    account = only(where)
    assert (account.settings.remote_tools, account.settings.guest_agent) == ("owner", "echo")
    assert account.settings.approvals == "auto"  # what is given stays
    assert load(where.config).agents["program"]["command"] == ["no-such-program", "--acp"]
    assert "no-such-program is not installed" in capsys.readouterr().out  # it goes on all the same


def test_where_the_sign_in_fails_no_key_is_left(where: Home, monkeypatch: pytest.MonkeyPatch) -> None:
    lines = "channel=feishu\nagent=llm\nagent_key=sk-1\n"
    assert init(where, lines, monkeypatch, "--no-check") == 2
    assert not where.root.exists()


def test_a_misspelt_name_is_told_before_anything_is_asked_of_anybody(
    where: Home, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    for lines, words in (
        ("channel=console\nagent=llm\nagent_provder=ollama\n", "console has: did you mean agent_provider?"),
        ("channel=webhook\nownr=u1\nagent=llm\n", "webhook has: did you mean owner?"),
        ("chanel=webhook\n", "channel: choose one of"),
    ):
        assert init(where, lines, monkeypatch) == 2
        assert words in capsys.readouterr().err
    assert not where.root.exists()


def test_what_is_interrupted_says_that_nothing_was_written(
    where: Home, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def interrupted(*_: object, **__: object) -> int:
        raise KeyboardInterrupt

    monkeypatch.setattr(login, "sign_in", interrupted)
    assert init(where, "channel=console", monkeypatch) == 130
    assert capsys.readouterr().err == "\nnothing was written\n"
    where.private_dir(where.root)

    def late(*_: object, **__: object) -> int:
        write_private(where.config, b"")
        raise KeyboardInterrupt

    monkeypatch.setattr(login, "sign_in", late)
    assert init(where, "channel=console", monkeypatch) == 130
    assert "nothing was written" not in capsys.readouterr().err
