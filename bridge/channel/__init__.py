"""All that an adapter may import: the contract, its errors, HTTP and text helpers."""

from bridge.channel.contract import (
    Answer,
    AnsweredByAsking,
    Ask,
    Batch,
    Channel,
    Claimed,
    Context,
    Delivered,
    FetchesFiles,
    FileKind,
    FileWanted,
    Identity,
    Ignored,
    Inbound,
    Incoming,
    Item,
    OutboundFile,
    OutboundPart,
    Polls,
    Probes,
    Pushed,
    Reading,
    Refused,
    RemoteFile,
    RepliesInResponse,
    Request,
    ResolvesReferences,
    SendOutcome,
    Sends,
    SendsFiles,
    ServesFiles,
    ShowsTyping,
    Unreadable,
    WaitingPart,
    Withdrawn,
)
from bridge.channel.guard import Guard
from bridge.channel.http import Http, HttpAnswer, failure
from bridge.channel.spec import (
    ChannelCredentials,
    ChannelSettings,
    ChannelSpec,
    MediaSettings,
    Place,
    RemoteTools,
    UnknownOutcome,
)
from bridge.channel.text import Limit, Unit
from bridge.errors import (
    ChannelError,
    ConfigError,
    CredentialsError,
    OutcomeUnknownError,
    UnreachableError,
)

__all__ = [
    "Answer", "AnsweredByAsking", "Ask", "Batch", "Channel", "ChannelCredentials", "ChannelError",
    "ChannelSettings", "ChannelSpec", "Claimed", "ConfigError", "Context", "CredentialsError", "Delivered",
    "FetchesFiles", "FileKind", "FileWanted", "Guard", "Http", "HttpAnswer", "Identity", "Ignored", "Inbound",
    "Incoming", "Item", "Limit", "MediaSettings", "OutboundFile", "OutboundPart", "OutcomeUnknownError", "Place",
    "Polls", "Probes", "Pushed", "Reading", "Refused", "RemoteFile", "RemoteTools", "RepliesInResponse", "Request",
    "ResolvesReferences", "SendOutcome", "Sends", "SendsFiles", "ServesFiles", "ShowsTyping", "Unit",
    "UnknownOutcome", "Unreadable", "UnreachableError", "WaitingPart", "Withdrawn", "failure",
]
