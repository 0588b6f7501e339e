"""Replies posted to the account's callback address, signed as what comes in is."""

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
from channels.webhook.files import Shelf, TooLargeInlineError
from channels.webhook.inbound import Webhook
from channels.webhook.replies import REPLY, STARTED, event, place, reply
from channels.webhook.settings import WebhookCredentials, WebhookSettings
from channels.webhook.signature import sign_with

TIMEOUT_SECONDS: Final = 20.0
ANSWER_BYTES: Final = 65_536  # read and discarded; what is longer is cut
_LATER = frozenset({408, 425, 429, 503})
_MENDED_BY_PEOPLE = frozenset({401, 403, 404})


class WebhookCallback(Webhook):
    """Sends by a POST whose ``webhook-id`` is the part's client id, the same on every try."""

    def __init__(
        self, settings: WebhookSettings, credentials: WebhookCredentials, http: Http, at: Place
    ) -> None:
        self._callback_keys = credentials.callback_keys()
        if not self._callback_keys:
            raise ConfigError(f"webhook:{at.account} has a callback_url and no credential callback_secrets")
        shelf = Shelf.of(at, [key.raw for key in self._callback_keys])
        super().__init__(settings, credentials, http, shelf)
        self._url = settings.callback_url
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
        """One signed attempt, signed for this moment; the body is the same for all of them.

        Raises:
            UnreachableError, OutcomeUnknownError: no usable answer. CredentialsError: the endpoint is closed.
        """
        body = event(kind, created_at, data)
        headers = sign_with(self._callback_keys, webhook_id, int(self._http.clock.now().timestamp()), body)
        answer = await self._http.request(
            "POST",
            self._url,
            body=body,
            content_type="application/json",
            headers=headers,
            max_bytes=ANSWER_BYTES,
            cut=True,
        )
        return outcome(answer)


class WebhookCallbackWithProgress(WebhookCallback):
    """Also says when work on a message begins."""

    async def typing(self, to: str, reply_to: str) -> None:
        """Post ``turn.started``. Its id is made of what it is about, so that it too is said once."""
        about = hashlib.sha256(f"{to}\n{reply_to}".encode(errors="replace")).hexdigest()[:32]
        if await self._post(f"started_{about}", STARTED, self._http.clock.now(), place(to, reply_to)):
            raise ChannelError("the callback does not take turn.started")


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
