"""What both forms of the channel share: verified messages in, their files, and addresses for files out."""

from collections.abc import Mapping, Sequence
from contextlib import AbstractAsyncContextManager
from typing import Final

from bridge.channel import (
    Answer,
    Claimed,
    Edited,
    FileWanted,
    Http,
    Identity,
    Incoming,
    Reading,
    RemoteFile,
    Request,
)
from channels.webhook.attached import SemanticError
from channels.webhook.fetching import Fetcher, may_fetch
from channels.webhook.files import Shelf
from channels.webhook.replies import dump
from channels.webhook.senders import verifier
from channels.webhook.settings import WebhookCredentials, WebhookSettings
from channels.webhook.wire import MalformedError, read_event

UNAUTHORIZED: Final = Answer(401, dump({"error": "unauthorized"}))  # one for every reason

_STATUS: Final[Mapping[Claimed, int]] = {
    Claimed.ACCEPTED: 202,
    Claimed.BUSY: 202,
    Claimed.IGNORED: 202,
    Claimed.DUPLICATE: 200,
    Claimed.CONFLICT: 409,
}


class Webhook:
    """Pushed, fetches files, serves files. How replies leave is for the classes made of it."""

    def __init__(
        self, settings: WebhookSettings, credentials: WebhookCredentials, http: Http, shelf: Shelf
    ) -> None:
        self._verify = verifier(settings.signing, credentials.inbound_keys(), shelf.place.account)
        self._may_fetch = may_fetch(settings)
        self._fetcher = Fetcher(settings, credentials, http)
        self._shelf = shelf

    def read(self, request: Request, identity: Identity) -> Reading | Answer:
        """Verify, then parse: headers, time, signature, type, JSON, meaning, in this order."""
        if request.path not in ("", "/"):
            return _error(404, "no such route")
        if request.method != "POST":
            return Answer(405, dump({"error": "use POST"}), headers={"Allow": "POST"})
        signed = self._verify(request.headers, request.body, request.received_at)
        if signed is None:
            return UNAUTHORIZED
        if reason := _unsupported(request):
            return _error(415, reason)
        try:
            item = read_event(request.body, signed, self._may_fetch)
        except MalformedError as error:
            return _error(400, str(error))
        except SemanticError as error:
            return _error(422, str(error))
        note = signed.webhook_id or (item.message.message_id if isinstance(item, Edited) else item.message_id)
        return Reading((item,), platform_time=signed.sent_at, note=note)

    def answer(self, reading: Reading, results: Sequence[Claimed]) -> Answer:
        """202 accepted, 200 seen before, 409 seen before with another body."""
        result = results[0]
        if result is Claimed.CONFLICT:
            return _error(409, "this webhook-id was received with another body")
        fields: dict[str, object] = {"accepted": True, "id": reading.note}
        if result is not Claimed.ACCEPTED:
            fields[result.value] = True
        return Answer(_STATUS[result], dump(fields))

    def fetch(self, file: RemoteFile, max_bytes: int) -> AbstractAsyncContextManager[Incoming]:
        return self._fetcher.open(file, max_bytes)

    def file(self, request: Request) -> FileWanted | Answer:
        return self._shelf.wanted(request)


def _unsupported(request: Request) -> str:
    """Why the body cannot be read although it is rightly signed, or ""."""
    if request.headers.get("Content-Encoding", "identity").strip().lower() != "identity":
        return "send the body without a content encoding"
    mime = request.headers.get("Content-Type", "").partition(";")[0].strip().lower()
    if mime != "application/json" and not (mime.startswith("application/") and mime.endswith("+json")):
        return "the content type must be application/json"
    return ""


def _error(status: int, text: str) -> Answer:
    return Answer(status, dump({"error": text}))
