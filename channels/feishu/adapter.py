"""The adapter: what the core asks of Feishu, put together from this folder's parts."""

from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager

from bridge.channel import (
    Answer,
    ChannelError,
    Claimed,
    Context,
    Fault,
    Http,
    Identity,
    Incoming,
    OutboundFile,
    OutboundPart,
    Place,
    Reading,
    RemoteFile,
    Request,
    SendOutcome,
)
from channels.feishu.api import Api, segment
from channels.feishu.events import Proof, acknowledge, read_request
from channels.feishu.mentions import plain_name
from channels.feishu.permissions import lacking
from channels.feishu.reactions import Reactions
from channels.feishu.resolve import Resolver
from channels.feishu.send import Sender
from channels.feishu.send_file import FileSender
from channels.feishu.settings import FeishuCredentials, FeishuSettings
from channels.feishu.wire import file_parts, text_of


class Feishu:
    """One bot, pushed to over HTTP.

    Pushed, Probes, Diagnoses, Sends, EditsMessages, SendsFiles, FetchesFiles, ResolvesReferences.
    """

    def __init__(
        self, settings: FeishuSettings, credentials: FeishuCredentials, http: Http, place: Place
    ) -> None:
        self._proof = Proof.of(settings.app_id, credentials)
        self._api = Api(http.at(settings.base), settings.app_id, credentials.app_secret, http.clock.monotonic)
        self._sender = Sender(self._api, post_recalled=settings.recalled == "post")
        self._files = FileSender(self._api, self._sender)
        self._typing = settings.typing
        self._resolver = Resolver(self._api, settings.app_id, http.clock.monotonic)

    def read(self, request: Request, identity: Identity) -> Reading | Answer:
        return read_request(request, identity, self._proof)

    def answer(self, reading: Reading, results: Sequence[Claimed]) -> Answer:
        return acknowledge(reading, results)

    async def probe(self) -> Identity:
        """Who the bot is; the answer has it beside ``code``, not under ``data``."""
        result = (await self._api.get("/open-apis/bot/v3/info")).checked()
        bot = result.body.get("bot")
        if not isinstance(bot, dict) or not (open_id := text_of(bot, "open_id")):
            raise ChannelError("the app has no bot: switch its bot on in the console and publish a version")
        return Identity(open_id, plain_name(text_of(bot, "app_name")), result.answer.date)

    async def diagnose(self) -> Sequence[Fault]:
        return await lacking(self._api, typing=self._typing)

    async def send(self, part: OutboundPart) -> SendOutcome:
        return await self._sender.text(part)

    async def send_file(self, part: OutboundFile) -> SendOutcome:
        return await self._files.send(part)

    async def edit(self, to: str, platform_id: str, text: str) -> None:
        await self._sender.edit(platform_id, text)

    @asynccontextmanager
    async def fetch(self, file: RemoteFile, max_bytes: int) -> AsyncIterator[Incoming]:
        try:
            message_id, key, kind = file_parts(file.key)
        except (ValueError, TypeError):
            raise ChannelError("the file's key is not one of this channel") from None
        path = f"/open-apis/im/v1/messages/{segment(message_id)}/resources/{segment(key)}"
        async with self._api.download(path, {"type": kind}) as stream:
            yield Incoming(stream.chunks(max_bytes), stream.name or file.name, stream.mime, stream.size)

    async def resolve(self, message_id: str, reference: str) -> Context:
        return await self._resolver.resolve(message_id, reference)


class FeishuWithTyping(Feishu):
    """One that shows by a reaction that work goes on: ShowsTyping, EndsTyping."""

    def __init__(
        self, settings: FeishuSettings, credentials: FeishuCredentials, http: Http, place: Place
    ) -> None:
        super().__init__(settings, credentials, http, place)
        self._reactions = Reactions(self._api, settings.app_id)

    async def typing(self, to: str, reply_to: str) -> None:
        await self._reactions.show(reply_to)

    async def typing_over(self, to: str, reply_to: str) -> None:
        await self._reactions.take_away(reply_to)


def create(settings: FeishuSettings, credentials: FeishuCredentials, http: Http, place: Place) -> Feishu:
    """The bot as the settings have it."""
    form = FeishuWithTyping if settings.typing else Feishu
    return form(settings, credentials, http, place)
