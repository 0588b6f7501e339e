"""What a client may ask of the daemon itself, inside ``daemon.control``."""

from typing import Annotated, Literal

from pydantic import Field

from bridge.protocol.shared import RemoteTools
from bridge.protocol.wire import U64, Maybe, Wire


class Status(Wire):
    action: Literal["status"] = "status"


class Reload(Wire):
    action: Literal["reload"] = "reload"


class ChannelSet(Wire):
    """Switch an account. An absent ``workspace`` or ``remote_tools`` keeps what is set."""

    action: Literal["channel_set"] = "channel_set"
    channel: str
    account: str
    enabled: bool
    workspace: str | None = None
    remote_tools: Maybe[RemoteTools] = None


class ChannelLogout(Wire):
    action: Literal["channel_logout"] = "channel_logout"
    channel: str
    account: str


class Delegations(Wire):
    """List the running delegations; ``all`` adds the orphans."""

    action: Literal["delegations"] = "delegations"
    all: bool = False


class DelegationKill(Wire):
    action: Literal["delegation_kill"] = "delegation_kill"
    handle: Maybe[str] = None
    orphans: bool = False


class RestartWhenIdle(Wire):
    action: Literal["restart_when_idle"] = "restart_when_idle"
    version: Maybe[str] = None
    commit: Maybe[str] = None
    parent: Maybe[str] = None
    max_wait_seconds: Maybe[U64] = None


CommonCommand = Status | Reload | ChannelLogout | Delegations | DelegationKill | RestartWhenIdle
"""Those that `ours` leaves as they are."""

Command = Annotated[ChannelSet | CommonCommand, Field(discriminator="action")]
