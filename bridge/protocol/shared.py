"""The structs inside messages and events."""

from enum import StrEnum

from bridge.protocol.wire import U32, U64, Items, Many, Maybe, Text, Wire


class Peer(Wire):
    name: str
    version: str


class Usage(Wire):
    """Tokens of a turn. A part that nobody reported is absent, which differs from 0."""

    input_tokens: Maybe[U64] = None
    output_tokens: Maybe[U64] = None


class Attachment(Wire):
    """A received file of a turn. ``kind`` and ``path`` are judged by the server, not by the reader."""

    kind: str
    path: str
    name: Text = ""
    mime: Text = ""
    size: U64
    transcript: Maybe[str] = None


class ReplyAttachment(Wire):
    """A file that the agent sends back, as ``chat_attach`` reports it."""

    path: str
    name: str
    mime: Text = ""
    size: U64
    caption: Text = ""


class QueueEntry(Wire):
    """A waiting turn. ``submitter`` is the request id of its ``turn.start``."""

    queue_id: str
    revision: U64
    prompt: str
    submitter: str
    attachments: Items[Attachment] = ()


class Origin(Wire):
    """Why the server started a turn by itself; a client's own turns have none."""

    kind: str
    jobs: Items[str] = ()


class RemoteTools(StrEnum):
    """Who may use tools from a chat."""

    NONE = "none"
    OWNER = "owner"


class ComponentState(StrEnum):
    DISABLED = "disabled"
    STARTING = "starting"
    CONNECTED = "connected"
    DISCONNECTED = "disconnected"
    BACKOFF = "backoff"
    STOPPING = "stopping"
    STOPPED = "stopped"
    FAILED = "failed"


class ComponentHealth(Wire):
    """One account's state. ``remote_tools`` is what is in effect, not what is configured."""

    id: str
    channel: str = ""
    account: str
    bot_id: str | None = None
    user_id: str | None = None
    enabled: bool
    state: ComponentState
    last_success_unix_seconds: U64 | None = None
    error: str | None = None
    restarts: U64
    remote_tools: RemoteTools = RemoteTools.NONE


class DelegationInfo(Wire):
    """One delegated process. ``orphaned`` means that the process which started it is gone."""

    handle: str
    agent: str
    session: str
    depth: U32
    pid: U32
    owner_pid: U32
    processes: U32
    cwd: str
    started_unix_seconds: U64
    orphaned: bool
    conversation: Maybe[str] = None
    turn: Maybe[U32] = None


class DelegationSummary(Wire):
    active: U64
    reaped: U64
    entries: Items[DelegationInfo] = ()
    killed: Items[str] = ()


class RestartInfo(Wire):
    """A restart that waits for idleness, at the latest until its deadline."""

    to_version: str
    waiting_for: Maybe[str] = None
    requester: Maybe[str] = None
    origin: Maybe[str] = None
    deadline_unix_seconds: U64


class DaemonStatus(Wire):
    version: str
    pid: U32
    components: Many[ComponentHealth]
    delegations: DelegationSummary = DelegationSummary(active=0, reaped=0)
    restart: Maybe[RestartInfo] = None
