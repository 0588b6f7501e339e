"""``dead``: what the daemon tells of replies that were given up, as lines, and what it is asked to do."""

import json
from typing import Any

import pytest

from bridge.cli.main import main
from tests.cli.socket_daemon import STATUS, refusal, socket_daemon

LETTER = {
    "id": 7,
    "account": "feishu:main",
    "kind": "text",
    "state": "refused",
    "reason": "too \x1b[31mlong",
    "size": 12,
    "created_unix_seconds": 1,
    "ended_unix_seconds": 2,
}


def answer(*letters: dict[str, Any]) -> dict[str, Any]:
    status = {**STATUS, "dead": list(letters)} if letters else STATUS
    return {"type": "daemon.status", "request_id": "2", "status": status}


def test_a_list_has_a_line_for_each_and_says_what_can_be_done(capsys: pytest.CaptureFixture[str]) -> None:
    with socket_daemon(answer(LETTER)) as daemon:
        assert main(["dead", "list", "feishu:main", "--home", str(daemon.home.root)]) == 1
        assert daemon.command == {"action": "dead_list", "account": "feishu:main"}
        told = capsys.readouterr().out
        assert f"dead show ID --home {daemon.home.root}" in told
    head, line, *_ = told.splitlines()
    assert head.split() == ["ID", "ACCOUNT", "WHAT", "BYTES", "GIVEN", "UP", "HOW", "WHY"]
    assert line.split()[:4] == ["7", "feishu:main", "text", "12"]
    assert "\x1b" not in told


def test_none_is_exit_code_0(capsys: pytest.CaptureFixture[str]) -> None:
    with socket_daemon(answer()) as daemon:
        assert main(["dead", "list", "--home", str(daemon.home.root)]) == 0
    assert capsys.readouterr().out == "no dead letters\n"


def test_an_account_that_is_not_there_has_no_list_but_what_is_left_of_it(
    capsys: pytest.CaptureFixture[str],
) -> None:
    for wanted in ("feishu:mian", "mian"):
        with socket_daemon(answer()) as daemon:
            assert main(["dead", "list", wanted, "--home", str(daemon.home.root)]) == 2
            assert f"no account {wanted}" in capsys.readouterr().err
    with socket_daemon(answer({**LETTER, "account": "feishu:gone"})) as daemon:
        assert main(["dead", "list", "feishu:gone", "--home", str(daemon.home.root)]) == 1
    assert "feishu:gone" in capsys.readouterr().out


def test_json_is_the_daemons_own(capsys: pytest.CaptureFixture[str]) -> None:
    with socket_daemon(answer(LETTER)) as daemon:
        assert main(["dead", "list", "--json", "--home", str(daemon.home.root)]) == 1
    assert json.loads(capsys.readouterr().out) == [LETTER]
    with socket_daemon(answer({**LETTER, "to": "u1", "text": "hi"})) as daemon:
        assert main(["dead", "show", "7", "--json", "--home", str(daemon.home.root)]) == 0
    assert json.loads(capsys.readouterr().out)["text"] == "hi"


def test_one_letter_is_shown_whole_and_nothing_of_it_reaches_the_terminal_raw(
    capsys: pytest.CaptureFixture[str],
) -> None:
    with socket_daemon(answer({**LETTER, "to": "u\x1b1", "text": "你好\x1b]0;x\x07\nzwei"})) as daemon:
        assert main(["dead", "show", "7", "--home", str(daemon.home.root)]) == 0
        assert daemon.command == {"action": "dead_show", "id": 7}
    told = capsys.readouterr().out
    assert "\x1b" not in told
    assert "你好" in told
    assert told.endswith("zwei\n")


def test_a_retry_and_a_pruning_name_the_letters(capsys: pytest.CaptureFixture[str]) -> None:
    with socket_daemon(answer()) as daemon:
        assert main(["dead", "retry", "7", "8", "--home", str(daemon.home.root)]) == 0
        assert daemon.command == {"action": "dead_retry", "ids": [7, 8]}
    with socket_daemon(answer(LETTER)) as daemon:
        assert main(["dead", "prune", "--older-than-days", "30", "--home", str(daemon.home.root)]) == 0
        assert daemon.command == {"action": "dead_prune", "ids": [], "older_than_days": 30}
    with socket_daemon(answer()) as daemon:
        assert main(["dead", "prune", "7", "--home", str(daemon.home.root)]) == 0
        assert daemon.command == {"action": "dead_prune", "ids": [7]}
    told = capsys.readouterr().out
    assert "2 are in the outbox again" in told
    assert "1 left" in told
    assert "no dead letters are left" in told


def test_a_refusal_is_exit_code_1(capsys: pytest.CaptureFixture[str]) -> None:
    with socket_daemon(refusal("9: not a dead letter")) as daemon:
        assert main(["dead", "retry", "9", "--home", str(daemon.home.root)]) == 1
    assert capsys.readouterr().err == "turnbridge: 9: not a dead letter\n"


@pytest.mark.parametrize(
    "args",
    [
        ["prune"],
        ["retry"],
        ["retry", "x"],
        ["show", "0"],
        ["show", "9" * 30],
        ["prune", "--older-than-days", "-1"],
    ],
)
def test_what_names_no_letter_is_a_usage_error(args: list[str]) -> None:
    with pytest.raises(SystemExit) as ended:
        main(["dead", *args])
    assert ended.value.code == 2


@pytest.mark.parametrize(
    ("kinds", "told"),
    [
        (["text"], "then: dead retry ID, or dead prune ID"),
        (["file"], "then: dead prune ID (no copy is kept of a file, so it cannot be retried: send it anew)"),
        (["text", "file"], "dead retry ID (a text alone: no copy is kept of a file), or dead prune ID"),
    ],
)
def test_a_list_suggests_a_retry_only_of_what_can_be_retried(
    kinds: list[str], told: str, capsys: pytest.CaptureFixture[str]
) -> None:
    with socket_daemon(answer(*({**LETTER, "kind": kind} for kind in kinds))) as daemon:
        assert main(["dead", "list", "--home", str(daemon.home.root)]) == 1
    assert capsys.readouterr().out.rstrip().endswith(told)


def test_the_home_may_stand_before_the_action(capsys: pytest.CaptureFixture[str]) -> None:
    with socket_daemon(answer()) as daemon:
        assert main(["dead", "--home", str(daemon.home.root), "list"]) == 0
    with socket_daemon(answer()) as daemon:
        assert main(["dead", "--home", "/nowhere", "list", "--home", str(daemon.home.root)]) == 0
