"""``usage``: a table in 80 columns, with sums that are exact."""

import json
from typing import Any

import pytest

from bridge.cli.main import main
from bridge.cli.usage import dollars
from tests.cli.socket_daemon import STATUS, refusal, socket_daemon

SENDER = "ou_7d8a6e6df7621556ce0d21922b676706ccs"


def line(name: str, turns: int = 1, cost: int = 0, account: str = "", **more: int) -> dict[str, Any]:
    tokens = {"input_tokens": 1000 * turns, "output_tokens": turns, "uncounted": 0, "unpriced": 0}
    return {"account": account, "name": name, "turns": turns, "cost_micros": cost} | tokens | more


def answer(*lines: dict[str, Any]) -> dict[str, Any]:
    return {"type": "daemon.status", "request_id": "2", "status": {**STATUS, "usage": list(lines)}}


def shown(capsys: pytest.CaptureFixture[str], *lines: dict[str, Any], words: tuple[str, ...] = ()) -> str:
    with socket_daemon(answer(*lines)) as daemon:
        assert main(["usage", "--home", str(daemon.home.root), *words]) == 0
    return capsys.readouterr().out


def test_each_account_has_a_line_and_all_of_them_one(capsys: pytest.CaptureFixture[str]) -> None:
    out = shown(capsys, line("feishu:main", 12, 1_234_567), line("webhook:app", 3, 10, unpriced=2))
    assert out.splitlines() == [
        "TURNS  INPUT  OUTPUT       COST  ACCOUNT",
        "   12  12000      12  $1.234567  feishu:main",
        "    3   3000       3   $0.00001  webhook:app",
        "   15  15000      15  $1.234577  total",
        "2 of the turns have no known cost: not in these sums",
    ]


def test_senders_stand_below_where_they_are_too_long(capsys: pytest.CaptureFixture[str]) -> None:
    rows = (line(SENDER, 123_456, 10**9, "feishu:main"), line("", 1, uncounted=1))
    out = shown(capsys, *rows, words=("--by", "sender", "--days", "1"))
    assert all(len(row) <= 80 for row in out.splitlines())
    assert out.splitlines()[:3] == [
        " TURNS      INPUT  OUTPUT      COST  ACCOUNT      SENDER",
        "123456  123456000  123456  $1000.00  feishu:main",
        f"  {SENDER}",
    ]
    assert "(all others)" in out
    assert out.endswith("1 of the turns told no tokens: not in these sums\n")


def test_a_cost_that_nobody_knows_is_no_sum(capsys: pytest.CaptureFixture[str]) -> None:
    out = shown(capsys, line("a", 2, unpriced=2), line("b", 1, 10), line("c", 3, 10, unpriced=2))
    assert [row.split()[3] for row in out.splitlines()[1:5]] == ["-", "$0.00001", "$0.00001", "$0.00002"]
    assert "4 of the turns have no known cost" in out
    assert "\n1 of the turns has no known cost: " in shown(capsys, line("a", 1, unpriced=1))


def test_one_line_needs_no_sum_and_none_is_said(capsys: pytest.CaptureFixture[str]) -> None:
    assert "total" not in shown(capsys, line("echo"), words=("--by", "agent"))
    assert shown(capsys) == "nothing was used\n"


def test_what_is_asked_is_what_was_typed(capsys: pytest.CaptureFixture[str]) -> None:
    with socket_daemon(answer(line("2026-08-20", 1, 7), line("2026-08-21", 1, 8))) as daemon:
        words = ["usage", "--account", "feishu:main", "--by", "day", "--days", "30", "--json"]
        assert main([*words, "--home", str(daemon.home.root)]) == 0
        assert daemon.command == {"action": "usage", "account": "feishu:main", "by": "day", "days": 30}
    told = json.loads(capsys.readouterr().out)
    assert [one["name"] for one in told["usage"]] == ["2026-08-20", "2026-08-21"]
    assert (told["total"]["cost_micros"], told["total"]["input_tokens"]) == (15, 2000)


def test_an_account_of_which_there_is_nothing_is_a_2(capsys: pytest.CaptureFixture[str]) -> None:
    with socket_daemon(refusal("there is no account x:y", "unknown_account")) as daemon:
        assert main(["usage", "--account", "x:y", "--home", str(daemon.home.root)]) == 2
    assert "x:y" in capsys.readouterr().err


def test_no_days_are_a_usage_error() -> None:
    with pytest.raises(SystemExit, match="2"):
        main(["usage", "--days", "0"])


@pytest.mark.parametrize(
    ("micros", "text"),
    [(0, "$0.00"), (1, "$0.000001"), (1_500_000, "$1.50"), (10**12 + 120, "$1000000.00012")],
)
def test_money_is_shown_to_the_last_millionth(micros: int, text: str) -> None:
    assert dollars(micros) == text
