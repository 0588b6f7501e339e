"""What the daemon tells of itself, and to whom."""

import json
from pathlib import Path
from typing import Literal

import pytest

from bridge import logs
from bridge.channel import Answer
from bridge.paths import Home, write_private
from bridge.web.own import Own, metrics_token

METRICS = Answer(200, b"turnbridge_build_info 1\n", "text/plain")


async def metrics() -> Answer:
    return METRICS


def own(
    access: Literal["off", "token", "open"] = "token",
    token: str = "",
    states: dict[str, int] | None = None,
) -> Own:
    return Own(lambda: states, metrics, access, token)


@pytest.mark.parametrize(
    ("states", "ready"),
    [
        ({}, True),
        ({"connected": 2, "disabled": 1}, True),
        ({"connected": 2, "failed": 1}, False),
        ({"starting": 1}, False),
        ({"stopping": 1}, False),
    ],
)
async def test_health_counts_states_and_readiness_needs_all_that_are_on(
    states: dict[str, int], ready: bool
) -> None:
    told = {"ok": True, "ready": ready, "accounts": states}
    lives = await own(states=states).answer("/healthz", {})
    assert (lives.status, json.loads(lives.body)) == (200, told)
    is_ready = await own(states=states).answer("/readyz", {})
    assert (is_ready.status, json.loads(is_ready.body)) == (200 if ready else 503, told)


async def test_nothing_is_ready_while_the_accounts_are_not_known() -> None:
    assert (await own().answer("/readyz", {})).status == 503
    lives = await own().answer("/healthz", {})
    assert (lives.status, json.loads(lives.body)) == (200, {"ok": True, "ready": False, "accounts": {}})


@pytest.mark.parametrize("path", ["/", "/healthz/", "/metrics/", "/Metrics", ""])
async def test_anything_else_is_not_found(path: str) -> None:
    assert (await own("open").answer(path, {})).status == 404


async def test_metrics_that_are_off_are_not_found() -> None:
    shown = {"Authorization": "Bearer right-and-long-enough"}
    assert (await own("off", "right-and-long-enough").answer("/metrics", shown)).status == 404


async def test_open_metrics_are_anybodys() -> None:
    assert await own("open").answer("/metrics", {}) is METRICS


@pytest.mark.parametrize("shown", ["Bearer right-token", "bearer  right-token ", "BEARER right-token"])
async def test_the_token_opens_the_metrics(shown: str) -> None:
    assert await own("token", "right-token").answer("/metrics", {"Authorization": shown}) is METRICS


@pytest.mark.parametrize(
    ("token", "shown"),
    [
        ("right-token", ""),
        ("right-token", "right-token"),
        ("right-token", "Basic right-token"),
        ("right-token", "Bearer right-toke"),
        ("right-token", "Bearer right-token2"),
        ("right-token", "Bearer \udcff图"),
        ("", "Bearer "),
        ("", "Bearer"),
    ],
)
async def test_whoever_shows_another_token_or_none_reads_nothing(token: str, shown: str) -> None:
    answer = await own("token", token).answer("/metrics", {"Authorization": shown} if shown else {})
    assert (answer.status, answer.headers) == (401, {"WWW-Authenticate": "Bearer"})
    assert b"turnbridge" not in answer.body


def test_the_token_is_made_once_private_and_never_logged(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    home = Home(tmp_path / "home")
    token = metrics_token(home)
    assert len(token) > 40
    assert home.metrics_token.stat().st_mode & 0o777 == 0o600
    assert metrics_token(home) == token
    logs.configure("info", as_json=True)
    logs.get_logger("test").info("said", text=f"it is {token}")
    assert token not in capsys.readouterr().err


@pytest.mark.parametrize("data", [b"", b"short\n", b"\xff\xfe"])
def test_a_token_that_can_be_guessed_is_nobodys(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], data: bytes
) -> None:
    logs.configure("info", as_json=True)
    home = Home(tmp_path)
    home.private_dir(home.state)
    write_private(home.metrics_token, data)
    assert metrics_token(home) == ""
    assert "too short" in capsys.readouterr().err


def test_a_token_that_others_can_read_is_nobodys(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    logs.configure("info", as_json=True)
    home = Home(tmp_path)
    metrics_token(home)
    home.metrics_token.chmod(0o644)
    assert metrics_token(home) == ""
    assert "chmod 600" in capsys.readouterr().err
