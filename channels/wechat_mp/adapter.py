"""The adapter: what the core asks of an Official Account, put together from this folder's parts."""

from collections.abc import Sequence
from contextlib import AbstractAsyncContextManager

from bridge.channel import (
    Answer,
    Claimed,
    ConfigError,
    FileWanted,
    Http,
    Identity,
    Incoming,
    OutboundFile,
    OutboundPart,
    Place,
    Reading,
    Refused,
    RemoteFile,
    Request,
    SendOutcome,
)
from bridge.channel.addresses import SignedFiles, derived_key
from channels.wechat_mp.api import Api
from channels.wechat_mp.content import Contents
from channels.wechat_mp.crypto import Seal, aes_key
from channels.wechat_mp.fetching import fetched
from channels.wechat_mp.requests import SILENT, Proof, read_request
from channels.wechat_mp.respond import respond
from channels.wechat_mp.send import TYPING_SECONDS, Sender
from channels.wechat_mp.settings import WechatMpCredentials, WechatMpSettings

HOLD_SECONDS = 4.5  # the platform hangs up after 5
REPEAT_SECONDS = 10.0  # it comes at 0, 5 and 10 s


class OfficialAccount:
    """An account that may only answer: Pushed, RepliesInResponse, Probes, FetchesFiles, ServesFiles."""

    hold_seconds = HOLD_SECONDS
    repeat_seconds = REPEAT_SECONDS

    def __init__(
        self, settings: WechatMpSettings, credentials: WechatMpCredentials, http: Http, place: Place
    ) -> None:
        secret = credentials.app_secret
        self._account = settings.original_id
        self._proof = proof(settings, credentials, place)
        self._api = Api(http, settings.base, settings.app_id, secret)
        self._files = SignedFiles([derived_key(secret.get_secret_value().encode(), "wechat_mp files v1")])
        self._contents = Contents(self._api, place, self._files)

    def read(self, request: Request, identity: Identity) -> Reading | Answer:
        return read_request(request, self._proof)

    def answer(self, reading: Reading, results: Sequence[Claimed]) -> Answer:
        return SILENT

    async def respond(self, reading: Reading, part: OutboundPart | OutboundFile) -> Answer | Refused:
        content = await self._contents.of(part)
        if isinstance(content, Refused):
            return content
        return respond(content, reading.note, part.to, self._proof, self._api.now())

    async def probe(self) -> Identity:
        """A question that needs the token and this machine's place on the whitelist, and changes nothing."""
        result, date = await self._api.get("/cgi-bin/getcallbackip")
        if not isinstance(result.body.get("ip_list"), list):
            raise result.failed()
        return Identity(self._account, platform_time=date)

    def fetch(self, file: RemoteFile, max_bytes: int) -> AbstractAsyncContextManager[Incoming]:
        return fetched(self._api, file, max_bytes)

    def file(self, request: Request) -> FileWanted | Answer:
        return self._files.wanted(request)


class OfficialAccountWithService(OfficialAccount):
    """One with customer service also writes by itself.

    Sends, SendsFiles, ShowsTyping, RenewsTyping, EndsTyping.
    """

    def __init__(
        self, settings: WechatMpSettings, credentials: WechatMpCredentials, http: Http, place: Place
    ) -> None:
        super().__init__(settings, credentials, http, place)
        self._sender = Sender(self._api, self._contents)

    async def send(self, part: OutboundPart) -> SendOutcome:
        return await self._sender.send(part)

    async def send_file(self, part: OutboundFile) -> SendOutcome:
        return await self._sender.send(part)

    async def typing(self, to: str, reply_to: str) -> None:
        await self._sender.typing(to)

    async def typing_over(self, to: str, reply_to: str) -> None:
        await self._sender.typing_over(to)

    @property
    def typing_seconds(self) -> float:
        return TYPING_SECONDS


def proof(settings: WechatMpSettings, credentials: WechatMpCredentials, place: Place) -> Proof:
    """What requests are verified by.

    Raises:
        ConfigError: the mode needs a key that is missing.
    """
    keys = [credentials.encoding_aes_key, credentials.previous_encoding_aes_key]
    known = [aes_key(key.get_secret_value()) for key in keys if key is not None]
    if settings.mode != "plaintext" and credentials.encoding_aes_key is None:
        raise ConfigError(f"{place.account} needs the credential encoding_aes_key: mode is {settings.mode}")
    seal = None if settings.mode == "plaintext" else Seal(settings.app_id, known)
    return Proof(settings.original_id, credentials.token.get_secret_value(), seal, settings.window_seconds)
