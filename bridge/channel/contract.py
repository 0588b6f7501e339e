"""What an adapter is to the core: the values that pass between them, and the abilities it may have.

An adapter translates and nothing more. It satisfies ``Channel`` and as many of the other protocols here as
its platform allows; the core looks with ``isinstance`` and needs no flags. All values are frozen and hold
only what can be stored as JSON, so that a message goes on after a restart exactly where it was.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from contextlib import AbstractAsyncContextManager
from dataclasses import dataclass, field
from datetime import datetime
from enum import StrEnum
from pathlib import Path
from typing import Protocol, runtime_checkable

from multidict import CIMultiDictProxy

from bridge.values import value


class FileKind(StrEnum):
    IMAGE = "image"
    AUDIO = "audio"
    VIDEO = "video"
    FILE = "file"
    STICKER = "sticker"


@dataclass(frozen=True, slots=True)
class RemoteFile:
    """A file that a message brings, not fetched yet.

    ``key`` is the adapter's own and opaque to the core: all that ``fetch`` needs, also after a restart, and
    never a secret. ``size`` is in bytes as the platform announced it; it may lie.
    """

    key: str
    kind: FileKind
    name: str = ""
    mime: str = ""
    size: int | None = None
    transcript: str = ""
    fetchable: bool = True  # False: the platform shows it but gives nobody its bytes


@value
class Inbound:
    """A message to the bot. Ids are the platform's stable ones, never display names.

    ``to`` is where an unprompted message for this conversation goes and names the delivery lane;
    ``reply_to`` is the handle for answering this very message. ``stamp`` is the platform's own send time,
    only where the platform is known to redeliver under new ids: with chat, sender and content it makes a
    second unique key. ``body_digest`` is set where one id with another body must be refused.

    ``pressed`` is the value of a ``Choice`` that its sender pressed, "" for what was written: such a message
    is answered at once or passed over, and never reaches an agent. Its id is the press's own.
    """

    message_id: str
    sender: str
    chat: str
    to: str
    reply_to: str = ""
    text: str = ""
    files: tuple[RemoteFile, ...] = ()
    group: bool = False
    thread: str = ""
    reference: str = ""
    sent_at: datetime | None = None
    stamp: str = ""
    body_digest: str = ""
    pressed: str = ""


@dataclass(frozen=True, slots=True)
class Ignored:
    """Nothing to answer; ``reason`` is a fixed word such as ``own``, ``bot`` or ``not_mentioned``."""

    reason: str
    message_id: str = ""


@dataclass(frozen=True, slots=True)
class Unreadable:
    """An item that could not be understood; ``reason`` is a fixed sentence without any of its content."""

    reason: str
    message_id: str = ""


@dataclass(frozen=True, slots=True)
class Recalled:
    """Its sender took ``message_id`` back: it leaves the queue, or its turn stops, and it is not answered.

    ``sender`` and ``chat`` are set where the platform tells them, and must then be the message's own.
    """

    message_id: str
    sender: str = ""
    chat: str = ""


@dataclass(frozen=True, slots=True)
class Edited:
    """``message`` as its sender changed it: it takes its own place as long as it waits for its turn.

    ``revision`` rises with each edit (the platform's time or count of it), so that none undoes a later one.
    """

    message: Inbound
    revision: int


Item = Inbound | Ignored | Unreadable | Recalled | Edited


class Claimed(StrEnum):
    """What became of one item once it was durable."""

    ACCEPTED = "accepted"
    DUPLICATE = "duplicate"
    CONFLICT = "conflict"  # the id was seen with another body: nothing was done
    BUSY = "busy"  # accepted and answered with the busy notice
    IGNORED = "ignored"


@dataclass(frozen=True, slots=True)
class Batch:
    """What ``receive`` brought. ``checkpoint`` None: nothing to remember."""

    items: Sequence[Item]
    checkpoint: str | None = None


@dataclass(frozen=True, slots=True)
class Identity:
    """Who the bot is on its platform, and the platform's clock as its ``Date`` header told, where it did."""

    bot_id: str = ""
    name: str = ""
    platform_time: datetime | None = None


@value
class Request:
    """An HTTP request to the account's route. ``path`` is what follows the route: ``""`` or ``/replies`` …"""

    method: str
    path: str
    query: Mapping[str, str]
    headers: CIMultiDictProxy[str]
    body: bytes
    received_at: datetime


@value
class Answer:
    """An HTTP response. One of ``respond`` with an address in it: its file is kept ``keep_file_seconds``."""

    status: int
    body: bytes = b""
    content_type: str = "application/json"
    headers: Mapping[str, str] = field(default_factory=dict)
    keep_file_seconds: float = 0.0


@dataclass(frozen=True, slots=True)
class FileAnswer:
    """An HTTP response that is a file: ``path`` is streamed, ``size`` bytes of it, under ``name``."""

    path: Path
    name: str
    mime: str
    size: int


@dataclass(frozen=True, slots=True)
class SentAnswer:
    """An HTTP response that is a send: whoever writes it calls ``written`` once, and tells how that went.

    True: all of it went out to a client that had not hung up. False: the client was gone. None: nobody knows.
    """

    answer: Answer
    written: Callable[[bool | None], None]


@dataclass(frozen=True, slots=True)
class NoAnswer:
    """The connection is closed without any response."""


AnyAnswer = Answer | FileAnswer | SentAnswer | NoAnswer
"""All that an account gives the HTTP listener."""


@value
class Reading:
    """What a pushed request held. ``note`` is the adapter's own, handed back to ``answer``."""

    items: tuple[Item, ...]
    platform_time: datetime | None = None  # signed by the platform, now
    note: str = ""


@dataclass(frozen=True, slots=True)
class Choice:
    """An answer that a part offers: a button that says ``label`` and brings ``value`` back, as it is."""

    value: str
    label: str


@dataclass(frozen=True, slots=True)
class OutboundPart:
    """One text message of a reply. ``part`` counts from 0 over ``parts``, texts first, then files.

    ``client_id`` (32 lowercase hex digits) is the same on every retry. An adapter never splits or retries it.
    ``notice`` is "" for what the agent answered, else the fixed word for what the bridge itself says here:
    ``failure``, ``busy``, ``interrupted`` … ``choices`` are shown as buttons where the platform has them,
    and left out elsewhere: the text says how to answer by words.
    """

    to: str
    reply_to: str
    client_id: str
    text: str
    reply_id: str = ""
    part: int = 0
    parts: int = 1
    created_at: datetime | None = None  # when it was put into the outbox: the same on every retry
    notice: str = ""
    choices: tuple[Choice, ...] = ()


@dataclass(frozen=True, slots=True)
class OutboundFile:
    """One file of a reply: a private copy at ``path``, ``size`` in bytes."""

    to: str
    reply_to: str
    client_id: str
    path: Path
    name: str
    mime: str
    kind: FileKind
    size: int
    reply_id: str = ""
    part: int = 0
    parts: int = 1
    created_at: datetime | None = None  # when it was put into the outbox: the same on every retry


@dataclass(frozen=True, slots=True)
class Delivered:
    """The platform took it as ``platform_id``; for ``keep_file_seconds`` more it fetches the copy."""

    platform_id: str = ""
    keep_file_seconds: float = 0.0


@dataclass(frozen=True, slots=True)
class Refused:
    """Final: the platform never takes this part. Its ``code``, and a ``reason`` that is safe to show."""

    reason: str
    code: str = ""


@dataclass(frozen=True, slots=True)
class Withdrawn:
    """Final: the message that this answers is gone, so its whole reply is dropped and never held."""

    code: str = ""


SendOutcome = Delivered | Refused | Withdrawn


@dataclass(frozen=True, slots=True)
class Incoming:
    """A file on its way: what the platform says of it, and its bytes."""

    chunks: AsyncIterator[bytes]
    name: str = ""
    mime: str = ""
    size: int | None = None


@dataclass(frozen=True, slots=True)
class Context:
    """What a reference leads to: text to put before the message, and its files."""

    text: str = ""
    files: tuple[RemoteFile, ...] = ()


@dataclass(frozen=True, slots=True)
class Ask:
    """A request for the parts that wait for ``to``, "" for all; the answer may take its time.

    Those of them up to ``after`` were received. What waits for others is neither shown nor settled.
    """

    after: int
    wait_seconds: float
    to: str = ""


@dataclass(frozen=True, slots=True)
class WaitingPart:
    """A part that waits to be collected, under its ``cursor``."""

    cursor: int
    part: OutboundPart | OutboundFile


@dataclass(frozen=True, slots=True)
class FileWanted:
    """A verified request for the outbox copy called ``name``."""

    name: str


class Channel(Protocol):
    """One account's adapter. It has no duties of its own: what it can do is told by the protocols below."""


@runtime_checkable
class Polls(Protocol):
    async def receive(self, checkpoint: str) -> Batch:
        """The next batch after ``checkpoint``, "" at first, once the last is durable; empty after 120 s."""
        ...


@runtime_checkable
class Pushed(Protocol):
    """Both are pure functions of settings, identity, headers and bytes; the core claims between them."""

    def read(self, request: Request, identity: Identity) -> Reading | Answer:
        """Verify and parse. An ``Answer`` ends the request: a handshake, or a refusal."""
        ...

    def answer(self, reading: Reading, results: Sequence[Claimed]) -> Answer:
        """The response once every item is durable; ``results`` in the order of ``reading.items``."""
        ...


@runtime_checkable
class Sends(Protocol):
    async def send(self, part: OutboundPart) -> SendOutcome:
        """Send one text part.

        Raises:
            UnreachableError: not accepted, try again. OutcomeUnknownError: maybe accepted.
            CredentialsError: the account is refused.
        """
        ...


@runtime_checkable
class SendsFiles(Protocol):
    async def send_file(self, part: OutboundFile) -> SendOutcome:
        """Send one file; errors as in ``Sends.send``."""
        ...


@runtime_checkable
class FetchesFiles(Protocol):
    def fetch(self, file: RemoteFile, max_bytes: int) -> AbstractAsyncContextManager[Incoming]:
        """Open a received file. The core counts the bytes and hangs up past ``max_bytes``.

        Raises:
            ChannelError: it cannot be had.
        """
        ...


@runtime_checkable
class ResolvesReferences(Protocol):
    async def resolve(self, message_id: str, reference: str) -> Context:
        """Look up what the message quotes or bundles. Raises ChannelError when it cannot be had."""
        ...


@runtime_checkable
class Probes(Protocol):
    async def probe(self) -> Identity:
        """Prove contact, within 30 s, and learn who the bot is. Asked at start and every five minutes."""
        ...


@runtime_checkable
class AnsweredByAsking(Protocol):
    """Replies wait until the other side asks for them, on ``GET <route>/replies``."""

    def ask(self, request: Request) -> Ask | Answer:
        """Verify and parse, purely."""
        ...

    async def told(self, ask: Ask, waiting: Sequence[WaitingPart]) -> Answer:
        """The response with what waits. May read the files' bytes."""
        ...


@runtime_checkable
class ServesFiles(Protocol):
    """Gives outbox copies out under addresses that it signed itself, on ``GET <route>/files/…``."""

    def file(self, request: Request) -> FileWanted | Answer:
        """Verify and parse, purely."""
        ...


@runtime_checkable
class RepliesInResponse(Protocol):
    """The response to a push may itself carry one part of what waits for the message's ``to``.

    Once a message is durable, its request, and each repeat of it that the platform makes for want of an
    answer, is held up to ``hold_seconds`` until there is such a part; that response is then a send. Without
    any, a channel that ``Sends`` gives its plain answer and sends later. One that does not leaves the request
    unanswered while the platform comes again, up to ``repeat_seconds`` after the first; then it tells that
    the answer waits for the user's next message, a ``1`` for example. The ``text_limit`` of such a channel
    leaves 150 bytes of what its platform takes free, for notes: that more waits, or that a text answers an
    earlier message than the one whose response carries it.

    What was given as a response is given again, byte by byte, to a repeat within half a minute. No client id
    tells a response from a send: the ``idempotent_seconds`` of such a channel count as none.
    """

    @property
    def hold_seconds(self) -> float: ...

    @property
    def repeat_seconds(self) -> float: ...

    async def respond(self, reading: Reading, part: OutboundPart | OutboundFile) -> Answer | Refused:
        """The response that carries ``part``, of this message or of an earlier one of the same ``to``.

        Nothing is sent before it is returned, and it may never be: then ``part`` is given to another request,
        or to ``send``.

        Raises:
            UnreachableError: it cannot be made now, a file's upload failed for example.
            CredentialsError: the account is refused.
        """
        ...


@dataclass(frozen=True, slots=True)
class Fault:
    """Something that keeps a bot from its work, and what its operator does about it; both safe to show."""

    text: str
    cure: str


@runtime_checkable
class Diagnoses(Protocol):
    async def diagnose(self) -> Sequence[Fault]:
        """What is wrong on the platform's side though ``probe`` succeeds: permissions that lack, for example.

        Asked by ``turnbridge doctor`` alone; changes nothing anywhere.

        Raises:
            ChannelError: it cannot be told.
        """
        ...
