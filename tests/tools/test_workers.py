from pathlib import Path
from typing import Any

import pytest

from bridge.tools import workers


async def collect(told: list[Any], request: Any, seconds: float = 20, module: str = "searching") -> str:
    async def take(answer: Any) -> None:
        told.append(answer)

    return await workers.work(module, request, seconds, take)


def request(root: Path, text: str) -> dict[str, Any]:
    return {"root": str(root), "own": None, "path": ".", "names": "", "text": text}


async def test_each_answer_is_taken_and_the_end_is_told(tmp_path: Path) -> None:
    (tmp_path / "a").write_text("one\nzwö\n")
    told: list[Any] = []
    assert await collect(told, request(tmp_path, ".")) == ""
    assert told == [{"hit": "a:1: one"}, {"hit": "a:2: zwö"}]


async def test_work_that_takes_too_long_is_ended(tmp_path: Path) -> None:
    (tmp_path / "a").write_text("a" * 60 + "b\n")
    assert await collect([], request(tmp_path, "(a+)+$"), 0.3) == "it took over 0.3 seconds"


@pytest.mark.parametrize("asked", [{}, {"much": "x" * 10_000_000}])
async def test_work_that_breaks_off_is_told(asked: dict[str, str]) -> None:
    assert await collect([], asked) == "it broke off"
    assert await collect([], asked, module="none") == "it broke off"


async def test_a_worker_has_no_more_memory_than_it_may(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(workers, "MEMORY_BYTES", 1_000_000)
    assert await collect([], request(tmp_path, ".")) == "it broke off"


@pytest.mark.parametrize("said", ["x" * 200, '{"hit": '])
async def test_an_answer_that_is_cut_off_or_too_long_is_no_answer(
    said: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As of a worker that the system ends in the middle of a line."""
    monkeypatch.setattr(workers, "_START", f"import sys; sys.stdin.read(); print({said!r}, end='')")
    monkeypatch.setattr(workers, "LINE_BYTES", 100)
    told: list[Any] = []
    assert (await collect(told, {}), told) == ("it broke off", [])
