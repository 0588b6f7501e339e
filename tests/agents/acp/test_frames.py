"""Messages over a program's pipes, whatever it writes there."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import pytest

from bridge.agents.acp import frames
from bridge.agents.acp.frames import Frames, read
from bridge.tools.processes import clean_environment, process_group


@asynccontextmanager
async def printing(script: str) -> AsyncIterator[tuple[Frames, list[str]]]:
    """The messages of a shell script, and whether they have ended."""
    ended: list[str] = []
    async with process_group(["sh", "-c", script], Path("/"), clean_environment()) as process:
        yield Frames(process, "x", lambda: ended.append("ended")), ended


async def test_messages_are_read_among_other_lines_and_the_end_is_told() -> None:
    script = """echo hi; echo; echo '{"id":1,"result":2}'; echo bye; printf '{"id":2'"""
    async with printing(script) as (one, ended):
        assert await one.receive() == {"id": 1, "result": 2}
        assert ended == []
        assert await one.receive() is None
        await one.close()
    assert (ended, one.problem) == (["ended"], "")


async def test_what_is_sent_arrives_as_a_line() -> None:
    async with printing("cat") as (one, _):
        async with asyncio.TaskGroup() as tasks:
            for number in range(3):
                tasks.create_task(one.send({"id": number, "result": "é\n"}))
        assert [(await one.receive() or {})["id"] for _ in range(3)] == [0, 1, 2]


@pytest.mark.parametrize(
    ("script", "problem"),
    [("head -c 3000 /dev/zero", ""), ("echo xxxxxxxxxxxxxxxxxxxxxxxxxxxx", "over 20 bytes"),
     ("echo a; echo b; echo c; sleep 5", "no Agent Client Protocol")],
)  # fmt: skip
async def test_too_long_a_message_and_too_many_strange_lines_end_it(
    script: str, problem: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(frames, "FRAME_BYTES", 20)
    monkeypatch.setattr(frames, "MOST_STRAY_LINES", 2)
    async with printing(script) as (one, ended):
        assert await one.receive() is None
        assert problem in one.problem
        assert ended == ["ended"]


@pytest.mark.parametrize(
    "line",
    [b"", b"[]", b"7", b"\xff", b"[" * 100_000, b'{"id":true,"result":1}', b'{"id":1.0,"result":1}',
     b'{"id":{}}', b'{"id":"a","result":1}', b'{"id":1,"error":7}',
     b'{"id":1,"error":{"code":"x","message":""}}',
     b'{"id":1,"error":{"code":1}}', b'{"method":7}'],
)  # fmt: skip
def test_what_would_break_a_reader_is_no_message(line: bytes) -> None:
    assert read(line) is None


@pytest.mark.parametrize(
    "line",
    [b'{"method":"x"}', b'{"id":"a","method":"x"}', b'{"id":1,"result":null}',
     b'{"id":1,"error":{"code":1,"message":"m"}}'],
)  # fmt: skip
def test_requests_news_and_answers_are(line: bytes) -> None:
    assert read(line) is not None
