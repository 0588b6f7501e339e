"""A picture is made fit: first frame, upright, in its colours, no larger than asked for, and silent."""

import io
from pathlib import Path

import pytest
from PIL import Image

from bridge.media import fitting
from bridge.media.child import FAILED
from bridge.media.fitting import fit, main
from tests.media.pictures import animated, heic, picture, png_header

MIB = 1_048_576


@pytest.fixture(autouse=True)
def _unlimited(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(fitting, "limit", lambda *_: None)  # this process goes on


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "picture"


def fitted(path: Path, data: bytes, side: int = 256, most: int = MIB) -> Image.Image:
    path.write_bytes(data)
    found = fit(str(path), side, most)
    assert found is not None
    assert len(found) <= most
    image = Image.open(io.BytesIO(found), formats=("PNG", "JPEG"))
    image.load()
    return image


def noise(mode: str, side: int) -> bytes:
    out = io.BytesIO()
    Image.effect_noise((side, side), 200).convert(mode).save(out, "PNG")
    return out.getvalue()


@pytest.mark.parametrize(
    ("data", "kind"),
    [
        (animated("WEBP"), "JPEG"),
        (animated("GIF"), "JPEG"),
        (heic((64, 64)), "JPEG"),
        (picture("JPEG", mode="CMYK"), "JPEG"),
        (picture("BMP"), "JPEG"),
        (picture("PNG", mode="RGBA"), "PNG"),
        (picture("PNG", mode="P", transparency=0), "PNG"),
    ],
)
def test_case_84_each_kind_becomes_one_that_models_take(data: bytes, kind: str, path: Path) -> None:
    image = fitted(path, data)
    assert (image.format, image.mode) == (kind, "RGBA" if kind == "PNG" else "RGB")
    assert getattr(image, "n_frames", 1) == 1


def test_sixteen_bits_of_grey_keep_their_shade(path: Path) -> None:
    out = io.BytesIO()
    Image.new("I;16", (4, 4), 32_768).save(out, "PNG")
    shade = fitted(path, out.getvalue()).getpixel((1, 1))
    assert isinstance(shade, tuple)
    assert abs(shade[0] - 128) < 4


def test_the_longer_side_is_as_asked_for(path: Path) -> None:
    assert fitted(path, picture("JPEG", (1000, 500))).size == (256, 128)
    assert fitted(path, picture("PNG", (3000, 1))).size == (256, 1)
    assert fitted(path, picture("BMP", (10, 20))).size == (10, 20)


def test_what_stays_too_large_is_said_with_less_quality_or_not_at_all(path: Path) -> None:
    assert fitted(path, noise("RGBA", 256), most=40_000).format == "JPEG"
    path.write_bytes(noise("RGB", 256))
    assert fit(str(path), 256, 500) is None


def test_case_84_a_bomb_is_refused_before_a_pixel_is_decoded(path: Path) -> None:
    path.write_bytes(png_header(30_000, 30_000))
    assert fit(str(path), 256, MIB) is None


def test_as_a_program_it_writes_the_target_or_fails(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    target = path.with_name("target")
    words = [str(path), str(target), "256", str(MIB)]
    path.write_bytes(b"GIF89a hostile")
    assert main(words) == FAILED
    path.write_bytes(png_header(30_000, 30_000))
    assert main(words) == FAILED
    assert not target.exists()
    path.write_bytes(animated())
    assert main(words) == 0
    assert target.read_bytes().startswith(b"\xff\xd8\xff")


def test_without_the_extra_other_pictures_are_still_made_fit(
    path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def missing(name: str) -> None:
        raise ImportError(name)

    monkeypatch.setattr(fitting, "import_module", missing)
    monkeypatch.delitem(Image.OPEN, "HEIF", raising=False)
    assert fitted(path, picture("BMP")).format == "JPEG"
