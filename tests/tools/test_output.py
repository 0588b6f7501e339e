from pathlib import Path

from hypothesis import given
from hypothesis import strategies as st

from bridge.channel.testing.clock import FakeClock
from bridge.tools.output import KEPT_BYTES, SHOWN_BYTES_A_SECOND, Output
from bridge.tools.texts import OUTPUT_BYTES
from tests.tools.place import Shown


def output() -> tuple[Output, list[str]]:
    shown = Shown(Path("/"))
    return Output(FakeClock(), shown.place.progress), shown.lines


async def test_what_is_short_is_kept_whole() -> None:
    kept, _ = output()
    for piece in (b"one\n", b"", b"two"):
        await kept.take(piece)
    assert (kept.text(), kept.is_cut, kept.written) == ("one\ntwo", False, 7)


async def test_of_what_is_long_the_beginning_and_the_end_are_kept() -> None:
    kept, _ = output()
    await kept.take(b"begin" + b"x" * (KEPT_BYTES - 6))
    for _ in range(100):
        await kept.take(b"y" * 10_001)
    await kept.take("end é".encode())
    text = kept.text()
    assert kept.is_cut
    assert text.startswith("beginxxx")
    assert text.endswith("yyyend é")
    left_out = kept.written - OUTPUT_BYTES
    assert f"\n[… {left_out} bytes are left out …]\n" in text
    assert len(text.encode()) <= OUTPUT_BYTES + 60


async def test_the_limit_itself_is_not_over_it() -> None:
    kept, _ = output()
    await kept.take(b"x" * OUTPUT_BYTES)
    assert kept.text() == "x" * OUTPUT_BYTES


async def test_bytes_that_are_no_text_stay_within_the_limit() -> None:
    kept, _ = output()
    await kept.take(b"\xff\0" * (OUTPUT_BYTES // 2))
    assert not kept.is_cut
    assert "0 bytes are left out" in kept.text()
    assert len(kept.text().encode()) <= OUTPUT_BYTES + 60


@given(st.binary(max_size=300), st.integers(1, 50))
async def test_how_it_came_in_pieces_makes_no_difference(data: bytes, step: int) -> None:
    whole, pieces = output()[0], output()[0]
    await whole.take(data)
    for at in range(0, len(data), step):
        await pieces.take(data[at : at + step])
    assert whole.text() == pieces.text()


async def test_whole_lines_are_shown_and_of_many_the_newest() -> None:
    kept, lines = output()
    await kept.take(b"half")
    assert lines == []
    await kept.take(b" line\r\n\n10%\r")
    assert lines == ["half line", "10%"]
    await kept.take(b"".join(b"%d\n" % number for number in range(100)))
    assert lines[2:] == ["95", "96", "97", "98", "99"]


async def test_a_flood_is_not_shown_until_it_is_over() -> None:
    clock, shown = FakeClock(), Shown(Path("/"))
    kept = Output(clock, shown.place.progress)
    await kept.take(b"x" * SHOWN_BYTES_A_SECOND + b"\n")
    assert shown.lines == []
    await clock.advance(1)
    await kept.take(b"calm\n")
    assert shown.lines == ["calm"]
