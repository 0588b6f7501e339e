"""What a message quotes, or the bundle that it is, as lines for the agent. Pure.

Source: https://open.feishu.cn/document/server-docs/im-v1/message/get
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field

from pydantic import ValidationError

from bridge.channel import Context, RemoteFile
from channels.feishu.content import Content, read_content
from channels.feishu.mentions import mentioned
from channels.feishu.wire import RestMessage, instant

_MAX_LINES = 300
_MAX_DEPTH = 8
_MAX_FILES = 16


@dataclass(slots=True)
class Listing:
    """What gathers while a bundle is read."""

    lines: list[str] = field(default_factory=list)
    files: list[RemoteFile] = field(default_factory=list)
    left_out: int = 0


def read_items(items: object) -> list[RestMessage]:
    """The messages of an answer; one that cannot be read is left out, and so is anything that is no list."""
    return list(_readable(items)) if isinstance(items, list) else []


def _readable(items: Sequence[object]) -> Iterator[RestMessage]:
    for item in items:
        try:
            yield RestMessage.model_validate(item)
        except ValidationError:
            continue


def context(items: Sequence[RestMessage], own: str, bot: str) -> Context:
    """The first item and what descends from it.

    Args:
        items: at least one.
        own: the id of the message that refers; when it is the first item itself, that is a bundle.
        bot: our app's id, by which the REST interface names us as a sender.
    """
    head, *rest = items
    if head.msg_type != "merge_forward":
        content = _content(head, head.message_id)
        return Context(f"[In reply to {_sender(head, bot)}: {content.line}]", content.files)
    listing = Listing()
    _list(listing, head, rest, bot)
    if not listing.lines:
        listing.lines.append("(nothing in it can be shown)")
    if listing.left_out:
        listing.lines.append(f"({listing.left_out} more messages are not shown)")
    title = "Forwarded messages"
    if head.message_id != own:
        title = f"In reply to messages forwarded by {_sender(head, bot)}"
    return Context("\n".join([f"[{title}:]", *listing.lines]), tuple(listing.files[:_MAX_FILES]))


def _list(listing: Listing, head: RestMessage, rest: Sequence[RestMessage], bot: str) -> None:
    """Walk down from ``head`` in the order given. No message is met twice, so that a circle ends."""
    children: dict[str, list[RestMessage]] = {}
    for message in rest:
        children.setdefault(message.upper_message_id or head.message_id, []).append(message)
    waiting = [(0, each) for each in reversed(children.pop(head.message_id, []))]
    while waiting:
        depth, message = waiting.pop()
        if len(listing.lines) >= _MAX_LINES:
            listing.left_out += 1
            continue
        content = _content(message, head.message_id)
        at = instant(message.create_time)
        when = f" ({at:%Y-%m-%d %H:%M} UTC)" if at else ""
        indent = "  " * min(depth, _MAX_DEPTH)
        text = content.line.replace("\n", f"\n{indent}  ")
        listing.lines.append(f"{indent}- {_sender(message, bot)}{when}: {text}")
        listing.files += content.files
        waiting += [(depth + 1, each) for each in reversed(children.pop(message.message_id, []))]


def _content(message: RestMessage, bundle_id: str) -> Content:
    """A message's content; a bundle's files are had under the id of the outermost bundle alone."""
    if message.deleted:
        return Content("[Message taken back]")
    return read_content(bundle_id, message.msg_type, message.body.content, mentioned(message.mentions, ""))


def _sender(message: RestMessage, bot: str) -> str:
    if message.sender.id == bot:
        return "you"
    return message.sender.id or message.sender.sender_type or "somebody"
