"""Access tokens as the platform gives them out: two kinds, with lives of their own."""

import secrets
from collections import deque
from typing import Any

from bridge.channel.testing.fakes.wechat_mp.rules import RefusedError
from bridge.clock import Clock

LIFE_SECONDS = 7200.0
OVERLAP_SECONDS = 300.0
FORCE_APART_SECONDS = 30.0
FORCES_A_DAY = 20


class TokenOffice:
    """Each new token of the plain kind ends the one before; the stable one stays the same until it must go.

    ``life`` is what a call tells of a token's life in place of the truth.
    """

    def __init__(self, clock: Clock, app_id: str, app_secret: str) -> None:
        self._clock = clock
        self._app_id, self._app_secret = app_id, app_secret
        self._plain: dict[str, float] = {}
        self._stable: dict[str, float] = {}
        self._forced: deque[float] = deque(maxlen=FORCES_A_DAY)
        self.calls = 0
        self.forces = 0
        self.life: Any = None
        self.spoiled: set[str] = set()  # no longer good, although the stable call still gives them out

    def plain(self, app_id: object, secret: object) -> dict[str, Any]:
        self._known(app_id, secret)
        return self._given(self._renewed(self._plain))

    def stable(self, body: dict[str, Any]) -> dict[str, Any]:
        self._known(body.get("appid"), body.get("secret"))
        if body.get("grant_type") != "client_credential":
            raise RefusedError(40002, "invalid grant_type")
        now = self._clock.monotonic()
        good = [token for token, until in self._stable.items() if until - now > OVERLAP_SECONDS]
        if body.get("force_refresh") is True:
            self._force(now)
            return self._given(self._renewed(self._stable))
        return self._given(good[-1] if good else self._renewed(self._stable))

    def check(self, token: str) -> None:
        """Refuse a token that is not good."""
        until = {**self._plain, **self._stable}.get(token)
        if not token:
            raise RefusedError(41001, "access_token missing")
        if until is None or token in self.spoiled:
            raise RefusedError(40001, "invalid credential, access_token is invalid or not latest")
        if until <= self._clock.monotonic():
            raise RefusedError(42001, "access_token expired")

    def spoil(self) -> None:
        """Let every token that was given out be refused, while the stable call goes on giving it."""
        self.spoiled |= {*self._plain, *self._stable}

    def _force(self, now: float) -> None:
        often = len(self._forced) == FORCES_A_DAY and now - self._forced[0] < 86_400
        if often or (self._forced and now - self._forced[-1] < FORCE_APART_SECONDS):
            raise RefusedError(45011, "api minute-quota reach limit")
        self._forced.append(now)
        self.forces += 1

    def _renewed(self, kind: dict[str, float]) -> str:
        now = self._clock.monotonic()
        for token, until in kind.items():
            kind[token] = min(until, now + OVERLAP_SECONDS)
        token = f"fake_{secrets.token_urlsafe(96)}"
        kind[token] = now + LIFE_SECONDS
        return token

    def _given(self, token: str) -> dict[str, Any]:
        self.calls += 1
        until = {**self._plain, **self._stable}[token]
        life = int(until - self._clock.monotonic()) if self.life is None else self.life
        return {"access_token": token, "expires_in": life}

    def _known(self, app_id: object, secret: object) -> None:
        if app_id != self._app_id:
            raise RefusedError(40013, "invalid appid")
        if secret != self._app_secret:
            raise RefusedError(40125, "invalid appsecret")
