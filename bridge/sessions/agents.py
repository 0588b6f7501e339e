"""The agents of a server by their profiles' names: each is made when it is first needed, and then stays."""

import asyncio
import os
from collections.abc import Callable, Coroutine
from contextlib import AbstractAsyncContextManager
from dataclasses import dataclass
from typing import Any, Protocol, TypeVar

from bridge.agents.contract import Agent, AgentError, AgentPlace, Leaves, Runs
from bridge.clock import Clock
from bridge.errors import BridgeError, ConfigError
from bridge.logs import get_logger
from bridge.paths import Home
from bridge.profiles import Profile
from bridge.protocol.ours import SETUP_REQUIRED
from bridge.sessions.errors import RequestError
from bridge.sessions.isolate import Isolated

T = TypeVar("T")

STOP_SECONDS = 3.0  # for what an agent runs to end
LEAVE_SECONDS = 3.0
FOLDER = "agents"  # of the private files

log = get_logger(__name__)


class Known(Protocol):
    """The profiles' side that is used here."""

    @property
    def default(self) -> str: ...

    def names(self) -> list[str]: ...

    def read(self, name: str) -> Profile:
        """Blocking. Raises ConfigError."""
        ...


@dataclass(slots=True)
class Made:
    """``secrets`` is the stamp of its private file as it was then.

    ``running`` is there while it is started, and done once it has.
    """

    name: str
    agent: Agent
    own_tools: bool
    secrets: object
    running: asyncio.Future[None] | None = None


class Agents:
    """``run`` starts those that have something to start, once each, and ends it when it is cancelled."""

    def __init__(
        self, profiles: Known, home: Home, clock: Clock, mcp: Callable[[], list[dict[str, Any]]] = list
    ) -> None:
        self._profiles, self._home, self._clock, self._mcp = profiles, home, clock, mcp
        self._made: dict[str, Made] = {}
        self._to_start: asyncio.Queue[Made] = asyncio.Queue()

    @property
    def default(self) -> str:
        return self._profiles.default

    def names(self) -> list[str]:
        """What there is to choose from."""
        return self._profiles.names()

    async def make(self, name: str) -> Made:
        """Raises ConfigError: there is no such agent, or it cannot be used."""
        if (made := self._made.get(name)) is not None:
            return made
        secrets = self._secrets(name)
        profile = await asyncio.to_thread(self._profiles.read, name)
        if name not in self._made:  # another may have made it meanwhile
            place = AgentPlace(name, self._home, self._clock, self._mcp)
            agent = profile.spec.create(profile.settings, place)
            self._made[name] = Made(name, agent, profile.spec.own_tools, secrets)
        return self._made[name]

    def outdated(self) -> list[str]:
        """Those that were made with other secrets than their files have now."""
        return [made.name for made in self._made.values() if self._secrets(made.name) != made.secrets]

    def _secrets(self, name: str) -> object:
        try:
            found = os.stat(self._home.credentials(FOLDER, name))
        except (ConfigError, OSError):  # no file has such a name; or none is there
            return None
        return found.st_ino, found.st_size, found.st_mtime_ns

    async def get(self, name: str, no_tools: bool = False) -> Agent:
        """The agent ``name``, "" for the default, for a session that has tools or none.

        Raises:
            RequestError: ``invalid_request``: there is no such agent, or not for it; ``setup_required``: it
                cannot be used as long as something lacks.
        """
        try:
            made = await self.make(name or self.default)
        except ConfigError as error:
            known = self.names()
            if (name or self.default) in known:
                raise RequestError(SETUP_REQUIRED, str(error)) from error
            raise RequestError("invalid_request", f"{error}; the agents here: {', '.join(known)}") from error
        if no_tools and made.own_tools:
            text = f"the agent {made.name} has tools of its own, and this session may have none: take another"
            raise RequestError("invalid_request", text)
        return made.agent

    async def started(self, name: str, no_tools: bool = False) -> Agent:
        """As ``get``, once all is started that it needs.

        Raises:
            AgentError: it could not be started.
        """
        agent = await self.get(name, no_tools)
        made = self._made[name or self.default]
        if isinstance(agent, Runs):
            if made.running is None:
                made.running = asyncio.get_running_loop().create_future()
                self._to_start.put_nowait(made)
            running = made.running
            await asyncio.wait([running])
            running.result()
        return agent

    async def leave(self, name: str, session_id: str) -> None:
        """Tell the agent that nobody is in the session any more; whatever comes of it."""
        made = self._made.get(name or self.default)
        if made is None or not isinstance(made.agent, Leaves):
            return
        try:
            await asked(made.agent.leave(session_id), f"agent {made.name}/leave", LEAVE_SECONDS)
        except AgentError as error:
            log.warning("agent.not_left", agent=made.name, error=error)

    async def run(self) -> None:
        """Until cancelled."""
        async with asyncio.TaskGroup() as tasks:
            while True:
                made = await self._to_start.get()
                tasks.create_task(self._run(made), name=f"agent {made.name}")

    async def _run(self, made: Made) -> None:
        """What it runs, until it breaks: whoever needs it next starts it again."""
        agent, running = made.agent, made.running
        if not isinstance(agent, Runs) or running is None:
            return
        work = Isolated(_hold(agent.running(), running), f"agent {made.name}/running", STOP_SECONDS)
        error: BaseException | None = None
        try:
            error = await work.ended()
            log.error("agent.ended", agent=made.name, error=error)
        finally:
            made.running = None
            if not running.done():
                text = (
                    str(error) if isinstance(error, BridgeError) else "it did not start: see the daemon's log"
                )
                running.set_exception(AgentError("provider_error", f"the agent {made.name}: {text}"))
                running.exception()  # looked at, also where nobody waits any more


async def _hold(running: AbstractAsyncContextManager[None], entered: asyncio.Future[None]) -> None:
    async with running:
        entered.set_result(None)
        await asyncio.get_running_loop().create_future()


async def asked(work: Coroutine[Any, Any, T], name: str, seconds: float) -> T:
    """What an agent says outside of its turns, within ``seconds``.

    Raises:
        AgentError: its own, or ``internal_error`` for a bug and for one that takes too long.
    """
    said: list[T] = []

    async def listen() -> None:
        said.append(await work)

    try:
        async with asyncio.timeout(seconds):
            error = await Isolated(listen(), name, STOP_SECONDS).ended()
    except TimeoutError as late:
        raise AgentError("provider_error", "the agent did not answer in time") from late
    if isinstance(error, AgentError):
        raise error
    if error is not None:
        log.error("agent.broken", work=name, error=error)
        raise AgentError("internal_error", "the agent broke off: see the daemon's log")
    return said[0]
