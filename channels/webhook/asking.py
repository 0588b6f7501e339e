"""Replies for a receiver without an address of its own: it asks, by a long poll with a cursor."""

import hmac
import re
from collections.abc import Sequence
from typing import Any, Final

from bridge.channel import (
    Answer,
    Ask,
    ConfigError,
    Http,
    OutboundFile,
    Place,
    Request,
    WaitingPart,
)
from channels.webhook.files import Shelf, shown_name
from channels.webhook.inbound import UNAUTHORIZED, Webhook
from channels.webhook.replies import dump, reply
from channels.webhook.settings import WebhookCredentials, WebhookSettings
from channels.webhook.signature import Held, SharedKey

MOST_WAIT_SECONDS: Final = 25.0
ANSWER_BYTES: Final = 4_194_304  # an answer takes no further part past this
_CURSOR = re.compile(r"[0-9]{1,18}", re.ASCII)
_WAIT = re.compile(r"[0-9]{1,3}(\.[0-9]{1,6})?", re.ASCII)


class WebhookAsked(Webhook):
    """Answered by asking: ``GET …/replies?after=<cursor>&wait=<seconds>`` with a bearer token.

    Asking settles: parts up to ``after`` were received. So a file behind an address, which may be relative to
    the address that was asked, is to be fetched before its part is asked past.
    """

    def __init__(
        self, settings: WebhookSettings, credentials: WebhookCredentials, http: Http, place: Place
    ) -> None:
        token = credentials.ask_token.get_secret_value().encode()
        if not token:
            raise ConfigError(f"{place.account} has no way out: give it an ask_token, or set callback_url")
        super().__init__(
            settings, credentials, http, Shelf.of(place, [Held(SharedKey(token))], relative=True)
        )
        self._expected = b"Bearer " + token
        self._clock = http.clock

    def ask(self, request: Request) -> Ask | Answer:
        """401 without the token; 400 for a cursor or a wait that is no number of ours."""
        if request.method != "GET":
            return Answer(405, dump({"error": "use GET"}), headers={"Allow": "GET"})
        shown = request.headers.getall("Authorization", [])
        if len(shown) != 1 or not hmac.compare_digest(shown[0].encode(errors="replace"), self._expected):
            return UNAUTHORIZED
        after, wait = request.query.get("after", "0"), request.query.get("wait", "0")
        if not _CURSOR.fullmatch(after):
            return Answer(400, dump({"error": "after must be a cursor that an answer gave"}))
        if not _WAIT.fullmatch(wait) or float(wait) > MOST_WAIT_SECONDS:
            return Answer(400, dump({"error": f"wait must be 0 to {MOST_WAIT_SECONDS:g} seconds"}))
        return Ask(int(after), float(wait))

    async def told(self, ask: Ask, waiting: Sequence[WaitingPart]) -> Answer:
        """What waits, oldest first, up to a few MiB: the rest comes to the next asking."""
        replies: list[bytes] = []
        cursor, size = ask.after, 0
        for each in waiting:
            if replies and size > ANSWER_BYTES:
                break
            replies.append(dump({"cursor": each.cursor, **await self._data(each)}))
            cursor, size = each.cursor, size + len(replies[-1])
        body = b'{"replies":[' + b",".join(replies) + b'],"cursor":' + str(cursor).encode() + b"}"
        return Answer(200, body)

    async def _data(self, waiting: WaitingPart) -> dict[str, Any]:
        part = waiting.part
        if not isinstance(part, OutboundFile):
            return reply(part)
        try:
            attachment, _ = await self._shelf.attachment(part, self._clock.now())
        except OSError:
            attachment = {"id": part.client_id, "name": shown_name(part.name), "unavailable": True}
        return reply(part, [attachment])
