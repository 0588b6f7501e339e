"""What a message brings beside its text: references looked up, files fetched, notes for the rest."""

from __future__ import annotations

import asyncio
import errno
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path

from bridge.channel import (
    Channel,
    ChannelError,
    CredentialsError,
    FetchesFiles,
    FileKind,
    Inbound,
    RemoteFile,
    ResolvesReferences,
)
from bridge.errors import BridgeError, ConfigError
from bridge.logs import Logger
from bridge.media.files import Saved, TooLargeError
from bridge.media.limits import MIB, MediaLimits, Refusal, limit_for, refusal_of
from bridge.media.names import safe_name
from bridge.media.shelf import Shelf
from bridge.media.voice import Transcriber, UnheardError
from bridge.protocol.shared import Attachment
from bridge.relay.intake import is_bare_voice
from bridge.relay.settle import settled
from bridge.relay.texts import Text

_NO_ROOM = frozenset({errno.ENOSPC, errno.EDQUOT})


@dataclass(frozen=True, slots=True)
class Terms:
    """How an account takes files in. ``folder`` is the conversation's, on the account's ``shelf``."""

    folder: Path
    shelf: Shelf
    limits: MediaLimits
    download_seconds: float
    resolve_seconds: float
    listener: Transcriber | None = None


@dataclass(slots=True)
class Received:
    """``context`` comes before the message's text. ``notes`` tell the agent of each file not brought in.

    ``refusal`` is the first of these, as it is told to the sender when nothing else is left of the message.
    The files are in use until ``let_go``.
    """

    shelf: Shelf
    context: str = ""
    attachments: list[Attachment] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)
    refusal: tuple[Text, int] | None = None
    fresh: list[Path] = field(default_factory=list)  # saved for this message; the others were there

    def take(self, remote: RemoteFile, saved: Saved, transcript: str, *, fresh: bool) -> None:
        self.attachments.append(_attachment(saved, transcript))
        if fresh:
            self.fresh.append(saved.path)

    def refuse(self, note: str, text: Text, limit_mib: int = 0) -> None:
        self.notes.append(note)
        self.refusal = self.refusal or (text, limit_mib)

    async def forget_unheard(self, message: Inbound) -> None:
        """A message of voice alone that nobody understood leaves nothing to put to an agent."""
        if is_bare_voice(message) and not any(one.transcript for one in self.attachments):
            await self.let_go(keep=False)
            self.attachments.clear()

    async def let_go(self, *, keep: bool) -> None:
        """The turn is over, or there is none. Without ``keep``, what no stored message owns is removed."""
        self.shelf.let_go([Path(attachment.path) for attachment in self.attachments])
        if not keep:
            await self.shelf.remove(self.fresh)


async def receive(message: Inbound, channel: Channel, terms: Terms, owner: bool, log: Logger) -> Received:
    """Bring in all that ``message`` refers to. Trouble leaves notes and never fails the turn.

    A file that comes through a reference is stored once: it is the same for every message that refers to it.
    """
    received = Received(terms.shelf)
    try:
        referenced = await _resolve(message, channel, terms, received, log)
        wanted = [*((file, False) for file in message.files), *((file, True) for file in referenced)]
        for remote, shared in wanted[: terms.limits.max_files]:
            await _Bringing(remote, shared, channel, terms, owner, received, log).settle()
        await received.forget_unheard(message)
    except BaseException:  # stopped in the middle: no turn will own what is there already
        await received.let_go(keep=False)
        raise
    if len(wanted) > terms.limits.max_files:
        received.notes.append(
            f"[Of {len(wanted)} files {len(wanted) - terms.limits.max_files} were not opened.]"
        )
    return received


async def _resolve(
    message: Inbound, channel: Channel, terms: Terms, received: Received, log: Logger
) -> Sequence[RemoteFile]:
    if not message.reference or not isinstance(channel, ResolvesReferences):
        return ()
    try:
        async with asyncio.timeout(terms.resolve_seconds):
            context = await settled(channel.resolve(message.message_id, message.reference), name="resolve")
    except (ChannelError, TimeoutError) as error:
        log.info("reference.failed", reason=str(error) or "timed out")
    else:
        if not isinstance(context, Exception):
            received.context = context.text
            return context.files
        log.error("reference.bug", error=context)
    received.context = "[The message that this one refers to could not be fetched.]"
    return ()


@dataclass(frozen=True, slots=True)
class _Bringing:
    """One file on its way in. ``shared``: other messages refer to it, too."""

    remote: RemoteFile
    shared: bool
    channel: Channel
    terms: Terms
    owner: bool
    received: Received
    log: Logger

    async def settle(self) -> None:
        """Take the file in, or note why not; an adapter's bug costs this file alone."""
        error = await settled(self._bring(), name="file")
        if error is not None:
            self.log.error("file.bug", error=error)
            self._refuse("the download failed", Text.UNREADABLE_DOWNLOAD)

    async def _bring(self) -> None:
        remote, terms = self.remote, self.terms
        if not remote.fetchable or not isinstance(self.channel, FetchesFiles):
            self._refuse("this platform does not give its content", Text.UNREADABLE_TYPE)
        elif refusal := refusal_of(remote.kind, remote.size, self.owner, terms.limits):
            self._refused(refusal)
        elif saved := await self._stored():
            await self._take(saved, fresh=False)
        elif await terms.shelf.is_full():
            self._disk_full()
        else:
            await self._fetch(self.channel)

    async def _stored(self) -> Saved | None:
        """What another message brought already, where it is still there."""
        if not self.shared:
            return None
        remote, terms = self.remote, self.terms
        return await terms.shelf.find(terms.folder, remote.key, remote.mime, terms.limits.max_pixels)

    async def _fetch(self, channel: FetchesFiles) -> None:
        try:
            saved = await self._download(channel)
        except TooLargeError:
            self._refused(Refusal.TOO_LARGE)
        except (ChannelError, OSError, TimeoutError) as error:
            if isinstance(error, OSError) and error.errno in _NO_ROOM:
                self._disk_full()
                return
            self.log.info("file.failed", reason=_reason(error))
            why = f": {error}" if isinstance(error, ChannelError) else ""  # its text is safe, and says why
            self._refuse(f"the download failed{why}", Text.UNREADABLE_DOWNLOAD)
        else:
            await self._take(saved, fresh=True)

    async def _download(self, channel: FetchesFiles) -> Saved:
        remote, terms = self.remote, self.terms
        limit_bytes = limit_for(remote.kind, self.owner, terms.limits)
        async with asyncio.timeout(terms.download_seconds), channel.fetch(remote, limit_bytes) as incoming:
            return await terms.shelf.save(
                incoming.chunks,
                terms.folder,
                remote.name or incoming.name or safe_name("", kind=remote.kind),
                limit_bytes=limit_bytes,
                declared=incoming.mime or remote.mime,
                max_pixels=terms.limits.max_pixels,
                key=remote.key if self.shared else "",
            )

    async def _take(self, saved: Saved, *, fresh: bool) -> None:
        """The bytes decide: a file that is there may be none for this sender."""
        refusal = refusal_of(saved.kind, saved.size, self.owner, self.terms.limits)
        if refusal is None:
            try:
                transcript = await self._heard(saved)
            except BaseException:  # stopped in the middle: it is nobody's yet
                await self._leave(saved, fresh)
                raise
            self.received.take(self.remote, saved, transcript, fresh=fresh)
            return
        await self._leave(saved, fresh)
        self._refused(refusal)

    async def _heard(self, saved: Saved) -> str:
        """What is said in it, by the platform or the configured endpoint; "" with a note if by neither."""
        remote, listener = self.remote, self.terms.listener
        if remote.transcript.strip() or remote.kind is not FileKind.AUDIO or listener is None:
            return remote.transcript
        try:
            if saved.size > listener.table.max_mib * MIB:
                raise UnheardError(f"it is larger than {listener.table.max_mib} MB")
            return await listener.transcribe(saved.path, saved.mime)
        except (BridgeError, OSError) as error:
            log = self.log.warning if isinstance(error, ConfigError | CredentialsError) else self.log.info
            log("voice.not_heard", reason=_reason(error))
            self._refuse("what is said in it could not be written down", Text.VOICE)
            return ""

    async def _leave(self, saved: Saved, fresh: bool) -> None:
        self.terms.shelf.let_go([saved.path])
        if fresh:
            await self.terms.shelf.remove([saved.path])

    def _refused(self, refusal: Refusal) -> None:
        if refusal is Refusal.TOO_LARGE:
            mib = limit_for(self.remote.kind, self.owner, self.terms.limits) // MIB
            self._refuse(f"larger than {mib} MB, not opened", Text.UNREADABLE_SIZE, mib)
        else:
            self._refuse("not opened for this sender", Text.UNREADABLE_TYPE)

    def _disk_full(self) -> None:
        self.log.warning("file.no_room")
        self._refuse("not opened, because the disk is nearly full", Text.UNREADABLE_DISK)

    def _refuse(self, why: str, text: Text, limit_mib: int = 0) -> None:
        remote = self.remote
        transcript = f' Its transcript: "{remote.transcript}"' if remote.transcript else ""
        named = f"{remote.kind} {safe_name(remote.name)}" if remote.name else remote.kind
        note = f"[{named}: {why}.]{transcript}"
        self.received.refuse(note, text, limit_mib)


def _reason(error: Exception) -> str:
    return str(error) if isinstance(error, BridgeError) else type(error).__name__


def _attachment(saved: Saved, transcript: str) -> Attachment:
    return Attachment(
        kind=saved.kind,
        path=str(saved.path),
        name=saved.path.name.partition("-")[2],
        mime=saved.mime,
        size=saved.size,
        transcript=transcript or None,
    )
