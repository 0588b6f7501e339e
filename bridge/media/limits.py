"""Which received files are taken in, by sender, kind and size. Pure."""

from dataclasses import dataclass
from enum import StrEnum
from typing import Final

from bridge.channel.contract import FileKind
from bridge.media.images import MAX_PIXELS

MIB: Final = 1_048_576


class Refusal(StrEnum):
    """Why a file is not opened."""

    NOT_FOR_SENDER = "not opened for this sender"
    TOO_LARGE = "too large"


@dataclass(frozen=True, slots=True)
class MediaLimits:
    """An account's limits. 0 bytes from the owner: no files from anybody."""

    owner_max_bytes: int = 50 * MIB
    others_image_max_bytes: int = 5 * MIB
    others_voice_max_bytes: int = 0  # what is transcribed for them
    max_files: int = 16  # of one message
    max_pixels: int = MAX_PIXELS


def limit_for(kind: FileKind, owner: bool, limits: MediaLimits) -> int:
    """The most bytes that a file may have, 0: no file. ``owner``: it is the owner, with the tools grant."""
    if owner:
        return limits.owner_max_bytes
    match kind:
        case FileKind.IMAGE:
            return min(limits.others_image_max_bytes, limits.owner_max_bytes)
        case FileKind.AUDIO:
            return min(limits.others_voice_max_bytes, limits.owner_max_bytes)
    return 0


def refusal_of(
    kind: FileKind, announced_bytes: int | None, owner: bool, limits: MediaLimits
) -> Refusal | None:
    """Why a file is not even asked for, or ``None``. Without an announced size only the download can tell."""
    limit = limit_for(kind, owner, limits)
    if limit <= 0:
        return Refusal.NOT_FOR_SENDER
    if announced_bytes is not None and announced_bytes > limit:
        return Refusal.TOO_LARGE
    return None
