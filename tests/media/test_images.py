"""The size of pictures."""

import sys
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from bridge.media.images import image_size, is_read, is_usable
from tests.media.pictures import HEIC, HTML, PNG, animated, heic, picture, png_header


@pytest.mark.parametrize("kind", ["PNG", "JPEG", "GIF", "WEBP", "BMP"])
def test_the_header_tells_the_size(kind: str, tmp_path: Path) -> None:
    data = picture(kind)
    (tmp_path / "x").write_bytes(data)
    assert image_size(data) == image_size(tmp_path / "x") == (3, 2)


def test_odd_pictures_are_pictures() -> None:
    assert image_size(picture("JPEG", mode="CMYK")) == (3, 2)
    assert image_size(animated()) == image_size(animated("GIF")) == (3, 2)


@pytest.mark.parametrize("data", [b"", b"x", HTML, HEIC, PNG[:12], PNG[:8], b"GIF89a\0\0\0\0\0\0\0"])
def test_what_is_no_picture_has_no_size(data: bytes) -> None:
    assert image_size(data) is None


def test_a_phone_s_photo_is_read_where_its_library_is_installed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "x").write_bytes(heic((30, 20)))
    assert image_size(tmp_path / "x") == image_size(heic((30, 20))) == (30, 20)
    assert is_read("image/heic")
    assert [image_size(heic()[:cut]) for cut in (20, 60, 200)] == [None] * 3
    monkeypatch.setitem(sys.modules, "pillow_heif", None)
    assert image_size(tmp_path / "x") is None
    assert [is_read(mime) for mime in ("image/heic", "image/png")] == [False, True]


@given(st.integers(0, len(PNG)), st.binary(max_size=8))
def test_no_broken_header_raises(at: int, noise: bytes) -> None:
    for whole in (PNG, animated(), heic(), picture("JPEG", exif=b"Exif\0\0II*\0\x08\0\0\0\x01\0\x1a\x01")):
        image_size(whole[:at] + noise + whole[at + len(noise) :])


def test_a_missing_file_has_no_size(tmp_path: Path) -> None:
    assert image_size(tmp_path / "gone") is None


def test_a_bomb_is_measured_and_refused_without_decoding() -> None:
    assert image_size(png_header(30_000, 30_000)) == (30_000, 30_000)
    assert not is_usable((30_000, 30_000))
    assert not is_usable(None)
    assert is_usable((10_000, 5_000))
    assert not is_usable((10, 10), 99)
