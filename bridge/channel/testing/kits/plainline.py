"""Plainline's adapter and kit: the smallest channel that there can be, and one without any idempotency.

It is registered nowhere: nobody can chat on it. Give ``PlainlineKit`` to a check of the suite, or its
``spec`` to an account, to see what becomes of a line that may have arrived.
"""

from typing import Annotated, Any, Final, Self

from pydantic import BaseModel, Field, SecretStr, ValidationError

from bridge.channel import (
    Batch,
    ChannelCredentials,
    ChannelSettings,
    ChannelSpec,
    Delivered,
    Http,
    Inbound,
    Limit,
    OutboundPart,
    Place,
    Refused,
    SendOutcome,
    Unreadable,
    failure,
)
from bridge.channel.markdown import plain
from bridge.channel.testing.fakes.plainline import FakePlainline
from bridge.channel.testing.kit import KitMessage, KitSent, Trouble
from bridge.channel.text import defuse_mentions


class PlainlineSettings(ChannelSettings):
    base: str = "https://plainline.example"
    poll_seconds: Annotated[float, Field(ge=0, le=50)] = 25.0


class PlainlineCredentials(ChannelCredentials):
    token: SecretStr


class Line(BaseModel):
    sender: str
    chat: str
    text: str
    group: bool = False


class Plainline:
    """Polls and sends. A line's id is its place among all."""

    def __init__(
        self, settings: PlainlineSettings, credentials: PlainlineCredentials, http: Http, place: Place
    ) -> None:
        self._settings = settings
        self._http = http.at(settings.base, bearer=credentials.token)

    async def receive(self, checkpoint: str) -> Batch:
        after = int(checkpoint or 0)
        answer = await self._http.get("/lines", {"after": after, "wait": self._settings.poll_seconds})
        if answer.status != 200 or not isinstance(answer.body, list):
            raise failure(answer)
        items = [to_item(line, f"{place}") for place, line in enumerate(answer.body, after + 1)]
        return Batch(items, checkpoint=f"{after + len(items)}")

    async def send(self, part: OutboundPart) -> SendOutcome:
        answer = await self._http.post("/lines", {"to": part.to, "text": part.text})
        match answer.status:
            case 200 if answer.fields().get("taken") is True:
                return Delivered()
            case 400:
                return Refused("plainline refuses this line", code="400")
        raise failure(answer)


def to_item(value: object, message_id: str) -> Inbound | Unreadable:
    """Pure; one bad line spoils no batch."""
    try:
        line = Line.model_validate(value)
    except ValidationError:
        return Unreadable("a line of an unknown shape", message_id)
    return Inbound(message_id, line.sender, line.chat, line.chat, text=line.text, group=line.group)


SPEC: Final = ChannelSpec(
    name="plainline",
    title=lambda settings: "Plainline",
    settings=PlainlineSettings,
    credentials=PlainlineCredentials,
    create=Plainline,
    identity=lambda settings, credentials: (settings.base,),
    text_limit=Limit(1000),
    idempotent_seconds=0,
    render=lambda markdown: defuse_mentions(plain(markdown)),
)


class PlainlineKit:
    """Kit and PollsKit."""

    def __init__(self) -> None:
        self.fake = FakePlainline()

    @property
    def spec(self) -> ChannelSpec:
        return SPEC

    async def __aenter__(self) -> Self:
        await self.fake.__aenter__()
        return self

    async def __aexit__(self, *exc: object) -> None:
        await self.fake.__aexit__(*exc)

    @property
    def settings(self) -> dict[str, Any]:
        return {"base": self.fake.base, "poll_seconds": 0.05}

    @property
    def credentials(self) -> dict[str, Any]:
        return {"token": self.fake.token}

    def person(self, n: int) -> str:
        return f"person{n}"

    def chat(self, n: int, group: bool = False) -> str:
        return f"{'group' if group else 'chat'}{n}"

    def sent(self) -> list[KitSent]:
        return [KitSent("", text, to=to) for to, text in self.fake.shown]

    def trouble(self, *troubles: Trouble) -> None:
        self.fake.troubles.extend(troubles)

    def supports(self, trouble: Trouble) -> bool:
        return True

    def arrive(self, message: KitMessage) -> None:
        self.fake.add(
            {"sender": message.sender, "chat": message.chat, "text": message.text, "group": message.group}
        )

    def arrive_unreadable(self) -> None:
        self.fake.add({"sender": None})
