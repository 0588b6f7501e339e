"""The bounds that follow from others."""

import pytest

from bridge.protocol.limits import SERVER_FRAME_BYTES, outbound_bytes


@pytest.mark.parametrize(
    ("frame", "room"), [(1024, 16_777_216), (8_388_607, 16_777_216), (SERVER_FRAME_BYTES, 16_777_218)]
)
def test_two_of_the_longest_frames_may_always_wait(frame: int, room: int) -> None:
    assert outbound_bytes(frame) == room
    assert outbound_bytes() == 2 * (SERVER_FRAME_BYTES + 1)
