"""What the platform knows: people, chats, messages, uploads and what the bot sent."""

import itertools
import json
from dataclasses import dataclass, field
from typing import Any, Final

from bridge.clock import Clock, SystemClock, unix_ms

UUID_SECONDS: Final = 3600.0
BOT: Final = "ou_fake_bot"
OWNER: Final = "ou_fake_owner"
STRANGER: Final = "ou_fake_stranger"


@dataclass(frozen=True, slots=True)
class Upload:
    """A file on the platform. ``kind`` is ``image`` or the ``file_type`` that it was uploaded as."""

    key: str
    kind: str
    name: str
    mime: str
    data: bytes = field(repr=False)
    ms: int = 0  # how long it lasts, as it was told


@dataclass(slots=True)
class Chat:
    chat_id: str
    group: bool
    person: str = ""  # of a direct chat
    bot_inside: bool = True
    takes_threads: bool = True


@dataclass(slots=True)
class Message:
    """``content`` is JSON as text. ``upper`` names the bundle that a forwarded message lies in.

    ``parent`` is what it replies to and ``root`` the first of those replies, or of the thread. ``card`` is a
    card as its sender wrote it, of which ``content`` is a digest. ``update_ms`` is 0 until it is edited.
    """

    message_id: str
    chat: Chat
    sender: str
    kind: str
    content: str
    create_ms: int
    sender_type: str = "user"
    parent: str = ""
    root: str = ""
    thread: str = ""
    upper: str = ""
    card: str = ""
    update_ms: int = 0
    recalled: bool = False
    mentions: list[dict[str, Any]] = field(default_factory=list)
    edits: int = 0
    reactions: dict[str, str] = field(default_factory=dict)  # emoji of the bot's, by their ids


@dataclass(frozen=True, slots=True)
class Button:
    """A button of a card, and the value that pressing it tells the bot."""

    label: str
    value: dict[str, Any]


@dataclass(frozen=True, slots=True)
class Sent:
    """What the bot's side of a chat shows. ``mentions`` are those whom it notified."""

    message_id: str
    uuid: str
    kind: str
    text: str
    file: Upload | None
    reply_to: str
    chat_id: str
    in_thread: bool
    mentions: tuple[str, ...]
    buttons: tuple[Button, ...] = ()


class World:
    """The state behind the interface. Ids count up, so that a test can name them."""

    def __init__(self, clock: Clock | None = None) -> None:
        self.clock = clock or SystemClock()
        self.people: set[str] = {OWNER, STRANGER}
        self.chats: dict[str, Chat] = {}
        self.messages: dict[str, Message] = {}
        self.uploads: dict[str, Upload] = {}
        self.sent: list[Sent] = []
        self.reacted: list[tuple[str, str]] = []  # message and emoji of every reaction there ever was
        self._uuids: dict[str, tuple[str, float]] = {}
        # A later run must not give out the ids of an earlier one, whose messages the bot remembers.
        self._run = f"{unix_ms(self.clock.now()):x}"
        self._count = itertools.count(1)

    def new_id(self, prefix: str) -> str:
        return f"{prefix}_fake_{self._run}_{next(self._count)}"

    def direct(self, person: str) -> Chat:
        """The direct chat of ``person``, who becomes known by it."""
        self.people.add(person)
        chat_id = f"oc_direct_{person.removeprefix('ou_')}"
        return self.chats.setdefault(chat_id, Chat(chat_id, group=False, person=person))

    def group(self, chat_id: str) -> Chat:
        return self.chats.setdefault(chat_id, Chat(chat_id, group=True))

    def add(self, message: Message) -> Message:
        self.messages[message.message_id] = message
        return message

    def upload(self, kind: str, name: str, mime: str, data: bytes, ms: int = 0) -> Upload:
        key = self.new_id("img_v3" if kind == "image" else "file_v3")
        return self.uploads.setdefault(key, Upload(key, kind, name, mime, data, ms))

    def now_ms(self) -> int:
        return unix_ms(self.clock.now())

    def first_of(self, uuid: str) -> Message | None:
        """The message that ``uuid`` stands for, up to an hour after it was sent."""
        message_id, at = self._uuids.get(uuid, ("", 0.0))
        fresh = bool(uuid) and self.clock.monotonic() - at < UUID_SECONDS
        return self.messages.get(message_id) if fresh else None

    def keep_uuid(self, uuid: str, message_id: str) -> None:
        self._uuids[uuid] = (message_id, self.clock.monotonic())

    def below(self, bundle: str) -> list[Message]:
        """Everything inside a bundle at any depth, in the order in which it was added."""
        inside = {bundle}
        found = []
        for message in self.messages.values():
            if message.upper in inside:
                inside.add(message.message_id)
                found.append(message)
        return found


def content_text(kind: str, content: str) -> str:
    """The words of a sent text or post, as a person reads them."""
    value = json.loads(content)
    if kind == "text":
        return str(value["text"])
    if kind == "interactive":
        return "\n".join(filter(None, (_card_words(each) for each in value["body"]["elements"])))
    if kind != "post":
        return ""
    (post,) = value.values()
    return "\n".join("".join(map(_words, row)) for row in post["content"])


def buttons_of(kind: str, content: str) -> tuple[Button, ...]:
    """The buttons of a card, in order."""
    elements = json.loads(content)["body"]["elements"] if kind == "interactive" else []
    return tuple(
        Button(each["text"]["content"], each["behaviors"][0]["value"])
        for each in elements
        if each["tag"] == "button"
    )


def _card_words(element: dict[str, Any]) -> str:
    if element["tag"] == "markdown":
        return str(element["content"])
    return str(element["text"]["content"]) if element["tag"] == "div" else ""


def _words(element: dict[str, Any]) -> str:
    if element["tag"] == "a" and element["text"] != element["href"]:
        return f"{element['text']} ({element['href']})"
    return "———" if element["tag"] == "hr" else str(element.get("text", ""))
