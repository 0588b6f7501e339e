"""What is shown of a picture: as it is where that will do, else made so, in a process of its own."""

import io
from pathlib import Path

import pytest
from PIL import Image

from bridge.media import showing
from bridge.media.showing import MOST_BYTES, Showable, is_plain, showable
from tests.media.pictures import PNG, animated, heic, picture


def with_place(kind: str) -> bytes:
    """With a place in its metadata, and lying on its side."""
    exif = Image.Exif()
    exif[0x0112] = 6  # turned by a quarter
    exif.get_ifd(0x8825)[1] = "N"
    return picture(kind, (4, 2), exif=exif)


@pytest.mark.parametrize(
    ("data", "plain"),
    [
        (PNG, True),
        (picture("JPEG"), True),
        (picture("PNG", mode="RGBA"), True),
        (picture("JPEG", (300, 2)), False),
        (picture("JPEG", mode="CMYK"), False),
        (with_place("JPEG"), False),
        (with_place("PNG"), False),
        (picture("GIF", mode="P"), False),
        (animated(), False),
        (heic(), False),
        (PNG + bytes(MOST_BYTES), False),
        (b"\xff\xd8\xff\xe0 jpeg", False),
        (b"", False),
    ],
)
def test_only_what_a_model_takes_goes_as_it_is(data: bytes, plain: bool) -> None:
    assert is_plain(data, 256) is plain


@pytest.mark.parametrize("kind", ["JPEG", "PNG"])
def test_case_84_what_is_shown_is_upright_and_tells_no_place(kind: str, tmp_path: Path) -> None:
    path = tmp_path / "a"
    path.write_bytes(with_place(kind))
    found = showable(path)
    assert found is not None
    assert found.mime == "image/jpeg"
    with Image.open(io.BytesIO(found.data)) as image:
        assert (image.size, dict(image.getexif())) == ((2, 4), {})
    assert path.read_bytes() == with_place(kind)


def test_what_will_do_is_read_and_what_cannot_be_shown_is_none(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path, link = tmp_path / "a", tmp_path / "link"
    path.write_bytes(PNG)
    link.symlink_to(path)
    assert showable(path) == Showable(PNG, "image/png")
    with pytest.raises(OSError):
        showable(link)
    with pytest.raises(OSError):
        showable(tmp_path)
    path.write_bytes(b"GIF89a hostile")
    assert showable(path) is None
    monkeypatch.setattr(showing, "run_limited", lambda *_: 1)
    path.write_bytes(animated())
    assert showable(path) is None
