"""The account's access token, in its stable form: asking again does not end the token that others use.

Source: https://developers.weixin.qq.com/doc/offiaccount/Basic_Information/getStableAccessToken.html
"""

import asyncio
import math
from collections import deque

from pydantic import SecretStr

from bridge.channel import CredentialsError, Http, OutcomeUnknownError, UnreachableError
from channels.wechat_mp import codes
from channels.wechat_mp.answers import judge

_PATH = "/cgi-bin/stable_token"
_LIFE_SECONDS = 7200.0  # of a token whose life is not told
_EARLY_SECONDS = 300.0  # both the old and the new one are good that long
_FORCE_APART_SECONDS = 30.0
_FORCES_A_DAY = 20
_SPENT_SECONDS = 300.0  # after these it is tried again, as the platform may take its token by then
_DAY_SECONDS = 86_400.0


class Tokens:
    """One token, fetched by one caller at a time and kept as long as it is good."""

    def __init__(self, http: Http, app_id: str, secret: SecretStr) -> None:
        self._http = http
        self._app_id = app_id
        self._secret = secret
        self._lock = asyncio.Lock()
        self._token = ""
        self._until = 0.0
        self._forced: deque[float] = deque(maxlen=_FORCES_A_DAY)

    async def get(self) -> str:
        """A good token.

        Raises:
            CredentialsError: the account is refused. UnreachableError: no answer, try again.
        """
        async with self._lock:
            if not self._token or self._now() >= self._until:
                await self._fetch(force=False)
            return self._token

    async def other_than(self, refused: str) -> str:
        """A good token in place of ``refused``, which the platform did not take; errors as ``get``.

        Where the platform still gives out that one, it is forced to make another, as often as it allows.
        """
        async with self._lock:
            if self._token == refused:
                await self._fetch(force=False)
            if self._token == refused:
                self._may_force()
                await self._fetch(force=True)
            return self._token

    def _may_force(self) -> None:
        now = self._now()
        apart = now - self._forced[-1] if self._forced else math.inf
        of_today = len(self._forced) == _FORCES_A_DAY and now - self._forced[0] < _DAY_SECONDS
        wait = self._forced[0] + _DAY_SECONDS - now if of_today else _FORCE_APART_SECONDS - apart
        if wait > 0:
            wait = min(wait, _SPENT_SECONDS)
            raise UnreachableError("the platform does not take its own access token", wait)
        self._forced.append(now)

    async def _fetch(self, *, force: bool) -> None:
        body = {
            "grant_type": "client_credential",
            "appid": self._app_id,
            "secret": self._secret.get_secret_value(),
            "force_refresh": force,
        }
        try:
            result = judge(await self._http.post(_PATH, body), self._http.clock.now())
        except OutcomeUnknownError as error:  # asking twice does no harm
            raise UnreachableError(str(error)) from None
        if result.code == codes.WRONG_SECRET:
            raise CredentialsError(codes.account_reason(codes.WRONG_SECRET, ""))
        token = result.body.get("access_token")
        if not isinstance(token, str) or not _is_token(token):
            raise UnreachableError(f"{result.host}: no access token: {result.reason or 'none came'}")
        life = life_seconds(result.body.get("expires_in"))
        self._token, self._until = token, self._now() + max(life - _EARLY_SECONDS, life / 2)

    def _now(self) -> float:
        return self._http.clock.monotonic()


def life_seconds(value: object) -> float:
    """How long a token lives, told as a number or as digits; what makes no sense is two hours."""
    try:
        seconds = float(value) if isinstance(value, int | float | str) else 0.0
    except (ValueError, OverflowError):
        return _LIFE_SECONDS
    return seconds if 0 < seconds <= _LIFE_SECONDS else _LIFE_SECONDS


def _is_token(token: str) -> bool:
    return token.isascii() and token.isprintable() and token != "" and " " not in token
