"""Giving out the files of replies.

A file travels inside the JSON up to ``INLINE_BYTES``. A larger one gets an address of ours that
holds all there is to check: the copy's name, the expiry, and a MAC over both. Nothing is stored for it.
"""

import asyncio
import base64
import hashlib
import hmac
import os
import re
from collections.abc import Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any, Final

from bridge.channel import (
    Answer,
    ChannelError,
    FileWanted,
    OutboundFile,
    Place,
    Request,
)
from channels.webhook.replies import dump, iso
from channels.webhook.signature import derive
from channels.webhook.wire import INLINE_BYTES

ADDRESS_LIVES: Final = timedelta(hours=24)
_TOKEN = re.compile(r"([A-Za-z0-9_-]{1,1400})\.([0-9]{1,12})\.([A-Za-z0-9_-]{43})", re.ASCII)
_UNSHOWN = re.compile(r"[\x00-\x1f\x7f-\x9f\u2028\u2029\ud800-\udfff]")


class TooLargeInlineError(ChannelError):
    """A file is too large to travel inline, and there is no public address to give it out under."""


@dataclass(frozen=True, slots=True)
class Shelf:
    """Makes the attachments of replies, and verifies requests for them. ``keys``: the first signs."""

    place: Place
    keys: Sequence[bytes] = field(repr=False)
    relative: bool = False  # without a public address: one relative to where the reply was asked for

    @classmethod
    def of(cls, place: Place, secrets: Sequence[bytes], relative: bool = False) -> "Shelf":
        return cls(place, [derive(secret, "files v1") for secret in secrets], relative)

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
        """What follows ``/files/``: the name, the expiry in Unix seconds and their MAC, safe in any path."""
        signed = f"{_b64(name.encode())}.{int(expires.timestamp())}"
        return f"{signed}.{_mac(self.keys[0], signed)}"

    def wanted(self, request: Request) -> FileWanted | Answer:
        """The copy that ``request`` may have: 404 for what we never signed, 410 for what has expired."""
        if request.method not in ("GET", "HEAD"):
            return Answer(405, headers={"Allow": "GET, HEAD"})
        token = _TOKEN.fullmatch(request.path.removeprefix("/files/"))
        if token is None or not self._signed(f"{token[1]}.{token[2]}", token[3]):
            return Answer(404, dump({"error": "no such file"}))
        if request.received_at.timestamp() > int(token[2]):
            return Answer(410, dump({"error": "the address has expired"}))
        return FileWanted(_unb64(token[1]).decode())

    def _signed(self, signed: str, mac: str) -> bool:
        return any(hmac.compare_digest(_mac(key, signed), mac) for key in self.keys)


def expiry(created_at: datetime, now: datetime) -> datetime:
    """When an address made ``now`` ends: at least 24 hours on, and the same for all tries within a day.

    So the signed body of a retry is the same, byte for byte, as long as a receiver may compare.
    """
    days = max(0, (now - created_at) // ADDRESS_LIVES)
    return (created_at + (days + 2) * ADDRESS_LIVES).astimezone(UTC).replace(microsecond=0)


def shown_name(name: str) -> str:
    """The last component of ``name``, controls made visible; a receiver may use it carelessly."""
    return _UNSHOWN.sub("_", re.split(r"[/\\]", name)[-1]) or "file"


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


def _mac(key: bytes, signed: str) -> str:
    return _b64(hmac.digest(key, signed.encode(), "sha256"))


def _b64(raw: bytes) -> str:
    return base64.urlsafe_b64encode(raw).rstrip(b"=").decode()


def _unb64(text: str) -> bytes:
    return base64.urlsafe_b64decode(text + "=" * (-len(text) % 4))
