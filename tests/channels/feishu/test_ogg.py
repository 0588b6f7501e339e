import pytest
from hypothesis import given
from hypothesis import strategies as st

from channels.feishu.ogg import is_opus, opus_ms
from tests.channels.feishu.test_send_file import opus, page


@pytest.mark.parametrize("ms", [1, 2500, 3_600_000])
def test_the_last_page_tells_the_length(ms: int) -> None:
    data = opus(ms)
    assert is_opus(data)
    assert opus_ms(data, data) == ms


def test_other_sounds_in_ogg_and_other_files_are_not_opus() -> None:
    for data in (b"", b"x", page(b"\x01vorbis"), b"OpusHead", b"ID3" + opus(1)):
        assert not is_opus(data)


def test_a_length_that_makes_no_sense_is_none() -> None:
    for samples in (0, 312, -1, 2**62):
        data = opus(1)[: -len(page(b"sound"))] + page(b"sound", samples)
        assert opus_ms(data, data) == 0
    assert opus_ms(b"", b"") == 0
    assert opus_ms(opus(1), b"x" * 40) == 0
    assert opus_ms(b"x" * 40, page(b"x", 48_000)) == 0


@given(st.binary(max_size=100), st.binary(max_size=100))
def test_no_bytes_make_it_fail(start: bytes, end: bytes) -> None:
    assert opus_ms(start, end) >= 0
    assert opus_ms(b"OggSOpusHead" + start, b"OggS" + end) >= 0
    assert is_opus(start) in (True, False)
