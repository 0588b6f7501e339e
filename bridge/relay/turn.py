"""One message as one turn: what is put to the agent, and what is made of its answer."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime
from pathlib import Path

from bridge.channel import Inbound
from bridge.channel.text import clean, truncate
from bridge.media.outbox import inside_outbox
from bridge.protocol.limits import PROMPT_BYTES
from bridge.protocol.shared import ReplyAttachment
from bridge.relay.outbox import Content, ReplyFile
from bridge.relay.received import Received
from bridge.relay.texts import Language, Text, say

OLD_SECONDS = 300.0
SHOWN_BYTES = 64  # more than the time at which a message was sent takes, and what divides paragraphs
REPLY_FILE_BYTES = 26_214_400


def prompt_of(message: Inbound, received: Received, age_seconds: float) -> str:
    """Context, the message's text and the notes, in this order, at most what a turn takes.

    What is too long is cut in the context first, which comes from elsewhere. A message that waited long
    brings the time it was sent at, so that nobody takes it for new.
    """
    own = _paragraphs(clean(message.text), "\n".join(received.notes))
    room = PROMPT_BYTES - len(own.encode()) - SHOWN_BYTES
    context = truncate(received.context, room, "\n[This was longer and is cut here.]") if room > 0 else ""
    text = _paragraphs(context, own)
    if text and message.sent_at is not None and age_seconds > OLD_SECONDS:
        text = f"[Sent {_shown(message.sent_at)}]\n{text}"
    return truncate(text, PROMPT_BYTES, "\n[The message was longer and is cut here.]")


def _paragraphs(*pieces: str) -> str:
    return "\n\n".join(piece for piece in pieces if piece.strip())


def is_text_alone(message: Inbound) -> bool:
    """Whether a running turn can take it in: there is nothing to fetch."""
    return bool(message.text.strip()) and not message.files and not message.reference


def steered(message: Inbound) -> str:
    """What is given of it to a turn that runs."""
    return truncate(clean(message.text), PROMPT_BYTES, "\n[The message was longer and is cut here.]")


def nothing_left(message: Inbound, received: Received) -> bool:
    """No text, no context, no file and no transcript: there is nothing to put to an agent."""
    transcripts = any(file.transcript.strip() for file in message.files)
    return not (message.text.strip() or received.context or received.attachments or transcripts)


def shown_key(key: str) -> str:
    """A conversation's key as a text without control characters."""
    return key.replace("\0", "/")


def content_of(text: str, attached: Sequence[ReplyAttachment], outbox_folder: Path) -> Content:
    """A completed turn's answer, with its regular files inside the outbox. Blocking: touches files."""
    kept = [file for file in attached if _deliverable(file, outbox_folder)]
    files = tuple(
        ReplyFile(file.path, file.name, file.mime, file.size, file.caption.strip()) for file in kept
    )
    return Content(text, files, dropped=len(attached) - len(kept))


def missed_list(messages: Sequence[Inbound], language: Language) -> str:
    """Messages that are too old to be acted on, one a line, as their sender is told of them."""
    lines = []
    for message in messages:
        words = " ".join(clean(message.text).split()) or say(Text.FILES, language, count=len(message.files))
        when = f"{_shown(message.sent_at)}: " if message.sent_at else ""
        lines.append(f"• {when}{truncate(words, 200, '…')}")
    return "\n".join(lines)


def _deliverable(file: ReplyAttachment, outbox_folder: Path) -> bool:
    path = Path(file.path)
    return 0 < file.size <= REPLY_FILE_BYTES and inside_outbox(path, outbox_folder)


def _shown(instant: datetime) -> str:
    return instant.strftime("%Y-%m-%d %H:%M UTC")
