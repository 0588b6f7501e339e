"""The processes of one profile: one for each session, or one that all share."""

import asyncio
from pathlib import Path

from bridge.agents.acp.launch import Launch
from bridge.agents.acp.peer import Peer
from bridge.agents.acp.settings import AcpSettings
from bridge.logs import get_logger

log = get_logger(__name__)


class Peers:
    """Their lives run in ``tasks``."""

    def __init__(self, launch: Launch, settings: AcpSettings, tasks: asyncio.TaskGroup) -> None:
        self._launch, self._settings, self._tasks = launch, settings, tasks
        self._all: set[Peer] = set()
        self._shared: Peer | None = None

    async def take(self, cwd: Path) -> Peer:
        """A process that is ready, started in ``cwd`` where it is new.

        Raises:
            AgentError: it cannot be started.
        """
        peer = self._shared
        if peer is None or not peer.alive or peer.retired:
            peer = Peer(self._launch, cwd, self._settings.start_seconds)
            self._all.add(peer)
            task = self._tasks.create_task(peer.run(), name=f"{self._launch.name}/process")
            task.add_done_callback(lambda _: self._all.discard(peer))
            self._shared = peer if self._settings.shared else None
        try:
            await peer.ready()
        except BaseException:  # stopped, too: nobody will use it
            if not self._settings.shared:
                peer.stop()
            raise
        return peer

    def give_up(self, peer: Peer, reason: str) -> None:
        """It hangs: end it, once no turn of another session needs it."""
        if peer.is_busy:
            log.warning("acp.retired", agent=self._launch.name, reason=reason)
            peer.retired = True
        else:
            peer.stop(reason)

    def let_go(self, peer: Peer) -> None:
        """A session has left it: its own process ends, one that all share stays."""
        if not self._settings.shared:
            peer.stop()
        self.turn_over(peer)

    def turn_over(self, peer: Peer) -> None:
        """A turn in it has ended: what was given up ends with the last one."""
        if peer.retired and not peer.is_busy:
            peer.stop()

    def stop(self) -> None:
        for peer in self._all:
            peer.stop()
