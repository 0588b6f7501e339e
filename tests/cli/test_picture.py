"""The picture that is sent when none is given."""

import io

from PIL import Image

from bridge.cli.picture import HEIGHT, NAME, SUN, WIDTH, sunset


def test_it_is_a_whole_png_with_a_sun_in_it() -> None:
    with Image.open(io.BytesIO(sunset())) as picture:
        picture.load()
        assert (picture.format, picture.size) == ("PNG", (WIDTH, HEIGHT))
        assert picture.getpixel((WIDTH // 2, HEIGHT * 2 // 3)) == SUN
        assert picture.getpixel((0, 0)) != picture.getpixel((0, HEIGHT - 1))


def test_it_is_small_the_same_each_time_and_has_a_chinese_name() -> None:
    assert sunset() == sunset()
    assert len(sunset()) < 10_000
    assert NAME == "晚霞.png"
