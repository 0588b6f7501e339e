import asyncio

from hypothesis import given
from hypothesis import strategies as st

from bridge.channel.testing.clock import FakeClock, settle
from bridge.protocol.limits import PROGRESS_LINE_BYTES, PROGRESS_TEXT_BYTES
from bridge.sessions.progress import Progress, clean, cut, join, one_line


async def test_lines_are_joined_and_shown_at_most_twice_a_second() -> None:
    clock, shown = FakeClock(), list[str]()

    async def send(text: str) -> None:
        shown.append(text)

    progress = Progress(clock, send)
    async with asyncio.TaskGroup() as tasks:
        running = tasks.create_task(progress.run())
        await progress.line("one")
        await settle()
        await progress.line("two")
        await progress.line("three")
        await clock.advance(0.49)
        assert shown == ["one"]
        await clock.advance(0.01)
        assert shown == ["one", "two\nthree"]
        await clock.advance(5)
        await progress.line("four")
        await settle()
        assert shown[2:] == ["four"]  # after a silence at once
        running.cancel()


async def test_a_flood_of_lines_is_kept_bounded() -> None:
    clock, shown = FakeClock(), list[str]()

    async def send(text: str) -> None:
        shown.append(text)

    progress = Progress(clock, send)
    for number in range(100_000):
        await progress.line(str(number))
    async with asyncio.TaskGroup() as tasks:
        running = tasks.create_task(progress.run())
        await settle()
        running.cancel()
    assert shown[0].startswith("…\n")
    assert shown[0].endswith("\n99999")


async def test_lost_lines_show_even_when_all_are_empty() -> None:
    clock, shown = FakeClock(), list[str]()

    async def send(text: str) -> None:
        shown.append(text)

    progress = Progress(clock, send)
    for _ in range(600):
        await progress.line("")
    async with asyncio.TaskGroup() as tasks:
        running = tasks.create_task(progress.run())
        await settle()
        running.cancel()
    assert shown[0].startswith("…\n")
    assert len(shown[0].encode()) == PROGRESS_TEXT_BYTES


def test_a_line_is_one_line_without_controls_that_utf8_can_hold() -> None:
    assert one_line("a\tb\nc\x1b[31m\u2028d\ud800e") == "a b c [31m d e"


@given(st.text())
def test_a_line_has_at_most_200_bytes_and_ends_in_an_ellipsis_when_cut(text: str) -> None:
    line = one_line(text * 40)
    assert len(line.encode()) <= PROGRESS_LINE_BYTES
    assert "\n" not in line
    assert line.endswith("…") or line == clean(text * 40)


@given(st.lists(st.text(max_size=60).map(one_line), min_size=1))
def test_the_newest_lines_stay_when_not_all_fit(lines: list[str]) -> None:
    text = join(lines)
    assert len(text.encode()) <= PROGRESS_TEXT_BYTES
    if text != "\n".join(lines):
        first, *kept = text.split("\n")
        assert first == "…"
        assert kept == lines[len(lines) - len(kept) :]


def test_an_exact_fit_is_not_cut() -> None:
    assert cut("é" * 100, 200) == "é" * 100
    assert cut("é" * 101, 200) == "é" * 98 + "…"
