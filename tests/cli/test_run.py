"""``run``: the daemon as a process, from its first start with ``--init`` to its end by a signal."""

import ctypes
import os
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager, suppress
from pathlib import Path

import pytest

from bridge.channel.testing.clock import START
from bridge.cli import run as run_module
from bridge.cli.common import ask_daemon
from bridge.cli.main import main
from bridge.cli.run import greeting, loop_factory
from bridge.cli.webhook_client import WebhookClient
from bridge.config import Config
from bridge.daemon import Ready
from bridge.health import Snapshot, State
from bridge.ids import AccountId
from bridge.paths import Home, write_private
from bridge.process import PR_SET_DUMPABLE
from tests.cli.socket_daemon import MAIN, short_home
from tests.daemons import DEMO, SECRET, TOKEN, free_port, keep

ROOT = Path(__file__).parent.parent.parent
DEADLINE_SECONDS = 30
PR_GET_DUMPABLE = 3


@contextmanager
def child(home: Home, *args: str, limits: Sequence[str] = ()) -> Iterator[subprocess.Popen[str]]:
    """``turnbridge run`` as a process of its own, ready; killed at the end if it still runs.

    ``limits`` is what a program is begun with.
    """
    command = [*limits, sys.executable, "-c", MAIN, "run", "--home", str(home.root), *args]
    pipe = subprocess.PIPE
    with subprocess.Popen(command, cwd=ROOT, stdout=pipe, stderr=pipe, text=True) as process:
        try:
            yield process
        finally:
            if process.poll() is None:
                process.kill()


def until_ready(process: subprocess.Popen[str]) -> str:
    """What it says up to and with the line to type next."""
    assert process.stdout is not None
    said = ""
    for line in process.stdout:
        said += line
        if "turnbridge status" in line:
            return said
    assert process.stderr is not None
    raise AssertionError(process.stderr.read())


def ended(process: subprocess.Popen[str]) -> tuple[int, str]:
    _, err = process.communicate(timeout=DEADLINE_SECONDS)
    return process.returncode, err


def prepared(home: Home) -> WebhookClient:
    port = free_port()
    write_private(home.config, f"[web]\nport = {port}\n{DEMO}".encode())
    keep(home, "demo")
    return WebhookClient("127.0.0.1", port, "/channels/webhook/demo", SECRET, TOKEN)


@pytest.mark.parametrize("sign", [signal.SIGTERM, signal.SIGINT])
def test_a_signal_ends_it_with_0_in_time_and_nothing_acknowledged_is_lost(sign: signal.Signals) -> None:
    with short_home() as home:
        client = prepared(home)
        with child(home) as process:
            said = until_ready(process)
            assert f"http://127.0.0.1:{client._port}/healthz" in said
            sent = [client.send("you", "slow 1", []) for _ in range(2)]  # under way when it ends
            started = time.monotonic()
            process.send_signal(sign)
            code, err = ended(process)
            assert time.monotonic() - started < 10
        assert code == 0, err
        assert "Traceback" not in err
        with child(home) as process:
            until_ready(process)
            for message_id in sent:
                parts = list(client.replies(message_id, DEADLINE_SECONDS))
                assert parts[-1]["final"]  # answered, or reported as interrupted
            process.send_signal(signal.SIGTERM)
            assert ended(process)[0] == 0


def test_a_second_daemon_is_refused_and_after_a_kill_the_next_one_starts() -> None:
    with short_home() as home:
        client = prepared(home)
        with child(home) as first:
            until_ready(first)
            with child(home) as second:
                code, err = ended(second)
                assert code == 1
                assert f"a daemon (pid {first.pid}) runs already on {home.root}: stop it first" in err
            assert ask_daemon(home, {"action": "status"})["pid"] == first.pid
            sent = client.send("you", "hello", [])
            first.send_signal(signal.SIGKILL)
            first.wait(DEADLINE_SECONDS)
        with child(home) as third:
            until_ready(third)
            assert list(client.replies(sent, DEADLINE_SECONDS))[-1]["final"]
            third.send_signal(signal.SIGTERM)
            assert ended(third)[0] == 0


def test_the_first_start_writes_settings_and_says_what_to_type_next(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    with short_home() as home:
        with monkeypatch.context() as only_here:
            only_here.setattr(run_module, "serve", lambda home, config: 0)
            assert main(["run", "--init", "--home", str(home.root)]) == 0
        assert capsys.readouterr().out == f"wrote {home.config}\n"
        text = home.config.read_text().replace("8470", str(free_port()))
        write_private(home.config, text.encode())
        with child(home, "--init") as process:
            said = until_ready(process)
            assert "wrote" not in said
            for command in ("chat", "try"):
                assert f"turnbridge {command} --home {home.root}" in said
            process.send_signal(signal.SIGTERM)
            assert ended(process)[0] == 0
        assert home.config.read_text() == text


@pytest.mark.parametrize(
    ("settings", "told"),
    [
        ("[web]\nprot = 1\n", "web.prot: no such setting: did you mean port?"),
        ("[[[", "not TOML"),
        (None, "is missing: make it: turnbridge init"),
    ],
)
def test_settings_that_cannot_be_used_end_it_with_2(
    settings: str | None, told: str, capsys: pytest.CaptureFixture[str]
) -> None:
    with short_home() as home:
        if settings is not None:
            write_private(home.config, settings.encode())
        assert main(["run", "--home", str(home.root)]) == 2
    said = capsys.readouterr().err
    assert told in said
    assert said.count("\n") == 1


def descriptors(most: int) -> list[str]:
    return ["sh", "-c", f'ulimit -n {most} && exec "$@"', "sh"]


def test_half_open_connections_keep_nobody_out_where_descriptors_are_few() -> None:
    with short_home() as home, ExitStack() as flood:
        client = prepared(home)
        with child(home, limits=descriptors(64)) as process:
            until_ready(process)
            for _ in range(200):
                with suppress(OSError):  # its turn to make room
                    opened = socket.create_connection(("127.0.0.1", client._port), timeout=5)
                    flood.enter_context(opened).sendall(b"POST / HT")
            for _ in range(3):
                client.send("you", "hi", [])
            process.send_signal(signal.SIGTERM)
            code, err = ended(process)
    assert code == 0
    assert "open files" not in err


def test_too_few_descriptors_end_it_with_2_and_how_to_raise_them() -> None:
    with short_home() as home:
        prepared(home)
        command = [sys.executable, "-c", MAIN, "run", "--home", str(home.root)]
        done = subprocess.run(
            [*descriptors(18), *command], cwd=ROOT, capture_output=True, text=True, timeout=DEADLINE_SECONDS
        )
    assert done.returncode == 2
    assert done.stderr.startswith("turnbridge: this process may have 18 files open, and the daemon needs 64")
    assert "ulimit -n 1024" in done.stderr
    assert done.stderr.count("\n") == 1


def test_the_loop_is_uvloops_where_it_is_installed(monkeypatch: pytest.MonkeyPatch) -> None:
    import uvloop

    assert loop_factory() is uvloop.new_event_loop
    monkeypatch.setitem(sys.modules, "uvloop", None)
    assert loop_factory() is None


def test_serving_ends_with_the_daemons_code(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    async def ends(home: Home, config: Config, **options: object) -> int:
        ready = options["ready"]
        assert callable(ready)
        ready(Ready("http://127.0.0.1:1", ()))
        return 1

    monkeypatch.setattr("bridge.daemon.run_daemon", ends)
    assert run_module.serve(Home(Path("/tmp/x")), Config()) == 1
    said = capsys.readouterr().out
    assert "http://127.0.0.1:1/healthz" in said
    assert "Ctrl+C" not in said  # nobody sits there


def test_only_at_a_terminal_the_greeting_says_which_keys_stop_it() -> None:
    for at_terminal in (True, False):
        said = greeting(Home(Path("/srv/bot")), Ready("http://127.0.0.1:8470", ()), at_terminal)
        assert ("Ctrl+C stops it" in said) is at_terminal
        assert "Turnbridge is running." in said


@pytest.mark.skipif(sys.platform != "linux", reason="only Linux has this")
def test_while_it_serves_its_environment_is_closed_to_commands_of_the_same_user(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    prctl, seen = ctypes.CDLL(None).prctl, []

    async def ends(home: Home, config: Config, **options: object) -> int:
        seen.append(prctl(PR_GET_DUMPABLE))
        return 0

    monkeypatch.setattr("bridge.daemon.run_daemon", ends)
    before = prctl(PR_GET_DUMPABLE)
    assert run_module.serve(Home(Path("/tmp/x")), Config()) == 0
    prctl(PR_SET_DUMPABLE, before)
    assert seen == [0]


def nobody_reads() -> int:
    reader, writer = os.pipe()
    os.close(reader)
    return writer


def full_disk() -> int:
    return os.open("/dev/full", os.O_WRONLY)


@pytest.mark.parametrize(
    "opened",
    [
        nobody_reads,
        pytest.param(full_disk, marks=pytest.mark.skipif(not Path("/dev/full").exists(), reason="Linux's")),
    ],
)
def test_a_greeting_that_cannot_be_written_is_no_reason_to_end(
    monkeypatch: pytest.MonkeyPatch, opened: Callable[[], int]
) -> None:
    async def goes_on(home: Home, config: Config, **options: object) -> int:
        ready = options["ready"]
        assert callable(ready)
        ready(Ready("http://127.0.0.1:1", ()))
        return 0

    monkeypatch.setattr("bridge.daemon.run_daemon", goes_on)
    with os.fdopen(opened(), "w") as closed:
        monkeypatch.setattr(sys, "stdout", closed)
        assert run_module.serve(Home(Path("/tmp/x")), Config()) == 0
        monkeypatch.undo()


def test_the_settings_choose_how_logs_look(monkeypatch: pytest.MonkeyPatch) -> None:
    seen: list[object] = []
    monkeypatch.setattr("bridge.logs.configure", lambda level, as_json: seen.append((level, as_json)))
    monkeypatch.setattr(run_module, "serve", lambda home, config: 0)
    with short_home() as home:
        for log in ("", 'level = "debug"\nformat = "json"', 'format = "console"'):
            write_private(home.config, f"[log]\n{log}\n".encode())
            assert main(["run", "--home", str(home.root)]) == 0
    assert seen == [("info", None), ("debug", True), ("info", False)]


def account(id_: str) -> Snapshot:
    channel, _, name = id_.partition(":")
    return Snapshot(AccountId(id_), channel, name, State.CONNECTED, START)


def test_the_greeting_names_everything_and_what_to_type_next() -> None:
    home = Home(Path("/srv/bot home"))
    accounts = (account("console:local"), account("webhook:demo"))
    said = greeting(home, Ready("http://127.0.0.1:8470", accounts), at_terminal=True)
    assert "/srv/bot home/config.toml" in said
    assert "http://127.0.0.1:8470/healthz" in said
    for text in ("webhook:demo", "chat --home '/srv/bot home'", "try --home '/srv/bot home'"):
        assert text in said
    other = greeting(home, Ready("http://127.0.0.1:8470", (account("feishu:main"),)), at_terminal=True)
    assert other.rstrip().endswith("status --home '/srv/bot home'")
    for command in ("chat", "try"):
        assert f" {command} --home" not in other


def test_without_an_account_the_greeting_says_how_to_add_one() -> None:
    said = greeting(Home(Path("/srv/bot")), Ready("http://127.0.0.1:8470", ()), at_terminal=True)
    assert "no account yet" in said
    assert "turnbridge channels login console --home /srv/bot" in said
