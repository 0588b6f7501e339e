"""What a message brings beside its text: references looked up, files fetched, notes for the rest."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path

from bridge.channel import Channel, ChannelError, FetchesFiles, Inbound, RemoteFile, ResolvesReferences
from bridge.logs import Logger
from bridge.media import files
from bridge.media.limits import MIB, MediaLimits, Refusal, limit_for, refusal_of
from bridge.media.names import safe_name
from bridge.protocol.shared import Attachment
from bridge.relay.texts import Text


@dataclass(frozen=True, slots=True)
class Terms:
    """How an account takes files in. ``folder`` is the conversation's."""

    folder: Path
    limits: MediaLimits
    download_seconds: float
    resolve_seconds: float


@dataclass(slots=True)
class Received:
    """``context`` comes before the message's text. ``notes`` tell the agent of each file not brought in.

    ``refusal`` is the first of these, as it is told to the sender when nothing else is left of the message.
    """

    context: str = ""
    attachments: list[Attachment] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)
    refusal: tuple[Text, int] | None = None

    def refuse(self, note: str, text: Text, limit_mib: int = 0) -> None:
        self.notes.append(note)
        self.refusal = self.refusal or (text, limit_mib)


async def receive(message: Inbound, channel: Channel, terms: Terms, owner: bool, log: Logger) -> Received:
    """Bring in all that ``message`` refers to. Trouble leaves notes and never fails the turn."""
    received = Received()
    referenced = await _resolve(message, channel, terms, received, log)
    wanted = [*message.files, *referenced]
    for remote in wanted[: terms.limits.max_files]:
        await _bring_in(remote, channel, terms, owner, received, log)
    if len(wanted) > terms.limits.max_files:
        received.notes.append(f"[{len(wanted) - terms.limits.max_files} more file(s) were not opened.]")
    return received


async def remove(attachments: Sequence[Attachment]) -> None:
    """Remove received files whose turn was refused: no stored message owns them."""
    for attachment in attachments:
        with suppress(OSError):
            await asyncio.to_thread(Path(attachment.path).unlink)


async def _resolve(
    message: Inbound, channel: Channel, terms: Terms, received: Received, log: Logger
) -> Sequence[RemoteFile]:
    if not message.reference or not isinstance(channel, ResolvesReferences):
        return ()
    try:
        async with asyncio.timeout(terms.resolve_seconds):
            context = await channel.resolve(message.message_id, message.reference)
    except (ChannelError, TimeoutError) as error:
        log.info("reference.failed", reason=str(error) or "timed out")
        received.context = "[The message that this one refers to could not be fetched.]"
        return ()
    received.context = context.text
    return context.files


async def _bring_in(
    remote: RemoteFile, channel: Channel, terms: Terms, owner: bool, received: Received, log: Logger
) -> None:
    what = f"{remote.kind} {safe_name(remote.name, kind=remote.kind)}"
    transcript = f' Its transcript: "{remote.transcript}"' if remote.transcript else ""
    if not remote.fetchable or not isinstance(channel, FetchesFiles):
        note = f"[{what}: this platform does not give its content.]{transcript}"
        received.refuse(note, Text.UNREADABLE_TYPE)
        return
    refusal = refusal_of(remote.kind, remote.size, owner, terms.limits)
    if refusal is None:
        try:
            saved = await _download(remote, channel, terms, owner)
        except files.TooLargeError:
            refusal = Refusal.TOO_LARGE
        except (ChannelError, OSError, TimeoutError) as error:
            reason = str(error) if isinstance(error, ChannelError) else type(error).__name__
            log.info("file.failed", reason=reason)
            received.refuse(f"[{what}: the download failed.]{transcript}", Text.UNREADABLE_DOWNLOAD)
            return
        else:
            refusal = refusal_of(saved.kind, saved.size, owner, terms.limits)  # the bytes decide
            if refusal is None:
                received.attachments.append(_attachment(remote, saved))
                return
            await asyncio.to_thread(files.remove, saved.path)
    if refusal is Refusal.TOO_LARGE:
        mib = limit_for(remote.kind, owner, terms.limits) // MIB
        note = f"[{what}: larger than {mib} MB, not opened.]{transcript}"
        received.refuse(note, Text.UNREADABLE_SIZE, mib)
    else:
        received.refuse(f"[{what}: not opened for this sender.]{transcript}", Text.UNREADABLE_TYPE)


async def _download(remote: RemoteFile, channel: FetchesFiles, terms: Terms, owner: bool) -> files.Saved:
    limit_bytes = limit_for(remote.kind, owner, terms.limits)
    async with asyncio.timeout(terms.download_seconds), channel.fetch(remote, limit_bytes) as incoming:
        return await files.save(
            incoming.chunks,
            terms.folder,
            remote.name or incoming.name or safe_name("", kind=remote.kind),
            limit_bytes=limit_bytes,
            declared=incoming.mime or remote.mime,
            max_pixels=terms.limits.max_pixels,
        )


def _attachment(remote: RemoteFile, saved: files.Saved) -> Attachment:
    return Attachment(
        kind=saved.kind,
        path=str(saved.path),
        name=saved.path.name.partition("-")[2],
        mime=saved.mime,
        size=saved.size,
        transcript=remote.transcript or None,
    )
