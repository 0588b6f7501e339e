"""``status``: the daemon's snapshot as a table or as JSON, and an exit code that says whether all is well."""

import json
from typing import Any

import pytest

from bridge.channel.testing.clock import START
from bridge.cli.main import main
from bridge.cli.status import ago
from bridge.health import Snapshot, State, to_wire
from bridge.ids import AccountId
from tests.cli.socket_daemon import SocketDaemon, socket_daemon, status

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
    assert reason == "  " + "x" * 200
    assert second.endswith("  short")


def test_what_was_given_up_is_told_with_where_to_look(capsys: pytest.CaptureFixture[str]) -> None:
    for dead, told in ((1, "1 part of replies given up: turnbridge dead list"), (2, "2 parts of replies")):
        with socket_daemon(status(component(State.CONNECTED) | {"dead_letters": dead})) as daemon:
            assert run(daemon) == 0
        assert told in capsys.readouterr().out.splitlines()[-1]


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
