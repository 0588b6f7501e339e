"""Sending: one message by the form that the platform takes, every form under the same ``uuid``.

Source: https://open.feishu.cn/document/server-docs/im-v1/message/reply and …/message/create
"""

import json
from collections.abc import Iterator
from dataclasses import dataclass

from bridge.channel import Delivered, OutboundFile, OutboundPart, Refused, SendOutcome, Withdrawn
from bridge.channel.markdown import plain
from bridge.channel.text import clean
from channels.feishu import buttons, codes, rich
from channels.feishu.api import NO_CODE, Api, Result, segment
from channels.feishu.inline import words
from channels.feishu.mentions import defused
from channels.feishu.wire import text_of

_MESSAGES = "/open-apis/im/v1/messages"
_POST_BYTES = 30_000  # of the request, in which a rich text's content is text once more
_FRAME_BYTES = 400  # of it, for all but the content


@dataclass(frozen=True, slots=True)
class Form:
    """A message's type and content as the platform takes them."""

    kind: str
    content: str

    @classmethod
    def of(cls, kind: str, value: object) -> "Form":
        return cls(kind, json.dumps(value, ensure_ascii=False, separators=(",", ":")))

    @property
    def request_bytes(self) -> int:
        """At most so much is sent."""
        return len(json.dumps(self.content, ensure_ascii=False).encode()) + _FRAME_BYTES


@dataclass(frozen=True, slots=True)
class Target:
    """Where a message goes. ``reply_to`` empty: unprompted, or what it answers is gone."""

    chat: str
    chat_kind: str
    direct: bool
    reply_to: str = ""
    thread: bool = False


def target(to: str, reply_to: str) -> Target | None:
    """``p2p:oc_…`` and ``group:oc_…`` from ``read``, or a bare id as an operator types it; else None."""
    mark, _, rest = to.rpartition(":")
    kind = {"ou_": "open_id", "on_": "union_id", "oc_": "chat_id"}.get(rest[:3], "")
    if not kind or mark not in ("", "p2p", "group"):
        return None
    message_id, _, thread = reply_to.partition(";")
    direct = mark == "p2p" or kind != "chat_id"
    return Target(rest, kind, direct, message_id, thread == "thread")


def forms_of(part: OutboundPart) -> Iterator[Form]:
    """The forms for a part, best first: a card where it has buttons."""
    if part.choices:
        yield Form.of("interactive", buttons.card(clean(part.text), part.to, part.choices))
    yield from plain_forms(part.text) if part.notice else text_forms(part.text)


def text_forms(markdown: str) -> Iterator[Form]:
    """The forms for what the agent says, best first: rich text where that shows more, and plain text."""
    markdown = clean(markdown)
    found = rich.rows(markdown)
    if rich.gains(found):
        yield from _post(found)
    yield from plain_forms(plain(markdown))


def plain_forms(text: str) -> Iterator[Form]:
    """As a text, and as a rich text without markup for the case that something in it is taken for such."""
    text = clean(text)
    yield _text(text)
    yield from _post([[words(line)] for line in text.split("\n")])


def _text(text: str) -> Form:
    return Form.of("text", {"text": defused(text)})


def _post(rows: list[rich.Row]) -> Iterator[Form]:
    """The rows as a message, unless it is over the platform's limit."""
    content = [
        [{**each, "text": defused(each["text"])} if "text" in each else each for each in row] for row in rows
    ]
    form = Form.of("post", {"zh_cn": {"title": "", "content": content}})
    if form.request_bytes <= _POST_BYTES:
        yield form


class Sender:
    """Sends forms through ``api``. ``post_recalled``: in groups a reply outlives what it answers."""

    def __init__(self, api: Api, post_recalled: bool) -> None:
        self._api = api
        self._post_recalled = post_recalled

    async def text(self, part: OutboundPart) -> SendOutcome:
        outcome: SendOutcome | Result = Refused("there is nothing to send")
        for form in forms_of(part):
            outcome = await self.form(part, form)
            if not isinstance(outcome, Result):
                return outcome
        return refused(outcome) if isinstance(outcome, Result) else outcome

    async def form(self, part: OutboundPart | OutboundFile, form: Form) -> SendOutcome | Result:
        """Send one form; a ``Result`` says that another form may be taken.

        Raises:
            UnreachableError: not accepted. OutcomeUnknownError: maybe. CredentialsError: the app is refused.
        """
        where = target(part.to, part.reply_to)
        if where is None:
            return Refused("the recipient is no Feishu id: use one that begins with oc_ or ou_")
        result = await self._place(where, form, part.client_id)
        if result.code == 0:
            return Delivered(text_of(result.data, "message_id"))
        if result.code in codes.GONE and where.reply_to:
            return Withdrawn(str(result.code))
        return result if result.code in codes.OTHER_FORM else refused(result)

    async def edit(self, message_id: str, text: str) -> None:
        """Raises ChannelError; the ability tells of which kind."""
        form = _text(clean(text))
        body = {"msg_type": form.kind, "content": form.content}
        (await self._api.put(f"{_MESSAGES}/{segment(message_id)}", body)).checked()

    async def _place(self, where: Target, form: Form, uuid: str) -> Result:
        """As a reply in the thread, as a reply, as a message of its own: the first that this place allows."""
        if not where.reply_to:
            return await self._create(where, form, uuid)
        result = await self._reply(where.reply_to, form, uuid, thread=where.thread)
        if result.code in codes.NO_THREAD and where.thread:
            result = await self._reply(where.reply_to, form, uuid, thread=False)
        stays = result.code in codes.GONE and self._post_recalled and not where.direct
        if stays or result.code in codes.NO_THREAD:
            result = await self._create(where, form, uuid)
        return result

    async def _reply(self, message_id: str, form: Form, uuid: str, *, thread: bool) -> Result:
        body = {"msg_type": form.kind, "content": form.content, "uuid": uuid, "reply_in_thread": thread}
        return await self._api.post(f"{_MESSAGES}/{segment(message_id)}/reply", body)

    async def _create(self, where: Target, form: Form, uuid: str) -> Result:
        body = {"receive_id": where.chat, "msg_type": form.kind, "content": form.content, "uuid": uuid}
        return await self._api.post(_MESSAGES, body, {"receive_id_type": where.chat_kind})


def refused(result: Result) -> Refused:
    """Without a code it may be anybody's, a proxy's for example, and shows no contact with the platform."""
    return Refused(f"Feishu: {result.reason}", "" if result.code == NO_CODE else str(result.code))
