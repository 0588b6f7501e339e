"""The set of types that this daemon and its clients speak: the published ones with our additions.

An addition is an optional field, left out when absent, or an action, which older daemons refuse. Where
a name exists both here and in a published module, code of ours uses the one from here.
"""

from collections.abc import Callable
from enum import StrEnum
from typing import Annotated, Literal

from pydantic import Field

from bridge.protocol import commands, events, messages, shared
from bridge.protocol.codec import reader
from bridge.protocol.wire import U32, U64, Items, Many, Maybe, Text, Wire


class Chat(Wire):
    """The conversation of a chat platform that a session belongs to."""

    channel: str
    account: str
    conversation: str


class Senders(StrEnum):
    """Whom an account answers."""

    OWNER = "owner"
    LIST = "list"
    ANYONE = "anyone"


class ChannelSet(commands.ChannelSet):
    """An absent ``senders`` keeps what is set."""

    senders: Maybe[Senders] = None


class Send(Wire):
    """Send a message from an account. ``files`` are absolute paths, which the daemon judges."""

    action: Literal["send"] = "send"
    account: str
    to: str
    text: Text = ""
    files: Items[str] = ()


class DeadList(Wire):
    """The dead letters of one account or, without, of all: parts of replies that were given up."""

    action: Literal["dead_list"] = "dead_list"
    account: Text = ""


class DeadShow(Wire):
    """One dead letter with its text and recipient."""

    action: Literal["dead_show"] = "dead_show"
    id: U64


class DeadRetry(Wire):
    """Send these dead letters once more."""

    action: Literal["dead_retry"] = "dead_retry"
    ids: Many[U64]


class DeadPrune(Wire):
    """Forget these dead letters, and all that are older than so many days."""

    action: Literal["dead_prune"] = "dead_prune"
    ids: Items[U64] = ()
    older_than_days: Maybe[U32] = None


class Pair(Wire):
    """Wait for ``code``, 8 digits: who sends it alone in a direct chat of the account becomes its owner.

    One who is the owner already stays it, unless ``replace``.
    """

    action: Literal["pair"] = "pair"
    account: str
    code: Annotated[str, Field(repr=False)]
    replace: bool = False


class PairState(Wire):
    """How a pairing stands: answered when that changes, or after some seconds. ``withdraw`` ends it."""

    action: Literal["pair_state"] = "pair_state"
    id: str
    withdraw: bool = False


class Confirm(Wire):
    """Ask an owner ``text``, yes or no, in the chat where notices go, or in that of ``account``."""

    action: Literal["confirm"] = "confirm"
    text: str
    account: Text = ""
    wait_seconds: Maybe[U32] = None


class QuestionState(Wire):
    """How a question stands: answered when that changes, or after some seconds. ``withdraw`` ends it.

    One that nobody asks after for a minute is withdrawn.
    """

    action: Literal["question_state"] = "question_state"
    id: str
    withdraw: bool = False


OwnerCommand = Pair | PairState | Confirm | QuestionState


class McpList(Wire):
    """Tell of the servers of tools."""

    action: Literal["mcp"] = "mcp"


class UsageList(Wire):
    """What turns used in the last ``days`` (of UTC; 1: today), of one account or, without, of all.

    ``by`` is ``account``, ``sender``, ``day`` or ``agent``.
    """

    action: Literal["usage"] = "usage"
    account: Text = ""
    days: Maybe[U32] = None
    by: Literal["account", "sender", "day", "agent"] = "account"


Command = Annotated[
    ChannelSet
    | OwnerCommand
    | Send
    | DeadList
    | DeadShow
    | DeadRetry
    | DeadPrune
    | UsageList
    | McpList
    | commands.CommonCommand,
    Field(discriminator="action"),
]


class DaemonControl(Wire):
    type: Literal["daemon.control"] = "daemon.control"
    request_id: str
    command: Command


class SessionStart(messages.SessionStart):
    """``keep_asking_seconds``: a turn that waits for an approval when its client hangs up waits on so long.

    Whoever attaches to the session meanwhile takes the turn up, and answers. Absent: it is cancelled at once.
    ``agent`` is the name of the one that answers, ``mode`` one of its modes; absent: the default.
    """

    chat: Maybe[Chat] = None
    keep_asking_seconds: Maybe[U32] = None
    agent: Maybe[str] = None
    mode: Maybe[str] = None


class Chosen(Wire):
    """Which agent was chosen for a session, with which of its models and modes; absent: the default."""

    agent: Text = ""
    model: Text = ""
    mode: Text = ""


class SessionStarted(events.SessionStarted):
    """``chosen`` is absent where nothing was."""

    chosen: Maybe[Chosen] = None


class SessionConfigure(Wire):
    """Change who answers from the next turn on, and where; the history stays.

    An absent key keeps what is set, "" takes back what was chosen. Another agent begins with its own model
    and mode. Without any change it only asks what there is.
    """

    type: Literal["session.configure"] = "session.configure"
    request_id: str
    session_id: str
    agent: Maybe[str] = None
    model: Maybe[str] = None
    mode: Maybe[str] = None
    cwd: Maybe[str] = None


class Named(Wire):
    """What can be chosen by its ``id``; ``name`` is what a person reads."""

    id: str
    name: str


class SessionConfigured(events.SessionEvent):
    """What is in effect now, and what there is. ``chosen`` is absent where nothing was.

    ``problem`` says why models and modes cannot be told now.
    """

    type: Literal["session.configured"] = "session.configured"
    agent: str
    model: str
    mode: str
    cwd: str
    agents: Many[str]
    models: Many[Named]
    modes: Many[Named]
    chosen: Maybe[Chosen] = None
    problem: Text = ""


class SessionCompact(Wire):
    """Have the agent sum up what was said: the summary takes its place."""

    type: Literal["session.compact"] = "session.compact"
    request_id: str
    session_id: str


class SessionCompacted(events.SessionEvent):
    """The history's size in tokens, as it is estimated; the same where there was nothing to be gained."""

    type: Literal["session.compacted"] = "session.compacted"
    before_tokens: U64
    after_tokens: U64


class TurnCompleted(events.TurnCompleted):
    """``cost_micros`` is what the turn cost in millionths of a US dollar, where that is known."""

    cost_micros: Maybe[U64] = None


class TurnCancelled(events.TurnCancelled):
    """``usage`` and ``cost_micros`` are what it used until then, where that is known."""

    usage: Maybe[shared.Usage] = None
    cost_micros: Maybe[U64] = None


class TurnFailed(events.TurnFailed):
    """``usage`` and ``cost_micros`` are what it used until then, where that is known."""

    usage: Maybe[shared.Usage] = None
    cost_micros: Maybe[U64] = None


class TurnSteer(Wire):
    """Give ``prompt`` to the turn that runs, at its next step.

    Answered once that has it (``turn.steered``), or has ended without it (an ``error`` under this request's
    id). A step that is under way is not changed, and an agent that keeps its own context may take none.
    """

    type: Literal["turn.steer"] = "turn.steer"
    request_id: str
    session_id: str
    turn_id: str
    prompt: str


class TurnSteered(events.SessionEvent):
    """``request_id`` is that of the ``turn.steer``."""

    type: Literal["turn.steered"] = "turn.steered"
    turn_id: str


SIGN_IN_REQUIRED = "sign_in_required"
"""The code of a ``turn.failed`` whose message tells the operator how the agent is signed in."""

SETUP_REQUIRED = "setup_required"
"""The same where something else has to be set up or corrected; the message says what."""


class ApprovalOption(Wire):
    """One answer to a question: ``label`` is what a person reads."""

    id: str
    label: str
    allows: bool


class ApprovalRequested(events.ApprovalRequested):
    """``options`` are the answers that there are; without any it is yes or no."""

    options: Items[ApprovalOption] = ()


class ApprovalResolve(messages.ApprovalResolve):
    """``option`` is the id of one, which must agree with ``approved``; absent: the first that does."""

    option: Maybe[str] = None


class ComponentHealth(shared.ComponentHealth):
    """``queue_depth`` counts the messages that wait, ``dead_letters`` the parts that were given up.

    ``clock_skew_seconds`` is how far the platform's clock is ahead of the daemon's. ``unproven_requests``
    counts those that were refused as not the platform's since the last accepted one.
    """

    reason: Maybe[str] = None
    since_unix_seconds: Maybe[U64] = None
    next_try_unix_seconds: Maybe[U64] = None
    queue_depth: Maybe[U64] = None
    oldest_waiting_unix_seconds: Maybe[U64] = None
    dead_letters: Maybe[U64] = None
    senders: Maybe[Senders] = None
    clock_skew_seconds: Maybe[float] = None
    unproven_requests: Maybe[U64] = None
    last_unproven_unix_seconds: Maybe[U64] = None


class DeadLetter(Wire):
    """A part of a reply that was given up. ``to`` and ``text`` only where one letter is asked for.

    ``state`` is ``refused``, ``expired`` or ``unknown``; ``size`` is in bytes.
    """

    id: U64
    account: str
    kind: str
    state: str
    reason: str
    size: U64
    created_unix_seconds: U64
    ended_unix_seconds: U64
    to: Maybe[str] = None
    text: Maybe[str] = None


class Pairing(Wire):
    """``state`` is ``waiting``, ``saving``, or how it ended; ``paired``: ``owner`` is it now.

    The code is never told: who asks for the pairing makes it.
    """

    id: str
    account: str
    state: str
    tries_left: U32
    seconds_left: U32
    owner: Text = ""
    reason: Text = ""


class Question(Wire):
    """``state`` is ``sending``, ``open``, ``yes``, ``no``, or why there is no answer; ``account`` asks it."""

    id: str
    account: str
    state: str
    seconds_left: U32


class McpTool(Wire):
    """A server's tool: ``name`` is what agents call it, ``own`` what the server does."""

    name: str
    own: str
    risk: str
    description: str


class McpServer(Wire):
    """A server of tools. ``kind`` is ``stdio`` or ``http``; ``says`` is what it says that it is.

    ``state`` is ``starting``, ``connected``, ``backoff``, ``failed`` or ``disabled``; ``notes`` say what of
    its tools is left out, and why.
    """

    name: str
    kind: str
    state: str
    since_unix_seconds: U64
    reason: Text = ""
    next_try_unix_seconds: Maybe[U64] = None
    says: Text = ""
    tools: Items[McpTool] = ()
    notes: Items[str] = ()


class UsageLine(Wire):
    """Sums over the turns of what ``name`` names, "" for all that have no line of their own.

    ``uncounted`` of them told no tokens, ``unpriced`` have no known cost; ``cost_micros`` are millionths of a
    US dollar.
    """

    account: Text = ""
    name: Text = ""
    turns: U64
    input_tokens: U64
    output_tokens: U64
    cost_micros: U64
    uncounted: U64 = 0
    unpriced: U64 = 0


class Reloaded(Wire):
    """The accounts that a reload made other ones, by id: ``anew`` are those that ran before, too."""

    started: Items[str] = ()
    anew: Items[str] = ()
    stopped: Items[str] = ()


class DaemonStatus(shared.DaemonStatus):
    """``dead``, ``pairing``, ``question``, ``usage``, ``mcp``, ``reloaded`` answer what is about them.

    ``settings_error`` is why the settings on disk cannot be read: those read before are in effect.
    ``waits_for_restart`` names the tables of which something takes effect at the next start only.
    """

    components: Many[ComponentHealth]
    dead: Items[DeadLetter] = ()
    pairing: Maybe[Pairing] = None
    question: Maybe[Question] = None
    mcp: Items[McpServer] = ()
    usage: Items[UsageLine] = ()
    reloaded: Maybe[Reloaded] = None
    settings_error: Maybe[str] = None
    waits_for_restart: Items[str] = ()


class DaemonStatusEvent(events.DaemonStatusEvent):
    status: DaemonStatus


ClientMessage = Annotated[
    DaemonControl
    | SessionStart
    | SessionConfigure
    | SessionCompact
    | TurnSteer
    | ApprovalResolve
    | messages.CommonMessage,
    Field(discriminator="type"),
]
ServerEvent = Annotated[
    DaemonStatusEvent
    | SessionStarted
    | SessionConfigured
    | SessionCompacted
    | TurnSteered
    | ApprovalRequested
    | TurnCompleted
    | TurnCancelled
    | TurnFailed
    | events.CommonEvent,
    Field(discriminator="type"),
]


class UnknownEvent(Wire):
    """An event of a type that this version does not know: skip it, and excuse one gap in ``seq``."""

    type: str


read_client_message: Callable[[bytes], ClientMessage] = reader(ClientMessage)
read_server_event: Callable[[bytes], ServerEvent | UnknownEvent] = reader(ServerEvent, reader(UnknownEvent))
"""Reads an event of a server that may be newer than this client.

Raises ProtocolError: the line is no event at all, or one of a known type with wrong fields.
"""
