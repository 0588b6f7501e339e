"""A conversation's messages in their order, those that are worked on first."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from itertools import takewhile

from bridge.ids import MessageId
from bridge.protocol.limits import PROMPT_BYTES
from bridge.relay.texts import Text
from bridge.relay.work import Message
from bridge.store.contract import MessageState

TOGETHER_BYTES = PROMPT_BYTES // 2  # of texts: the rest of a prompt is for notes, and for what is quoted


class Queue:
    """Messages are known by their ids; one that was edited is another, in the place of the old one.

    ``endings`` has those that are not worked on any more, and what their senders are told; None: nothing.
    """

    def __init__(self) -> None:
        self._messages: list[Message] = []
        self.endings: dict[MessageId, Text | None] = {}

    def __len__(self) -> int:
        return len(self._messages)

    def __iter__(self) -> Iterator[Message]:
        return iter(self._messages)

    @property
    def head(self) -> Message:
        return self._messages[0]

    def add(self, message: Message) -> None:
        self._messages.append(message)

    def find(self, message_id: MessageId) -> Message | None:
        return next((one for one in self._messages if one.message_id == message_id), None)

    def remove(self, message: Message) -> bool:
        """Whether this very message was in it."""
        for place, one in enumerate(self._messages):
            if one is message:
                del self._messages[place]
                self.endings.pop(message.message_id, None)
                return True
        return False

    def change(self, old: Message, new: Message) -> Message:
        """Put what ``new`` says into the place of ``old``; returns what is there now."""
        changed = replace(old, inbound=new.inbound, revision=new.revision)
        self._messages[self._messages.index(old)] = changed
        return changed

    def end(self, ending: Text | None, before: Message | None = None) -> None:
        """None of the messages (up to ``before``) is worked on any more."""
        for one in takewhile(lambda one: one is not before, self._messages):
            self.endings.setdefault(one.message_id, ending)

    def behind(self, members: Sequence[Message]) -> list[Message]:
        """What waits behind those that are worked on."""
        return [one for one in self._messages if not any(one is member for member in members)]

    def missed(self) -> list[Message]:
        """The missed messages at its head."""
        return list(takewhile(lambda one: one.missed, self._messages))

    def waits(self, message: Message) -> bool:
        """Whether nobody has worked on it, and somebody is to."""
        claimed = message.state is MessageState.CLAIMED and not message.missed
        return claimed and message.message_id not in self.endings


def together(
    queue: Queue, max_files: int, alone: Callable[[Message], bool] = lambda _: False
) -> list[Message]:
    """The messages at the head that one turn can answer, or was to when we died; the first in any case.

    One that refers to another is the last of them, since a turn looks up one reference. What is to be
    ``alone`` is no part of a turn.
    """
    if queue.head.state is MessageState.RUNNING:
        return list(takewhile(lambda one: one.session_id == queue.head.session_id, queue))
    taken: list[Message] = []
    size = files = 0
    for one in queue:
        size += len(one.inbound.text.encode("utf-8", "surrogatepass"))
        files += len(one.inbound.files)
        if taken and (not queue.waits(one) or alone(one) or size > TOGETHER_BYTES or files > max_files):
            break
        taken.append(one)
        if one.inbound.reference or not queue.waits(one) or alone(one):
            break
    return taken


def as_one(messages: Sequence[Message]) -> Message:
    """Several messages as the last of them, which brings the texts and files of all."""
    if len(messages) == 1:
        return messages[0]
    all_of = [one.inbound for one in messages]
    text = "\n\n".join(one.text for one in all_of if one.text.strip())
    files = tuple(file for one in all_of for file in one.files)
    return replace(messages[-1], inbound=replace(all_of[-1], text=text, files=files))
