import csv
import io

import pytest

from bridge.agents.echo_files import MOST_BYTES, make
from bridge.media.images import image_size
from bridge.media.sniff import by_bytes


def test_a_picture_has_the_pixels_that_were_asked_for() -> None:
    from PIL import Image

    for size, pixels in (("", (320, 200)), ("7x5", (7, 5)), ("4X9", (4, 9)), ("12", (12, 12))):
        data = make("a.PNG", size)
        assert image_size(data) == pixels
        Image.open(io.BytesIO(data)).load()  # it is a picture to its last byte


@pytest.mark.parametrize(
    ("name", "mime"), [("a.txt", "text/plain"), ("a", "text/plain"), ("a.pdf", "application/pdf")]
)
def test_a_file_is_what_its_name_says(name: str, mime: str) -> None:
    assert by_bytes(make(name, "")) == mime


def test_a_table_can_be_read() -> None:
    rows = list(csv.reader(io.StringIO(make("a.csv", "100").decode())))
    assert rows[:3] == [["number", "square", "word"], ["1", "1", "echo"], ["2", "4", "echo"]]


@pytest.mark.parametrize(
    ("size", "count"), [("0", 0), ("10", 10), ("2k", 2048), ("1M", 1_048_576), ("26m", 26 * 1_048_576)]
)
def test_sizes_are_exact(size: str, count: int) -> None:
    assert len(make("a.txt", size)) == count


def test_a_document_has_at_least_its_size_and_a_right_table() -> None:
    for size in ("1", "5000"):
        data = make("a.pdf", size)
        assert len(data) >= int(size)
        start = int(data.split(b"startxref\n")[1].split(b"\n")[0])
        assert data[start:].startswith(b"xref\n0 7\n")
        for number, line in enumerate(data[start:].split(b"\n")[3:9], 1):
            place = int(line[:10])
            assert data[place:].startswith(b"%d 0 obj" % number)


@pytest.mark.parametrize(
    ("name", "size"),
    [
        ("a.png", "0x1"),
        ("a.png", "3000"),
        ("a.png", "axb"),
        ("a.txt", "-1"),
        ("a.txt", "33m"),
        ("a.txt", "k"),
    ],
)
def test_a_size_that_is_none_or_too_large_is_refused(name: str, size: str) -> None:
    with pytest.raises(ValueError):
        make(name, size)


def test_the_same_file_is_made_again() -> None:
    assert make("a.png", "9x9") == make("a.png", "9x9")
    assert MOST_BYTES > 26_214_400  # what no chat takes can be made, too
