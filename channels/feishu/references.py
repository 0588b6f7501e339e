"""What a message quotes, the thread that it is in, or the bundle that it is, as lines for the agent. Pure.

Source: https://open.feishu.cn/document/server-docs/im-v1/message/get
"""

import json
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from enum import Enum
from operator import itemgetter

from pydantic import ValidationError

from bridge.channel import Context, RemoteFile, value
from channels.feishu.content import Content, read_content
from channels.feishu.mentions import mentioned
from channels.feishu.wire import RestMessage, instant

_MAX_LINES = 300
_MAX_CHARACTERS = 60_000  # of all lines: a prompt has room for more than what it refers to
_MAX_DEPTH = 8
_MAX_FILES = 300  # the core takes fewer and tells of the rest
_OWN = "own"
_TITLES = {  # of what is quoted, and of a thread's first message; one message, or forwarded ones
    False: ("In reply to {}", "In a thread on a message of {}"),
    True: ("In reply to messages forwarded by {}", "In a thread on messages forwarded by {}"),
}


class Role(Enum):
    """What a looked up message is to the one that refers to it; the value says so of one that is gone."""

    OWN = "This message"
    QUOTED = "The message that this one replies to"
    ROOT = "The message that this thread is on"


@value
class Link:
    """What a message refers to; it holds no id of its own, so that a redelivery under a new one is alike.

    ``own``: what it holds is had only by looking it up, as of forwarded messages. ``root`` is its thread's
    first message, and ``listener`` the thread and the person who needs to be told of that once.
    """

    own: bool = False
    quoted: str = ""
    root: str = ""
    listener: str = ""

    def encode(self) -> str:
        if self.root:
            return json.dumps([self.own, self.quoted, self.root, self.listener])
        return _OWN if self.own else self.quoted

    @classmethod
    def decode(cls, reference: str, message_id: str) -> "Link":
        """What ``encode`` made.

        Raises:
            ValueError: it is something else.
        """
        if reference in (_OWN, message_id):
            return cls(own=True)
        if not reference.startswith("["):
            return cls(quoted=reference)
        own, quoted, root, listener = json.loads(reference)
        return cls(own is True, str(quoted), str(root), str(listener))


@dataclass(slots=True)
class Listing:
    """What gathers while a bundle is read."""

    lines: list[str] = field(default_factory=list)
    files: list[RemoteFile] = field(default_factory=list)
    left_out: int = 0
    room: int = _MAX_CHARACTERS

    def add(self, start: str, text: str) -> None:
        """A line, as far as there is room."""
        self.lines.append(start + shortened(text, self.room))
        self.room -= len(self.lines[-1])

    @property
    def is_full(self) -> bool:
        return len(self.lines) >= _MAX_LINES or self.room <= 0


def read_items(items: object) -> list[RestMessage]:
    """The messages of an answer; one that cannot be read is left out, and so is anything that is no list."""
    return list(_readable(items)) if isinstance(items, list) else []


def _readable(items: Sequence[object]) -> Iterator[RestMessage]:
    for item in items:
        try:
            yield RestMessage.model_validate(item)
        except ValidationError:
            continue


def context(items: Sequence[RestMessage], role: Role, bot: str) -> Context:
    """The first item and what descends from it.

    Args:
        items: at least one.
        role: what the first is to the message that refers to it.
        bot: our app's id, by which the REST interface names us as a sender.
    """
    head, *rest = items
    if head.msg_type != "merge_forward" or head.deleted:
        content = _content(head, head.message_id)
        text = shortened(content.line, _MAX_CHARACTERS)
        return Context(f"[{_title(head, role, bot)}: {text}]", content.files[:_MAX_FILES])
    listing = Listing()
    _list(listing, head, rest, bot)
    if not listing.lines:
        listing.lines.append("(nothing in it can be shown)")
    if listing.left_out:
        listing.lines.append(f"({listing.left_out} more messages are not shown)")
    return Context(
        "\n".join([f"[{_title(head, role, bot)}:]", *listing.lines]), tuple(listing.files[:_MAX_FILES])
    )


def gone(role: Role) -> Context:
    return Context(f"[{role.value} was taken back or deleted.]")


def missed(role: Role) -> Context:
    return Context(f"[{role.value} could not be fetched.]")


def joined(found: Sequence[Context]) -> Context:
    """Several as one, in their order."""
    texts = filter(None, (each.text for each in found))
    return Context("\n\n".join(texts), tuple(file for each in found for file in each.files))


def _title(head: RestMessage, role: Role, bot: str) -> str:
    forwarded = head.msg_type == "merge_forward" and not head.deleted
    if role is Role.OWN:
        return "Forwarded messages" if forwarded else "What this message holds"
    quoted, root = _TITLES[forwarded]
    return (quoted if role is Role.QUOTED else root).format(_sender(head, bot))


def _list(listing: Listing, head: RestMessage, rest: Sequence[RestMessage], bot: str) -> None:
    """Walk down from ``head``, at each level by time. No message is met twice, so that a circle ends."""
    children: dict[str, list[RestMessage]] = {}
    for message in _by_time(rest):
        children.setdefault(message.upper_message_id or head.message_id, []).append(message)
    waiting = [(0, each) for each in reversed(children.pop(head.message_id, []))]
    while waiting:
        depth, message = waiting.pop()
        if listing.is_full:
            listing.left_out += 1
            continue
        content = _content(message, head.message_id)
        at = instant(message.create_time)
        when = f" ({at:%Y-%m-%d %H:%M} UTC)" if at else ""
        indent = "  " * min(depth, _MAX_DEPTH)
        text = content.line.replace("\n", f"\n{indent}  ")
        listing.add(f"{indent}- {_sender(message, bot)}{when}: ", text)
        listing.files += content.files
        waiting += [(depth + 1, each) for each in reversed(children.pop(message.message_id, []))]


def shortened(text: str, characters: int) -> str:
    return text if len(text) <= characters else f"{text[:characters]}…"


def _by_time(messages: Sequence[RestMessage]) -> list[RestMessage]:
    """Oldest first; one without a time stays behind the one that it came after."""
    timed, last = [], 0.0
    for message in messages:
        at = instant(message.create_time)
        last = at.timestamp() if at else last
        timed.append((last, message))
    return [message for _, message in sorted(timed, key=itemgetter(0))]


def _content(message: RestMessage, bundle_id: str) -> Content:
    """A message's content; a bundle's files are had under the id of the outermost bundle alone."""
    if message.deleted:
        return Content("[Message taken back]")
    return read_content(bundle_id, message.msg_type, message.body.content, mentioned(message.mentions, ""))


def _sender(message: RestMessage, bot: str) -> str:
    if message.sender.id == bot:
        return "you"
    return message.sender.id or message.sender.sender_type or "somebody"
