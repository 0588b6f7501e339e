"""Replies posted to the account's callback address, signed as what comes in is."""

import asyncio
import hashlib
from datetime import datetime
from typing import Any, Final

from bridge.channel import (
    ChannelError,
    ConfigError,
    CredentialsError,
    Delivered,
    Http,
    HttpAnswer,
    OutboundFile,
    OutboundPart,
    OutcomeUnknownError,
    Place,
    Refused,
    SendOutcome,
    UnreachableError,
)
from channels.webhook.breaker import OPENS_AFTER, Breaker
from channels.webhook.files import Shelf, TooLargeInlineError
from channels.webhook.inbound import Webhook
from channels.webhook.replies import FAILED, FINISHED, REPLY, STARTED, event, place, reply
from channels.webhook.settings import WebhookCredentials, WebhookSettings
from channels.webhook.signature import current, sign_with

TIMEOUT_SECONDS: Final = 20.0
ANSWER_BYTES: Final = 65_536  # read and discarded; what is longer is cut
_LATER = frozenset({408, 425, 429, 503})
_MENDED_BY_PEOPLE = frozenset({401, 403, 404})
_BROKEN_OFF = frozenset({"failure", "interrupted", "setup"})  # notices in the place of an answer


class WebhookCallback(Webhook):
    """Sends by a POST whose ``webhook-id`` is the part's client id, the same on every try."""

    def __init__(
        self, settings: WebhookSettings, credentials: WebhookCredentials, http: Http, at: Place
    ) -> None:
        self._callback_keys = credentials.callback_keys()
        if not self._callback_keys:
            raise ConfigError(
                f"{at.account} has a callback_url and no credential callback_secrets, which sign its posts: "
                f"have them made: turnbridge channels login {at.account}"
            )
        super().__init__(settings, credentials, http, Shelf.of(at, self._callback_keys))
        self._url, self._breaker = settings.callback_url, Breaker()
        self._http = http.at(
            self._url, allow=settings.private_hosts, guarded=True, timeout_seconds=TIMEOUT_SECONDS
        )

    async def send(self, part: OutboundPart) -> SendOutcome:
        now = self._http.clock.now()
        return await self._post(part.client_id, REPLY, part.created_at or now, reply(part)) or Delivered()

    async def send_file(self, part: OutboundFile) -> SendOutcome:
        now = self._http.clock.now()
        try:
            attachment, keep_seconds = await self._shelf.attachment(part, now)
        except TooLargeInlineError as error:
            return Refused(str(error))
        except OSError:
            return Refused("the file is gone or cannot be read")
        refused = await self._post(part.client_id, REPLY, part.created_at or now, reply(part, [attachment]))
        return refused or Delivered(keep_file_seconds=keep_seconds)

    async def _post(
        self, webhook_id: str, kind: str, created_at: datetime, data: dict[str, Any]
    ) -> Refused | None:
        """One attempt, signed for this moment; the body is the same for all of them.

        Raises:
            UnreachableError, OutcomeUnknownError: no usable answer. CredentialsError: the endpoint is closed.
        """
        clock = self._http.clock
        if not self._breaker.admits(clock.monotonic()):
            raise UnreachableError(
                f"the callback failed {OPENS_AFTER} times in a row: it is tried once a minute"
            )
        try:
            refused = outcome(await self._request(webhook_id, event(kind, created_at, data)))
        except (UnreachableError, OutcomeUnknownError):
            self._breaker.failed(clock.monotonic())
            raise
        self._breaker.answered()
        return refused

    async def _request(self, webhook_id: str, body: bytes) -> HttpAnswer:
        now = self._http.clock.now()
        keys = current(self._callback_keys, now)
        return await self._http.request(
            "POST",
            self._url,
            body=body,
            content_type="application/json",
            headers=sign_with(keys, webhook_id, int(now.timestamp()), body),
            max_bytes=ANSWER_BYTES,
            cut=True,
        )


class WebhookCallbackWithProgress(WebhookCallback):
    """Also says when work on a message begins and ends, each under an id made of what it is about.

    What says that it begins is answered, or given up by whoever asks for it, before anything says that it is
    over.
    """

    def __init__(
        self, settings: WebhookSettings, credentials: WebhookCredentials, http: Http, at: Place
    ) -> None:
        super().__init__(settings, credentials, http, at)
        self._starting: dict[tuple[str, str], asyncio.Event] = {}

    async def typing(self, to: str, reply_to: str) -> None:
        """Post ``turn.started``."""
        over = self._starting[to, reply_to] = asyncio.Event()
        try:
            refused = await self._tell(STARTED, to, reply_to, f"{to}\n{reply_to}")
        finally:
            self._starting.pop((to, reply_to), None)
            over.set()
        if refused:
            raise ChannelError("the callback does not take turn.started")

    async def send(self, part: OutboundPart) -> SendOutcome:
        await self._ended(part, part.notice)
        return await super().send(part)

    async def send_file(self, part: OutboundFile) -> SendOutcome:
        await self._ended(part, "")
        return await super().send_file(part)

    async def _ended(self, part: OutboundPart | OutboundFile, notice: str) -> None:
        """Before a reply's first part, say how the turn ended; whether that is taken changes nothing.

        Raises:
            As ``send``: a callback that cannot be told this cannot be given the part either.
        """
        if part.part or not part.reply_to or (notice and notice not in _BROKEN_OFF):
            return
        if (starting := self._starting.get((part.to, part.reply_to))) is not None:
            await starting.wait()
        await self._tell(FAILED if notice else FINISHED, part.to, part.reply_to, part.reply_id)

    async def _tell(self, kind: str, to: str, reply_to: str, about: str) -> Refused | None:
        digest = hashlib.sha256(about.encode(errors="replace")).hexdigest()[:32]
        webhook_id = f"{kind.removeprefix('turn.')}_{digest}"
        return await self._post(webhook_id, kind, self._http.clock.now(), place(to, reply_to))


def outcome(answer: HttpAnswer) -> Refused | None:
    """``None`` for a success, else the final refusal.

    What people mend within minutes is tried again until the part is too old. A redirect is such a thing, and
    is never followed: its address is not the one that the operator named.

    Raises:
        UnreachableError, OutcomeUnknownError, CredentialsError: as each status means.
    """
    status = answer.status
    text = f"the callback answered with status {status}"
    if 200 <= status < 300:
        return None
    if status == 410:
        raise CredentialsError(f"{text}: it wants nothing any more; set another callback_url, or none")
    if status < 400 or status in _LATER | _MENDED_BY_PEOPLE:
        raise UnreachableError(text, answer.retry_after_seconds)
    if status < 500:
        return Refused(text, code=str(status))
    if answer.retry_after_seconds:
        raise UnreachableError(text, answer.retry_after_seconds)
    raise OutcomeUnknownError(text)
