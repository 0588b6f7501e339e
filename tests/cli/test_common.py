"""What commands share: asking the daemon, and ending with one clear line and the right code."""

import argparse
import io
import os
import signal
import sys
from pathlib import Path

import pytest

from bridge.cli import common
from bridge.cli.common import (
    NotRunningError,
    add_home,
    ask_daemon,
    existing,
    explain,
    home,
    lenient,
    nearer,
    open_streams,
    program,
    signals_exit,
    silenced,
    typed,
    typed_anywhere,
    visible,
)
from bridge.errors import BridgeError, ConfigError
from bridge.paths import Home
from tests.cli.socket_daemon import STATUS, refusal, short_home, socket_daemon, status


def test_a_command_is_asked_after_a_hello_and_its_status_returned() -> None:
    with socket_daemon(b'{"type":"something.new"}\n', status()) as daemon:
        assert ask_daemon(daemon.home, {"action": "status"}) == STATUS
    hello, asked = daemon.asked
    assert (hello["type"], hello["protocol_version"]) == ("initialize", 3)
    assert asked == {"type": "daemon.control", "request_id": "2", "command": {"action": "status"}}


def test_a_refusal_is_told_in_the_daemons_words() -> None:
    with socket_daemon(refusal("no such account")) as daemon:
        with pytest.raises(BridgeError, match="no such account"):
            ask_daemon(daemon.home, {"action": "send"})


@pytest.mark.parametrize("answer", [b"nonsense\n", b'{"type":"daemon.st'])
def test_an_answer_that_is_none_is_an_error(answer: bytes) -> None:
    with socket_daemon(answer) as daemon, pytest.raises(BridgeError, match="look at its log"):
        ask_daemon(daemon.home, {"action": "status"})


def test_a_daemon_that_hangs_up_is_an_error() -> None:
    with socket_daemon(b'{"type":"x"}\n') as daemon, pytest.raises(BridgeError, match="hung up"):
        ask_daemon(daemon.home, {"action": "status"})


def test_a_daemon_that_does_not_answer_is_given_up(monkeypatch: pytest.MonkeyPatch) -> None:
    import socket

    monkeypatch.setattr(common, "ASK_SECONDS", 0.05)
    with short_home() as where, socket.socket(socket.AF_UNIX) as server:
        server.bind(str(where.socket))
        server.listen(1)
        with pytest.raises(BridgeError, match="no usable answer"):
            ask_daemon(where, {"action": "status"})


def test_without_a_daemon_it_is_said_how_to_start_one() -> None:
    with short_home() as where:
        with pytest.raises(NotRunningError, match=f"turnbridge run --home {where.root}"):
            ask_daemon(where, {"action": "status"})
        where.socket.touch()
        with pytest.raises(NotRunningError):  # what a killed daemon leaves behind
            ask_daemon(where, {"action": "status"})


def test_a_home_that_cannot_hold_a_socket_is_a_configuration_error(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match="shorter --home"):
        ask_daemon(Home(tmp_path / ("x" * 100)), {"action": "status"})


def test_a_socket_that_may_not_be_used_is_told_as_the_system_says() -> None:
    with short_home() as where:
        where.socket.symlink_to(where.socket)
        with pytest.raises(OSError, match=r".+"):
            ask_daemon(where, {"action": "status"})


@pytest.mark.parametrize(
    ("error", "code", "text"),
    [
        (NotRunningError("start it"), 3, "start it"),
        (ConfigError("settings.toml: web: wrong"), 2, "settings.toml: web: wrong"),
        (BridgeError("no"), 1, "no"),
        (FileNotFoundError(2, "No such file or directory", "a.png"), 1, "a.png: No such file or directory"),
        (OSError(), 1, "the system: OSError"),
        (ZeroDivisionError("SECRET"), 1, "a bug: ZeroDivisionError: report it with what you ran"),
    ],
)
def test_every_error_is_one_line_and_a_code(
    error: Exception, code: int, text: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert explain(error) == code
    assert capsys.readouterr().err == f"turnbridge: {text}\n"


def test_the_home_is_an_option(monkeypatch: pytest.MonkeyPatch) -> None:
    parser = argparse.ArgumentParser()
    add_home(parser)
    assert home(parser.parse_args(["--home", "/x"])).root == Path("/x")
    monkeypatch.setenv("TURNBRIDGE_HOME", "/y")
    assert home(parser.parse_args([])).root == Path("/y")


def test_a_path_is_shown_the_shorter_way(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    assert nearer(tmp_path / "a") == "a"
    assert nearer(Path("/etc")) == "/etc"
    assert nearer(tmp_path.parent / "beside") == str(tmp_path.parent / "beside")
    gone = tmp_path / "gone"
    gone.mkdir()
    monkeypatch.chdir(gone)
    gone.rmdir()
    assert nearer("/etc/a") == "/etc/a"


def test_once_the_reader_is_gone_nothing_more_is_printed(capfd: pytest.CaptureFixture[str]) -> None:
    kept = os.dup(1)
    try:
        assert silenced() == 1
        os.write(1, b"unheard")
    finally:
        os.dup2(kept, 1)
        os.close(kept)
    assert "unheard" not in capfd.readouterr().out


def test_the_program_is_named_as_it_can_be_typed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "bin").mkdir()
    found = tmp_path / "bin" / "turnbridge"
    found.write_text("")
    found.chmod(0o755)
    (tmp_path / "clone").mkdir()
    monkeypatch.chdir(tmp_path / "clone")
    monkeypatch.setenv("PATH", str(found.parent))
    for started_as, shown in {
        str(tmp_path / "clone/.venv/bin/turnbridge"): ".venv/bin/turnbridge",
        ".venv/bin/turnbridge": ".venv/bin/turnbridge",
        str(found): "turnbridge",
        "/opt/turnbridge": "/opt/turnbridge",
        "-c": "turnbridge",
    }.items():
        monkeypatch.setattr(sys, "argv", [started_as])
        assert program() == shown


def test_a_command_is_told_with_its_home_unless_that_is_the_usual_one(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, "argv", ["turnbridge"])
    monkeypatch.setenv("TURNBRIDGE_HOME", str(tmp_path / "usual"))
    assert typed(Home(tmp_path / "usual"), "run --init") == "turnbridge run --init"
    assert typed(Home(tmp_path / ".run"), "run") == "turnbridge run --home .run"
    assert typed(Home(Path("/a b")), "try") == "turnbridge try --home '/a b'"


def test_a_named_file_is_had_by_its_whole_path_and_must_be_there(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    Path("a.json").touch()
    assert existing("a.json") == tmp_path / "a.json"
    for name in ("b.json", str(tmp_path)):
        with pytest.raises(ConfigError, match="there is no such file"):
            existing(name)


def test_controls_and_turned_text_are_shown_as_such() -> None:
    assert visible("a\x1b[31m\u202egnp.exe\tb\nc") == "a\ufffd[31m\ufffdgnp.exe\tb\nc"


@pytest.mark.parametrize("closed", [True, False])
def test_a_stream_that_is_closed_is_nowhere_and_no_file_takes_its_place(
    closed: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    kept = os.dup(2)
    monkeypatch.setattr(sys, "stderr", None)  # as Python has it then
    try:
        if closed:
            os.close(2)
        open_streams()
        assert os.path.samestat(os.fstat(2), os.stat(os.devnull))
        print("x", file=sys.stderr, flush=True)
    finally:
        os.dup2(kept, 2)
        os.close(kept)


def test_what_a_terminal_cannot_show_is_a_mark(monkeypatch: pytest.MonkeyPatch) -> None:
    shown = io.BytesIO()
    monkeypatch.setattr(sys, "stdout", io.TextIOWrapper(shown, encoding="ascii"))
    lenient()
    print("a 好", flush=True)
    assert shown.getvalue() == b"a ?\n"


def test_a_signal_ends_what_runs_as_an_exit_does_and_one_that_is_ignored_does_not() -> None:
    ends = (signal.SIGQUIT, signal.SIGTERM)
    before = {number: signal.signal(number, signal.SIG_DFL) for number in ends}  # whatever started us
    before[signal.SIGHUP] = signal.signal(signal.SIGHUP, signal.SIG_IGN)
    try:
        for number in ends:
            with pytest.raises(SystemExit) as exited, signals_exit():
                signal.raise_signal(signal.SIGHUP)
                signal.raise_signal(number)
            assert exited.value.code == 128 + number
            assert signal.getsignal(number) is signal.SIG_DFL
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)


def test_what_was_typed_does_not_play_with_the_terminal_that_is_told_of_it(
    capsys: pytest.CaptureFixture[str],
) -> None:
    explain(ConfigError("no \x1b[2J"))
    assert capsys.readouterr().err == "turnbridge: no \N{REPLACEMENT CHARACTER}[2J\n"


def test_a_command_for_another_terminal_needs_neither_this_folder_nor_its_variables(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "bin").mkdir()
    found = tmp_path / "bin" / "turnbridge"
    found.write_text("")
    found.chmod(0o755)
    monkeypatch.chdir(tmp_path)
    monkeypatch.delenv("VIRTUAL_ENV", raising=False)
    monkeypatch.setenv("TURNBRIDGE_HOME", str(tmp_path / "own"))
    monkeypatch.setattr(sys, "argv", ["bin/turnbridge"])
    monkeypatch.setenv("PATH", "/nowhere")
    assert typed_anywhere(Home(tmp_path / "own"), "chat") == f"{found} chat --home {tmp_path}/own"
    monkeypatch.setenv("PATH", str(found.parent))
    assert typed_anywhere(Home(tmp_path / "own"), "chat") == f"turnbridge chat --home {tmp_path}/own"
    monkeypatch.setenv("VIRTUAL_ENV", str(tmp_path))  # which the other terminal has not
    monkeypatch.delenv("TURNBRIDGE_HOME")
    assert typed_anywhere(Home(Path("~/.turnbridge").expanduser()), "try") == f"{found} try"
