"""Cutting a stream into lines: the published vectors, and any way in which the bytes may arrive."""

from collections.abc import Iterable
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from bridge.protocol.frames import ClientLineDecoder, LineDecoder, TooLong
from tests.protocol.wire_vectors import VECTORS

Decoder = LineDecoder | ClientLineDecoder
Lines = list[bytes | TooLong]


def decode(decoder: Decoder, chunks: Iterable[bytes]) -> Lines:
    lines = [line for chunk in chunks for line in decoder.feed(chunk)]
    return lines + decoder.end()


@pytest.mark.parametrize("vector", VECTORS["frames"], ids=[vector["id"] for vector in VECTORS["frames"]])
def test_a_stream_is_cut_as_published(vector: dict[str, Any]) -> None:
    decoder = (LineDecoder if vector["side"] == "server" else ClientLineDecoder)(vector["limit"])
    lines = decode(decoder, map(bytes.fromhex, vector["chunks_hex"]))
    found = ["too_large" if line == TooLong() else {"line_hex": bytes(line).hex()} for line in lines]  # type: ignore[arg-type]  # TooLong is taken out
    stopped = isinstance(decoder, ClientLineDecoder) and TooLong() in lines
    assert [*found, *([] if stopped else ["end"])] == vector["expected"]


def expected(stream: bytes, limit: int) -> Lines:
    """What the server's side owes, said in the simplest way."""
    *ended, tail = stream.split(b"\n")
    trimmed = [line.rstrip(b"\r") for line in [*ended, *([tail] if tail else [])]]
    return [line if len(line) <= limit else TooLong() for line in trimmed]


def chunked(stream: bytes, sizes: list[int]) -> list[bytes]:
    chunks, at = [], 0
    for size in sizes:
        chunks.append(stream[at : at + size])
        at += size
    return [*chunks, stream[at:]]


STREAMS = st.lists(st.sampled_from([b"a", b"bcd", b"\r", b"\n", b"\r\n", b"efghijkl"]), max_size=40).map(
    b"".join
)
SIZES = st.lists(st.integers(0, 6), max_size=60)


@given(STREAMS, SIZES, st.integers(0, 12))
def test_the_servers_lines_do_not_depend_on_how_the_bytes_arrive(
    stream: bytes, sizes: list[int], limit: int
) -> None:
    assert decode(LineDecoder(limit), chunked(stream, sizes)) == expected(stream, limit)


@given(STREAMS, SIZES, st.integers(1, 12))
def test_the_clients_lines_do_not_depend_on_how_the_bytes_arrive(
    stream: bytes, sizes: list[int], limit: int
) -> None:
    assert decode(ClientLineDecoder(limit), chunked(stream, sizes)) == decode(
        ClientLineDecoder(limit), [stream]
    )


def test_an_over_long_line_is_not_kept() -> None:
    decoder = LineDecoder(limit=8)
    for _ in range(1000):
        assert decoder.feed(b"x" * 100) == []
        assert len(decoder._kept) <= 8
    for _ in range(1000):
        assert decoder.feed(b"\r" * 100) == []
        assert len(decoder._kept) <= 8
    assert decoder.feed(b"\nok\n") == [TooLong(), b"ok"]


def test_crs_that_turn_out_to_be_inside_a_line_are_kept_and_count() -> None:
    decoder = LineDecoder(limit=4)
    assert decoder.feed(b"a\r") == decoder.feed(b"\r") == []
    assert decoder.feed(b"b\n") == [b"a\r\rb"]
    assert [*decoder.feed(b"a\r\r\r"), *decoder.feed(b"b\n")] == [TooLong()]


def test_a_line_that_has_begun_is_judged_by_a_changed_limit() -> None:
    decoder = LineDecoder(limit=8)
    decoder.feed(b"12345\r\r\r\r\r\r\r\r")
    decoder.limit = 4
    assert decoder.feed(b"\n1234\n") == [TooLong(), b"1234"]
    decoder.feed(b"1234")
    decoder.limit = 20
    assert decoder.feed(b"\r\r5678\n") == [b"1234\r\r5678"]


def test_a_lone_cr_at_the_end_of_the_input_is_an_empty_last_line() -> None:
    assert decode(LineDecoder(4), [b"\r"]) == [b""]


def test_a_client_gives_up_at_once_and_for_good() -> None:
    decoder = ClientLineDecoder(limit=4)
    assert decoder.feed(b"ab\nabcd") == [b"ab", TooLong()]
    assert decoder.ended
    assert decoder.feed(b"\nab\n") == decoder.end() == []


def test_a_client_takes_a_last_line_without_its_newline() -> None:
    decoder = ClientLineDecoder(limit=4)
    assert decode(decoder, [b"a\r", b"\nab"]) == [b"a", b"ab"]
    assert decoder.ended


def test_a_client_with_room_for_the_ending_reads_the_longest_frame_that_a_server_sends() -> None:
    decoder = ClientLineDecoder(limit=8 + 2)
    assert decoder.feed(b"12345678\r\n12345678\n") == [b"12345678", b"12345678"]
