"""Pigeon, a long-polled bot API that does not exist: an adapter as somebody else would write it."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Annotated

from pydantic import BaseModel, Field, SecretStr, ValidationError

from bridge.channel import (
    Batch,
    ChannelCredentials,
    ChannelSettings,
    ChannelSpec,
    Delivered,
    FileKind,
    Http,
    Inbound,
    Incoming,
    Limit,
    OutboundPart,
    Place,
    Refused,
    RemoteFile,
    SendOutcome,
    Unit,
    UnreachableError,
    Unreadable,
    failure,
)
from bridge.channel.markdown import plain
from bridge.channel.text import defuse_mentions


class PigeonSettings(ChannelSettings):
    """One table ``[channels.pigeon.<account>]``."""

    base: str = "https://api.pigeon.example"
    poll_seconds: Annotated[float, Field(ge=0, le=50)] = 25.0  # the platform hangs up after 50


class PigeonCredentials(ChannelCredentials):
    token: SecretStr


class File(BaseModel):
    id: str
    name: str
    mime: str
    size: int


class Update(BaseModel):
    id: int
    sender: str
    chat: str
    text: str = ""
    group: bool = False
    files: tuple[File, ...] = ()


class Pigeon:
    """Polls, sends texts, fetches files."""

    def __init__(
        self, settings: PigeonSettings, credentials: PigeonCredentials, http: Http, place: Place
    ) -> None:
        self._settings = settings
        self._http = http.at(settings.base, bearer=credentials.token)

    async def receive(self, checkpoint: str) -> Batch:
        wait = self._settings.poll_seconds
        answer = await self._http.get("/bot/updates", {"after": checkpoint or "0", "wait": wait})
        if answer.status != 200:
            raise failure(answer)
        fields = answer.fields()
        return Batch([to_item(update) for update in fields["updates"]], checkpoint=str(fields["next"]))

    async def send(self, part: OutboundPart) -> SendOutcome:
        wire = {"chat": part.to, "text": part.text, "nonce": part.client_id, "answers": part.reply_to}
        answer = await self._http.post("/bot/messages", wire)
        match answer.status:
            case 200 if answer.fields().get("id"):
                return Delivered(answer.fields()["id"])
            case 400:
                return Refused("pigeon refuses this message", code=str(answer.fields().get("error")))
        raise failure(answer)

    @asynccontextmanager
    async def fetch(self, file: RemoteFile, max_bytes: int) -> AsyncIterator[Incoming]:
        async with self._http.stream(f"/bot/files/{file.key}") as stream:
            if stream.status != 200:
                raise UnreachableError(f"a file's status is {stream.status}")
            yield Incoming(stream.chunks(max_bytes), file.name, stream.mime, stream.size)


def to_item(value: object) -> Inbound | Unreadable:
    """Pure, so tested on recorded updates; one bad item spoils no batch."""
    try:
        update = Update.model_validate(value)
    except ValidationError:
        return Unreadable("an update of an unknown shape")
    return Inbound(
        message_id=str(update.id),
        sender=update.sender,
        chat=update.chat,
        to=update.chat,
        reply_to=str(update.id),
        text=update.text,
        files=tuple(
            RemoteFile(each.id, FileKind.FILE, each.name, each.mime, each.size) for each in update.files
        ),
        group=update.group,
    )


def render(markdown: str) -> str:
    return defuse_mentions(plain(markdown))


SPEC = ChannelSpec(
    name="pigeon",
    title=lambda settings: "Pigeon",
    settings=PigeonSettings,
    credentials=PigeonCredentials,
    create=Pigeon,
    identity=lambda settings, credentials: (settings.base,),
    text_limit=Limit(4096, Unit.UTF16),
    idempotent_seconds=600,
    render=render,
)
