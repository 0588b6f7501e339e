"""What the session server is given: the daemon's control, and the tools of a session."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Protocol

from bridge.clock import Clock
from bridge.config import SessionsTable
from bridge.errors import BridgeError
from bridge.protocol import ours
from bridge.sessions.agents import Agents
from bridge.store.contract import Store
from bridge.tools.contract import Tool


class ControlError(BridgeError):
    """The daemon did not do what it was asked; ``code`` is the wire's, the text is safe to show.

    The wire's codes are ``component_error``, ``delegation_error`` and ``restart_error``; ours beside them is
    ``unknown_account``: the command names one that is not there.
    """

    def __init__(self, code: str, text: str) -> None:
        super().__init__(text)
        self.code = code


def unknown_account(account: str) -> ControlError:
    return ControlError("unknown_account", f"the daemon has no account {account}: look at the status")


class Control(Protocol):
    """The daemon, as ``daemon.control`` sees it."""

    async def handle(self, command: ours.Command) -> ours.DaemonStatus:
        """Do ``command`` and tell the state after it.

        Raises:
            ControlError: it was not done.
        """
        ...


ToolsFactory = Callable[[bool, str], Mapping[str, Tool]]
"""The tools of a session, by name, from its ``no_tools`` and its ``channel`` (``""`` for none)."""


@dataclass(frozen=True, slots=True)
class Deadlines:
    """How long the server waits for others, in seconds.

    ``reply``: for room when a client does not read; ``turn``: for a cancelled turn to end; ``writer``: for
    frames that wait when a connection ends; ``stop``: for all that together.
    """

    reply: float = 3.0
    turn: float = 3.0
    writer: float = 3.0
    stop: float = 8.0


@dataclass(frozen=True, slots=True)
class Services:
    """What every session of a server uses."""

    agents: Agents
    tools: ToolsFactory
    store: Store
    clock: Clock
    control: Control
    table: SessionsTable
    deadlines: Deadlines = Deadlines()
