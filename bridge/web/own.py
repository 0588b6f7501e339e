"""What the daemon tells of itself: that it lives, whether it is ready, and what it has counted.

``/healthz`` and ``/readyz`` tell how many accounts are in which state, and no names. ``/metrics`` names them:
it is told on the Unix socket, which only the same user opens, and elsewhere to whoever shows the token.
"""

from __future__ import annotations

import hmac
import json
import secrets
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass
from typing import Literal

from bridge.channel import Answer
from bridge.errors import BridgeError
from bridge.logs import get_logger, register_secret
from bridge.paths import Home, read_private, write_private
from bridge.web.body import refusal

SHORTEST_TOKEN = 16
GOOD = frozenset({"connected", "disabled"})

log = get_logger(__name__)

_NOT_FOUND = refusal(404, "not_found")
_UNAUTHORIZED = refusal(401, "unauthorized", **{"WWW-Authenticate": "Bearer"})

States = Callable[[], Mapping[str, int] | None]
"""How many accounts are in which state; None while they are not known, as before the first plan."""


@dataclass(frozen=True, slots=True)
class Own:
    """``metrics`` makes their text. ``access``: ``token`` with "" as the ``token`` is nobody's."""

    states: States
    metrics: Callable[[], Awaitable[Answer]]
    access: Literal["off", "token", "open"]
    token: str = ""

    async def answer(self, path: str, headers: Mapping[str, str]) -> Answer:
        """To a request for anything that is no account's."""
        match path:
            case "/healthz" | "/readyz":
                return self._health(path)
            case "/metrics" if self.access != "off":
                return await self.metrics() if self._may_read(headers) else _UNAUTHORIZED
            case _:
                return _NOT_FOUND

    def _health(self, path: str) -> Answer:
        """``/healthz``: the process serves. ``/readyz``: and each account that is not off has contact."""
        states = self.states()
        ready = states is not None and not any(count for state, count in states.items() if state not in GOOD)
        body = json.dumps({"ok": True, "ready": ready, "accounts": dict(states or {})}).encode()
        return Answer(200 if ready or path == "/healthz" else 503, body)

    def _may_read(self, headers: Mapping[str, str]) -> bool:
        if self.access == "open":
            return True
        scheme, _, shown = headers.get("Authorization", "").partition(" ")
        same = hmac.compare_digest(shown.strip().encode("utf-8", "surrogateescape"), self.token.encode())
        return bool(self.token) and scheme.lower() == "bearer" and same


def metrics_token(home: Home) -> str:
    """What the home's private file holds, which is made where there is none; "" where it cannot be used."""
    path = home.metrics_token
    try:
        home.private_dir(path.parent)
        if not path.exists():
            write_private(path, f"{secrets.token_urlsafe(32)}\n".encode())
        token = read_private(path).decode("ascii", "replace").strip()
    except BridgeError as error:
        log.warning("metrics.no_token", reason=str(error))
        return ""
    if len(token) < SHORTEST_TOKEN:
        log.warning("metrics.no_token", reason=f"{path} is too short: remove it, and a new one is made")
        return ""
    register_secret(token)
    return token
