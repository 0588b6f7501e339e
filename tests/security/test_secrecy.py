"""Nothing private gets out: a whole run is searched, word by word, and the search is seen to find."""

import json

import pytest

from tests.security.planted import PLANTED, Plant
from tests.security.whole_run import whole_run

HAPPENED = {
    "delivery.bug",
    "delivery.refused",
    "file.failed",
    "health.changed",
    "intake.ignored",
    "reference.failed",
    "web.failed",
}
SEEN = {"log", "metrics", "status by command", "HTTP answers", "database rows", "names of files"}


async def test_no_secret_id_or_text_of_a_whole_run_is_anywhere_but_in_its_place() -> None:
    evidence = await whole_run()
    events = {json.loads(line)["event"] for line in evidence.shown["log"][0].splitlines()}
    assert events >= HAPPENED
    assert evidence.shown.keys() >= SEEN
    assert b"turns_per_day" in evidence.shown["database rows"][0]  # somebody was told of a limit
    assert evidence.leaks() == []


@pytest.mark.parametrize(("plant", "leak"), PLANTED, ids=lambda value: getattr(value, "__name__", ""))
async def test_a_leak_on_purpose_is_found(plant: Plant, leak: str, monkeypatch: pytest.MonkeyPatch) -> None:
    plant(monkeypatch)
    assert [found for found in (await whole_run()).leaks() if found.startswith(leak)]
