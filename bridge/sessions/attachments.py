"""A turn's files: checked when the message arrives, described when the turn starts."""

import os
import re
import stat
from pathlib import Path

from bridge.agents.contract import TurnFile
from bridge.media.images import image_size
from bridge.protocol.limits import TURN_ATTACHMENTS
from bridge.protocol.shared import Attachment
from bridge.sessions.errors import RequestError

KINDS = frozenset(("image", "audio", "video", "file", "sticker"))
PICTURES = frozenset(("image", "sticker"))
NAME_CHARACTERS = 200
TRANSCRIPT_CHARACTERS = 4000

_CONTROL = re.compile(r"[\x00-\x1f\x7f-\x9f\u2028\u2029]")


def check(attachments: tuple[Attachment, ...]) -> None:
    """Judge ``attachments``; blocking. Paths are judged without following a final symbolic link.

    Raises:
        RequestError: ``invalid_request``.
    """
    if len(attachments) > TURN_ATTACHMENTS:
        raise _refuse(f"a turn takes at most {TURN_ATTACHMENTS} attachments")
    for number, attachment in enumerate(attachments, 1):
        _check_one(attachment, number)


def _check_one(attachment: Attachment, number: int) -> None:
    if attachment.kind not in KINDS:
        raise _refuse(f"attachment {number} has an unknown kind")
    if not attachment.path.startswith("/"):
        raise _refuse(f"attachment {number} needs an absolute path")
    try:
        found = os.lstat(attachment.path)
    except (OSError, ValueError) as error:  # ValueError: a NUL in the path
        raise _refuse(f"attachment {number} does not exist") from error
    if not stat.S_ISREG(found.st_mode):
        raise _refuse(f"attachment {number} is no regular file")
    if found.st_size != attachment.size:
        raise _refuse(f"attachment {number} is not of the stated size")


def _refuse(text: str) -> RequestError:
    return RequestError("invalid_request", text)


def describe(attachment: Attachment, *, with_path: bool) -> TurnFile:
    """What the agent is told of a file; reads an image's size, so blocking."""
    path = Path(attachment.path)
    is_picture = attachment.kind in PICTURES
    return TurnFile(
        kind=attachment.kind,
        path=path if with_path else None,
        name=_shown(attachment.name, NAME_CHARACTERS),
        mime=_shown(attachment.mime, NAME_CHARACTERS),
        size=attachment.size,
        transcript=_shown(attachment.transcript or "", TRANSCRIPT_CHARACTERS),
        pixels=image_size(path) if is_picture else None,
        picture=path if is_picture else None,
    )


def _shown(text: str, characters: int) -> str:
    return _CONTROL.sub(" ", text[:characters])
