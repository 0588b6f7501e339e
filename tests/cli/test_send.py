"""``send``: hands the daemon a message, with files by their whole paths."""

from pathlib import Path

import pytest

from bridge.cli.main import main
from tests.cli.socket_daemon import refusal, socket_daemon, status


def test_a_message_is_handed_over(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "a.png").touch()
    (tmp_path / "b.pdf").touch()
    with socket_daemon() as daemon:
        args = ["send", "pigeon:main", "u1", "hi 你好", "--file", "a.png", "--file", str(tmp_path / "b.pdf")]
        assert main([*args, "--home", str(daemon.home.root)]) == 0
        assert daemon.command == {
            "action": "send",
            "account": "pigeon:main",
            "to": "u1",
            "text": "hi 你好",
            "files": [str(tmp_path / "a.png"), str(tmp_path / "b.pdf")],
        }
    said = capsys.readouterr().out
    assert "pigeon:main delivers it" in said
    assert "not known yet" in said
    assert f"turnbridge dead list --home {daemon.home.root}" in said


def test_a_refusal_is_exit_code_1(capsys: pytest.CaptureFixture[str]) -> None:
    with socket_daemon(refusal("no such account is running")) as daemon:
        assert main(["send", "x:y", "u1", "hi", "--home", str(daemon.home.root)]) == 1
    assert capsys.readouterr().err == "turnbridge: no such account is running\n"


def test_an_account_that_is_not_there_is_exit_code_2(capsys: pytest.CaptureFixture[str]) -> None:
    with socket_daemon(refusal("the daemon has no account x:y", "unknown_account")) as daemon:
        assert main(["send", "x:y", "u1", "hi", "--home", str(daemon.home.root)]) == 2
    assert capsys.readouterr().err == "turnbridge: the daemon has no account x:y\n"


@pytest.mark.parametrize("name", ["none.png", ".", "a\0b", "x" * 300])
def test_a_file_that_is_not_there_is_exit_code_2(name: str, capsys: pytest.CaptureFixture[str]) -> None:
    with socket_daemon() as daemon:
        assert main(["send", "x:y", "u1", "hi", "--file", name, "--home", str(daemon.home.root)]) == 2
        assert daemon.asked == []
    assert "there is no such file" in capsys.readouterr().err


def test_what_the_terminal_gave_in_another_encoding_is_refused(capsys: pytest.CaptureFixture[str]) -> None:
    with socket_daemon() as daemon:
        assert main(["send", "x:y", "u1", "hi \udcff", "--home", str(daemon.home.root)]) == 2
    assert "not UTF-8" in capsys.readouterr().err


@pytest.mark.parametrize("account", ["feishu", "feishu:", ":main"])
def test_an_account_without_its_channel_or_name_is_a_usage_error_that_shows_the_form(
    account: str, capsys: pytest.CaptureFixture[str]
) -> None:
    with pytest.raises(SystemExit) as ended:
        main(["send", account, "u1", "hi"])
    assert ended.value.code == 2
    assert "write CHANNEL:ACCOUNT, such as feishu:main" in capsys.readouterr().err


def test_an_account_without_contact_is_not_said_to_deliver_now(capsys: pytest.CaptureFixture[str]) -> None:
    with socket_daemon(status({"id": "x:y", "state": "backoff"})) as daemon:
        assert main(["send", "x:y", "u1", "hi", "--home", str(daemon.home.root)]) == 0
    said = capsys.readouterr().out
    assert "x:y has no contact with its platform (backoff), and delivers it once it has" in said
    assert "delivers it now" not in said


@pytest.mark.parametrize(
    ("account", "to"), [("feishu:main", "Alice"), ("feishu:main", "im_1"), ("wechat_mp:main", "Alice")]
)
def test_a_name_is_refused_at_once_where_the_platform_s_ids_have_a_form(
    account: str, to: str, capsys: pytest.CaptureFixture[str]
) -> None:
    with socket_daemon() as daemon:
        assert main(["send", account, to, "hi", "--home", str(daemon.home.root)]) == 2
        assert daemon.asked == []
    said = capsys.readouterr().err
    assert f"'{to}' is no recipient of {account}: give the platform's id, which begins with o" in said


@pytest.mark.parametrize(
    ("account", "to"),
    [
        ("feishu:main", "ou_1"), ("feishu:main", "on_1"), ("feishu:main", "oc_1"),
        ("feishu:main", "p2p:oc_1"), ("feishu:main", "group:oc_1"),
        ("wechat_mp:main", "oAbc"), ("webhook:demo", "Alice"),
        ("pigeon:main", "Alice"),
    ],
)  # fmt: skip
def test_what_may_be_a_recipient_is_left_to_the_platform(account: str, to: str) -> None:
    with socket_daemon() as daemon:
        assert main(["send", account, to, "hi", "--home", str(daemon.home.root)]) == 0
