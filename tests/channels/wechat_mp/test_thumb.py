from io import BytesIO

from PIL import Image

from channels.wechat_mp.thumb import JPEG


def test_the_cover_is_a_small_jpeg() -> None:
    with Image.open(BytesIO(JPEG)) as picture:
        assert (picture.format, picture.size) == ("JPEG", (160, 90))
    assert len(JPEG) < 64 * 1024
