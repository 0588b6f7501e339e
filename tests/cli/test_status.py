"""``status``: the daemon's snapshot as a table or as JSON, and an exit code that says whether all is well."""

import json
import sys
from typing import Any

import pytest

from bridge.channel.testing.clock import START
from bridge.cli import status as status_module
from bridge.cli.common import program
from bridge.cli.main import main
from bridge.cli.status import ago
from bridge.health import Snapshot, State, to_wire
from bridge.ids import AccountId
from tests.cli.socket_daemon import SocketDaemon, socket_daemon, status

PROGRAM = program()
REASON = "the platform cannot be reached"


def component(state: State, name: str = "main", *, enabled: bool = True, reason: str = "") -> dict[str, Any]:
    account = Snapshot(
        AccountId(f"pigeon:{name}"), "pigeon", name, state, START, enabled=enabled, reason=reason
    )
    shown: dict[str, Any] = to_wire(account).model_dump(mode="json")
    return shown


def run(daemon: SocketDaemon, *args: str) -> int:
    return main(["status", "--home", str(daemon.home.root), *args])


@pytest.mark.parametrize("state", list(State))
def test_table_json_and_exit_code_agree_in_every_state(
    state: State, capsys: pytest.CaptureFixture[str]
) -> None:
    shown = component(state, reason=REASON)
    code = 0 if state is State.CONNECTED else 1
    with socket_daemon(status(shown)) as daemon:
        assert run(daemon) == code
    head, _, row, reason = capsys.readouterr().out.splitlines()
    assert head == f"turnbridge 9.9.9, pid 4711: {1 - code} of 1 connected"
    assert row.split()[:2] == ["pigeon:main", state.value]
    assert reason == f"  {REASON}"
    with socket_daemon(status(shown)) as daemon:
        assert run(daemon, "--json") == code
    (account,) = json.loads(capsys.readouterr().out)["components"]
    assert (account["state"], account["error"]) == (state.value, REASON)


def test_an_account_that_is_off_is_no_trouble(capsys: pytest.CaptureFixture[str]) -> None:
    accounts = component(State.CONNECTED), component(State.DISABLED, "off", enabled=False)
    with socket_daemon(status(*accounts)) as daemon:
        assert run(daemon) == 0
    assert "1 of 1 connected" in capsys.readouterr().out


def test_columns_are_aligned(capsys: pytest.CaptureFixture[str]) -> None:
    accounts = component(State.FAILED, "a-long-name", reason="x"), component(State.CONNECTED, "b")
    with socket_daemon(status(*accounts)) as daemon:
        assert run(daemon) == 1
    _, head, first, second = capsys.readouterr().out.splitlines()
    assert head.index("STATE") == first.index("failed") == second.index("connected")
    assert second == second.rstrip()


def test_without_accounts_there_is_no_table(capsys: pytest.CaptureFixture[str]) -> None:
    with socket_daemon() as daemon:
        assert run(daemon) == 0
    assert capsys.readouterr().out == "turnbridge 9.9.9, pid 4711: 0 of 0 connected\n"


def test_a_line_has_eighty_columns_and_a_reason_that_is_longer_stands_below(
    capsys: pytest.CaptureFixture[str],
) -> None:
    accounts = component(State.FAILED, reason="x" * 200), component(State.FAILED, "b", reason="short")
    with socket_daemon(status(*accounts)) as daemon:
        assert run(daemon) == 1
    _, head, first, reason, second = capsys.readouterr().out.splitlines()
    assert max(map(len, (head, first, second))) <= 80
    assert reason == "  " + "x" * 200  # a word stays whole
    assert second.endswith("  short")


def test_a_wider_terminal_is_made_use_of_and_a_narrower_one_or_a_file_is_not(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    def shown(width: int, *, terminal: bool) -> list[str]:
        monkeypatch.setenv("COLUMNS", str(width))
        monkeypatch.setattr(sys.stdout, "isatty", lambda: terminal)
        with socket_daemon(status(component(State.FAILED, reason="x " * 40 + "x"))) as daemon:
            assert run(daemon) == 1
        return capsys.readouterr().out.splitlines()[2:]

    assert len(shown(200, terminal=True)) == 1
    for width, terminal in ((200, False), (40, True)):
        assert [len(line) <= 80 for line in shown(width, terminal=terminal)] == [True] * 3


def test_what_was_given_up_is_told_with_where_to_look(capsys: pytest.CaptureFixture[str]) -> None:
    for dead, told in ((1, "1 part of replies given up: turnbridge dead list"), (2, "2 parts of replies")):
        with socket_daemon(status(component(State.CONNECTED) | {"dead_letters": dead})) as daemon:
            assert run(daemon) == 0
        assert told in capsys.readouterr().out.splitlines()[-1]


@pytest.mark.parametrize("args", [[], ["pigeon:main"]])
def test_settings_that_cannot_be_read_are_told_and_no_success(
    args: list[str], capsys: pytest.CaptureFixture[str]
) -> None:
    answer = status(component(State.CONNECTED))
    answer["status"]["settings_error"] = "/x/config.toml is missing: make it: turnbridge init --home /x"
    with socket_daemon(answer) as daemon:
        assert run(daemon, *args) == 1
    shown = " ".join(capsys.readouterr().out.split())
    assert shown.endswith(
        "the settings are those read before: /x/config.toml is missing: make it: turnbridge init --home /x"
    )
    with socket_daemon(answer) as daemon:
        assert run(daemon, "--json", *args) == 1
    assert json.loads(capsys.readouterr().out)["settings_error"].startswith("/x/config.toml")


def test_tables_that_wait_for_a_restart_are_told_and_no_trouble(capsys: pytest.CaptureFixture[str]) -> None:
    answer = status(component(State.CONNECTED))
    answer["status"]["waits_for_restart"] = ["web", "store"]
    with socket_daemon(answer) as daemon:
        assert run(daemon) == 0
    assert capsys.readouterr().out.splitlines()[-1] == "what changed in [web], [store] waits for a restart"


def test_a_long_reason_is_wrapped(capsys: pytest.CaptureFixture[str]) -> None:
    with socket_daemon(status(component(State.FAILED, reason="its file is missing " * 10))) as daemon:
        assert run(daemon) == 1
    _, _, _, *reason = capsys.readouterr().out.splitlines()
    assert len(reason) == 3
    assert all(line.startswith("  ") for line in reason)
    assert max(map(len, reason)) <= 80


def test_what_is_out_of_the_ordinary_stands_below_its_account(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(status_module, "now", lambda: 10_000)
    waits = component(State.BACKOFF, reason=REASON) | {
        "next_try_unix_seconds": 10_012, "restarts": 3,
        "oldest_waiting_unix_seconds": 9_700, "clock_skew_seconds": -600.4,
    }  # fmt: skip
    quiet = component(State.CONNECTED, "quiet") | {
        "restarts": 3, "oldest_waiting_unix_seconds": 9_999, "clock_skew_seconds": 0.5,
    }  # fmt: skip
    with socket_daemon(status(waits, quiet)) as daemon:
        assert run(daemon) == 1
    _, _, _, reason, *notes, last = capsys.readouterr().out.splitlines()
    assert reason == f"  {REASON}"
    assert notes == [
        "  next try in 12s; restarted 3 times; the oldest message waits since 5m ago; the",
        "  platform's clock is 600s behind this machine's",
    ]
    assert last.startswith("pigeon:quiet")


def test_requests_that_proved_nothing_are_told_of_an_account_that_is_connected(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(status_module, "now", lambda: 10_000)
    for count, told in ((3, "3 requests"), (1, "1 request")):
        one = component(State.CONNECTED) | {"unproven_requests": count, "last_unproven_unix_seconds": 9_700}
        said = f"{told} refused as unproven, the last 5m ago, none accepted since: check its keys"
        for more in ([], ["pigeon:main"]):
            with socket_daemon(status(one)) as daemon:
                assert run(daemon, *more) == 0
            assert said in " ".join(capsys.readouterr().out.split())


def test_all_about_one_account_is_told_in_words(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(status_module, "now", lambda: 10_000)
    one = component(State.FAILED, reason="its file is missing " * 8) | {
        "since_unix_seconds": 9_000, "last_success_unix_seconds": 6_000, "next_try_unix_seconds": 9_000,
        "restarts": 1, "queue_depth": 2, "oldest_waiting_unix_seconds": 9_700, "dead_letters": 1,
        "senders": "list", "remote_tools": "owner", "user_id": "ou_1", "bot_id": "b1",
        "clock_skew_seconds": 2.0,
    }  # fmt: skip
    with socket_daemon(status(one, component(State.CONNECTED, "other"))) as daemon:
        assert run(daemon, "pigeon:main") == 1
    first, *lines = capsys.readouterr().out.splitlines()
    assert first == "pigeon:main"
    told = " ".join(" ".join(lines).split())
    assert told.replace(f" --home {daemon.home.root}", "") == (
        f"state failed, since 16m ago reason {'its file is missing ' * 8}next try now contact 1h ago "
        "restarts once waiting 2 messages and parts, the oldest 5m ago "
        f"dead 1 part given up: {PROGRAM} dead list pigeon:main "
        "answers its owner and the senders of a list tools the owner, in their direct chat owner ou_1 bot b1 "
        "clock the platform's clock is 2s ahead of this machine's"
    )
    assert max(map(len, lines)) <= 80
    assert {line[:12].strip() for line in lines} == {
        "state", "reason", "", "next try", "contact", "restarts", "waiting", "dead", "answers", "tools",
        "owner", "bot", "clock",
    }  # fmt: skip


def test_an_account_of_which_little_is_known_is_told_shortly(capsys: pytest.CaptureFixture[str]) -> None:
    with socket_daemon(status(component(State.CONNECTED) | {"queue_depth": 1})) as daemon:
        assert run(daemon, "pigeon:main") == 0
    said = capsys.readouterr().out
    assert "contact   none yet" in said
    assert "waiting   1 message or part\n" in said
    assert "owner     none yet: " in said
    assert "clock" not in said


def test_of_an_account_whose_settings_cannot_be_read_nothing_is_made_up(
    capsys: pytest.CaptureFixture[str],
) -> None:
    snapshot = Snapshot(AccountId("pigeon:main"), "pigeon", "main", State.FAILED, START, senders=None)
    with socket_daemon(status(to_wire(snapshot).model_dump(mode="json"))) as daemon:
        assert run(daemon, "pigeon:main") == 1
    said = capsys.readouterr().out
    assert "tools     nobody" in said
    assert "owner" not in said
    assert "answers" not in said


def test_the_json_of_one_account_has_that_one_alone(capsys: pytest.CaptureFixture[str]) -> None:
    shown = status(component(State.CONNECTED), component(State.FAILED, "other"))
    with socket_daemon(shown) as daemon:
        assert run(daemon, "pigeon:main", "--json") == 0
    assert [one["id"] for one in json.loads(capsys.readouterr().out)["components"]] == ["pigeon:main"]


def test_an_account_that_is_not_there_is_told(capsys: pytest.CaptureFixture[str]) -> None:
    with socket_daemon() as daemon:
        assert run(daemon, "pigeon:none") == 2
    assert "the daemon has no account pigeon:none" in capsys.readouterr().err


def test_times_are_told_by_their_age() -> None:
    assert [
        ago(at, 100_000_000) for at in (None, 100_000_001, 99_999_941, 99_999_940, 99_990_000, 90_000_000)
    ] == [
        "-",
        "0s ago",
        "59s ago",
        "1m ago",
        "2h ago",
        "115d ago",
    ]
