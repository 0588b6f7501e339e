"""Giving out the files of replies.

A file travels inside the JSON up to ``INLINE_BYTES``. A larger one gets a signed address of ours.
"""

import asyncio
import base64
import hashlib
import os
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from pathlib import Path
from typing import Any

from bridge.channel import (
    Answer,
    ChannelError,
    FileWanted,
    OutboundFile,
    Place,
    Request,
)
from bridge.channel.addresses import ADDRESS_LIVES, SignedFiles, derived_key, expiry, shown_name
from channels.webhook.attached import INLINE_BYTES
from channels.webhook.replies import iso
from channels.webhook.signature import Held, SharedKey, current

__all__ = [
    "ADDRESS_LIVES",
    "Shelf",
    "TooLargeInlineError",
    "digest_file",
    "expiry",
    "read_file",
    "shown_name",
]


class TooLargeInlineError(ChannelError):
    """A file is too large to travel inline, and there is no public address to give it out under."""


@dataclass(frozen=True, slots=True)
class Shelf:
    """Makes the attachments of replies, and verifies requests for them. ``keys``: the first signs."""

    place: Place
    keys: Sequence[Held[SharedKey]] = field(repr=False)
    relative: bool = False  # without a public address: one relative to where the reply was asked for

    @classmethod
    def of(cls, place: Place, held: Iterable[Held[SharedKey]], relative: bool = False) -> "Shelf":
        """Its keys are made of the account's own, and of no use to another account that has the same."""
        purpose = f"files of webhook:{place.account}"
        keys = [Held(SharedKey(derived_key(each.key.raw, purpose)), each.until) for each in held]
        return cls(place, keys, relative)

    async def attachment(self, file: OutboundFile, now: datetime) -> tuple[dict[str, Any], float]:
        """The attachment's JSON, and for how many seconds its copy must be kept from ``now``.

        Raises:
            TooLargeInlineError: it needs an address, and there is none.
            OSError: the copy cannot be read.
        """
        fields = {
            "id": file.client_id,
            "name": shown_name(file.name),
            "mime_type": file.mime,
            "size": file.size,
        }
        if file.size <= INLINE_BYTES:
            content = await asyncio.to_thread(read_file, file.path)
            inline = base64.b64encode(content).decode()
            return {**fields, "sha256": hashlib.sha256(content).hexdigest(), "content_base64": inline}, 0.0
        if not self.place.address and not self.relative:
            raise TooLargeInlineError(
                f"files over {INLINE_BYTES // 1024} KiB are given out by address: set [web] public_url"
            )
        sha256 = await asyncio.to_thread(digest_file, file.path)
        expires = expiry(file.created_at or now, now)
        base = f"{self.place.address}/" if self.place.address else ""
        address = f"{base}files/{self.token(file.path.name, expires)}"
        return {**fields, "sha256": sha256, "url": address, "expires_at": iso(expires)}, (
            expires - now
        ).total_seconds()

    def token(self, name: str, expires: datetime) -> str:
        """What follows ``/files/``."""
        return SignedFiles([self.keys[0].key.raw]).token(name, expires)

    def wanted(self, request: Request) -> FileWanted | Answer:
        """The copy that ``request`` may have: 404 for what we never signed, 410 for what has expired."""
        valid = current(self.keys, request.received_at)
        return SignedFiles([key.raw for key in valid]).wanted(request)


def read_file(path: Path) -> bytes:
    """A small copy's bytes; blocks. A symlink is not followed, and a copy that grew is cut.

    Raises:
        OSError: it cannot be read.
    """
    with os.fdopen(os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_CLOEXEC), "rb") as content:
        return content.read(INLINE_BYTES)


def digest_file(path: Path) -> str:
    """The SHA-256 of a copy as hex digits; blocks, and raises as ``read_file``."""
    with os.fdopen(os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_CLOEXEC), "rb") as content:
        return hashlib.file_digest(content, "sha256").hexdigest()
