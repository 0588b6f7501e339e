"""Which files are taken in."""

import pytest

from bridge.channel.contract import FileKind
from bridge.media.limits import MIB, MediaLimits, Refusal, limit_for, refusal_of

LIMITS = MediaLimits()


@pytest.mark.parametrize(
    ("kind", "owner", "mib"),
    [
        (FileKind.IMAGE, True, 50),
        (FileKind.FILE, True, 50),
        (FileKind.IMAGE, False, 5),
        (FileKind.FILE, False, 0),
        (FileKind.AUDIO, False, 0),
    ],
)
def test_the_limit_goes_by_sender_and_kind(kind: FileKind, owner: bool, mib: int) -> None:
    assert limit_for(kind, owner, LIMITS) == mib * MIB


def test_voice_of_others_is_taken_as_far_as_it_is_transcribed() -> None:
    listening = MediaLimits(others_voice_max_bytes=10 * MIB)
    assert limit_for(FileKind.AUDIO, False, listening) == 10 * MIB
    assert limit_for(FileKind.AUDIO, False, MediaLimits(0, others_voice_max_bytes=10 * MIB)) == 0
    assert limit_for(FileKind.VIDEO, False, listening) == 0


def test_no_files_from_the_owner_are_no_files_from_anybody() -> None:
    none = MediaLimits(owner_max_bytes=0)
    assert refusal_of(FileKind.IMAGE, 1, False, none) is Refusal.NOT_FOR_SENDER
    assert refusal_of(FileKind.IMAGE, 1, True, none) is Refusal.NOT_FOR_SENDER


@pytest.mark.parametrize(
    ("announced", "refusal"), [(None, None), (0, None), (5 * MIB, None), (5 * MIB + 1, Refusal.TOO_LARGE)]
)
def test_an_announced_size_is_judged(announced: int | None, refusal: Refusal | None) -> None:
    assert refusal_of(FileKind.IMAGE, announced, False, LIMITS) is refusal
