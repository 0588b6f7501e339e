"""Addresses of ours that give out files of replies. Each holds all there is to check: nothing is stored.

What follows ``/files/`` is the copy's name, the expiry and a MAC over both.
"""

import base64
import hmac
import json
import re
from collections.abc import Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from typing import Final

from bridge.channel.contract import Answer, FileWanted, Request

ADDRESS_LIVES: Final = timedelta(hours=24)
_TOKEN = re.compile(r"([A-Za-z0-9_-]{1,1400})\.([0-9]{1,12})\.([A-Za-z0-9_-]{43})", re.ASCII)
_UNSHOWN = re.compile(r"[\x00-\x1f\x7f-\x9f\u2028\u2029\ud800-\udfff]")


@dataclass(frozen=True, slots=True)
class SignedFiles:
    """Signs addresses, and verifies requests for them. ``keys`` have 32 bytes each: the first signs."""

    keys: Sequence[bytes] = field(repr=False)

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
            return _error(404, "no such file")
        if request.received_at.timestamp() > int(token[2]):
            return _error(410, "the address has expired")
        return FileWanted(_unb64(token[1]).decode())

    def _signed(self, signed: str, mac: str) -> bool:
        return any(hmac.compare_digest(_mac(key, signed), mac) for key in self.keys)


def derived_key(secret: bytes, purpose: str) -> bytes:
    """A key of 32 bytes for ``purpose``, from which ``secret`` cannot be told."""
    return hmac.digest(secret, f"turnbridge {purpose}".encode(), "sha256")


def expiry(created_at: datetime, now: datetime) -> datetime:
    """When an address made ``now`` ends: at least 24 hours on, and the same for all tries within a day.

    So the signed body of a retry is the same, byte for byte, as long as a receiver may compare.
    """
    days = max(0, (now - created_at) // ADDRESS_LIVES)
    return (created_at + (days + 2) * ADDRESS_LIVES).astimezone(UTC).replace(microsecond=0)


def shown_name(name: str) -> str:
    """The last component of ``name``, controls made visible; a receiver may use it carelessly."""
    return _UNSHOWN.sub("_", re.split(r"[/\\]", name)[-1]) or "file"


def _error(status: int, text: str) -> Answer:
    return Answer(status, json.dumps({"error": text}, separators=(",", ":")).encode())


def _mac(key: bytes, signed: str) -> str:
    return _b64(hmac.digest(key, signed.encode(), "sha256"))


def _b64(raw: bytes) -> str:
    return base64.urlsafe_b64encode(raw).rstrip(b"=").decode()


def _unb64(text: str) -> bytes:
    return base64.urlsafe_b64decode(text + "=" * (-len(text) % 4))
