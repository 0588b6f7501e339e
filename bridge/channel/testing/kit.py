"""What an adapter's author brings to the contract suite: a fake of the platform that speaks its wire format.

A kit registers in the entry-point group ``turnbridge.kits`` under its channel's name. The suite in
``bridge.channel.testing.suite`` runs against every registered channel that has a kit, and tests each ability
that the adapter has; a registered channel without a kit fails the suite.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum
from typing import Any, Protocol, runtime_checkable

from bridge.channel.contract import Answer, RemoteFile, Request
from bridge.channel.spec import ChannelSpec


@dataclass(frozen=True, slots=True)
class KitFile:
    """A file that a person sends, or that the platform received from the bot."""

    name: str
    mime: str
    data: bytes


@dataclass(frozen=True, slots=True)
class KitMessage:
    """What a person writes. ``sender`` and ``chat`` are the platform's ids: ``Kit.person``, ``Kit.chat``."""

    text: str = ""
    sender: str = ""
    chat: str = ""
    group: bool = False
    mentions_bot: bool = True
    message_id: str = ""
    files: tuple[KitFile, ...] = ()


@dataclass(frozen=True, slots=True)
class KitSent:
    """What the platform shows after the bot sent something.

    ``client_id`` is the one it was sent under, "" for all where the platform knows none.
    """

    client_id: str
    text: str = ""
    file: KitFile | None = None
    reply_to: str = ""
    to: str = ""


class Trouble(StrEnum):
    """What the platform does to the next send."""

    REFUSE = "refuse"  # a final refusal
    THROTTLE = "throttle"  # not accepted, a wait of 7 seconds asked for
    BREAK_BEFORE = "break_before"  # a 5xx or closed connection, nothing was accepted
    DROP_AFTER = "drop_after"  # accepted and shown, then the connection closes without an answer
    CREDENTIALS = "credentials"  # the account is not accepted any more
    GARBAGE = "garbage"  # 200 with a body that is no answer


class Kit(Protocol):
    """An async context manager: entering starts the fake on loopback."""

    @property
    def spec(self) -> ChannelSpec: ...

    async def __aenter__(self) -> Kit: ...
    async def __aexit__(self, *exc: object) -> None: ...

    @property
    def settings(self) -> dict[str, Any]:
        """The account's table, pointing at the fake."""
        ...

    @property
    def credentials(self) -> dict[str, Any]: ...

    def person(self, n: int) -> str:
        """The stable id of the n-th person; 0 is the owner."""
        ...

    def chat(self, n: int, group: bool = False) -> str: ...

    def sent(self) -> list[KitSent]:
        """What the platform shows of the bot, oldest first; once per client id where it dedupes."""
        ...

    def trouble(self, *troubles: Trouble) -> None:
        """What happens to the next sends, one each."""
        ...

    def supports(self, trouble: Trouble) -> bool: ...


@runtime_checkable
class PushedKit(Protocol):
    def push(self, message: KitMessage) -> Request:
        """The request, rightly signed, that the platform would make for ``message``."""
        ...

    def forged(self, message: KitMessage) -> list[Request]:
        """Requests that must be refused: bad signature, replayed time, wrong token, broken body …"""
        ...

    def uninteresting(self) -> list[Request]:
        """Requests that must be acknowledged and start nothing: other events, own messages, other bots."""
        ...


@runtime_checkable
class ButtonsKit(Protocol):
    """The buttons of a platform that has them."""

    def buttons(self) -> list[str]:
        """What the buttons under the bot's last message say."""
        ...

    def press(self, label: str, sender: str) -> Request:
        """The request, rightly signed, that the platform would make when ``sender`` presses one of them."""
        ...


@runtime_checkable
class RespondsKit(Protocol):
    """The other side of ``RepliesInResponse``."""

    def shown_of(self, request: Request, answer: Answer) -> list[KitSent]:
        """What the platform shows of ``answer``, the response to ``request``; [] where it keeps silent.

        Raises:
            AssertionError: it would tell its user that the bot is out of order.
        """
        ...


@runtime_checkable
class PollsKit(Protocol):
    def arrive(self, message: KitMessage) -> None:
        """Let ``message`` wait at the platform, after those that wait already."""
        ...

    def arrive_unreadable(self) -> None:
        """Let something wait that no adapter can make sense of."""
        ...


@runtime_checkable
class FilesKit(Protocol):
    def remote(self, file: KitFile) -> RemoteFile:
        """Put ``file`` on the platform and give its reference, as ``read`` would have."""
        ...


@runtime_checkable
class TypingKit(Protocol):
    """A platform that shows who is at work."""

    def typing(self) -> int:
        """How many signs of the bot's stand in chats now."""
        ...


__all__ = [
    "ButtonsKit",
    "FilesKit",
    "Kit",
    "KitFile",
    "KitMessage",
    "KitSent",
    "PollsKit",
    "PushedKit",
    "RespondsKit",
    "Trouble",
    "TypingKit",
]
