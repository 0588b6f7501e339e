"""Named agents: each table ``[agents.<name>]`` is a profile, whose key ``type`` names the installed agent.

Without that key the profile's own name does. An installed agent without a table is a profile of its defaults.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Protocol

from bridge.agents.contract import AgentSettings, AgentSpec
from bridge.channel.spec import ChannelSettings, RemoteTools
from bridge.config import Config
from bridge.errors import ConfigError
from bridge.paths import Home
from bridge.tables import nearest, validate


@dataclass(frozen=True, slots=True)
class Profile:
    """An agent with its settings, ready to be made."""

    name: str
    spec: AgentSpec
    settings: AgentSettings


class Installed(Protocol):
    """The registry's side that is used here: nothing is imported before it is loaded."""

    def names(self) -> list[str]: ...

    def load(self, name: str) -> AgentSpec:
        """Raises ConfigError when it cannot be used."""
        ...


class Profiles:
    """Those of ``config``. ``default`` answers where nothing else is said."""

    def __init__(self, config: Config, home: Home, installed: Installed) -> None:
        self.default = config.daemon.agent
        self._tables, self._path, self._installed = config.agents, home.config, installed
        self._own_tools: dict[str, bool] = {}

    def names(self) -> list[str]:
        """The default and those that have a table, in order."""
        return sorted({self.default, *self._tables})

    def read(self, name: str) -> Profile:
        """The profile of that name. Loads its agent's module: blocking.

        Raises:
            ConfigError: there is none, or it cannot be used; the text names the place.
        """
        table = self._tables.get(name)
        where = "daemon.agent" if table is None and name == self.default else f"agents.{name}"
        if table is None and name not in self._installed.names():
            raise ConfigError(f"{self._path}: {where}: {self._none(name)}")
        own = dict(table or {})
        kind = own.pop("type", name)
        if table is not None and kind not in self._installed.names():
            known = ", ".join(self._installed.names())
            raise ConfigError(
                f"{self._path}: {where}.type: must name an installed agent: {known or 'there is none'}"
            )
        try:
            spec = self._installed.load(kind)
        except ConfigError as error:
            raise ConfigError(f"{self._path}: {where}: {error}") from error
        return Profile(name, spec, validate(spec.settings, own, self._path, where))

    def check(self, settings: ChannelSettings, where: str) -> list[str]:
        """What is wrong with the agents that an account, the table ``where``, names. Blocking.

        What is wrong with the default is told of it, not of each account.
        """
        wrong = [line for key in ("agent", "guest_agent") for line in self._unknown(settings, key, where)]
        return wrong or list(self._misplaced(settings, where))

    def _unknown(self, settings: ChannelSettings, key: str, where: str) -> Iterator[str]:
        name = getattr(settings, key)
        if name and name not in self._tables and name not in self._installed.names():
            yield f"{where}.{key}: {self._none(name)}"
        elif name:
            try:
                self.read(name)
            except ConfigError as error:
                yield str(error)

    def _none(self, name: str) -> str:
        names = sorted({*self._tables, *self._installed.names()})
        known = ", ".join(names) or "none"
        if meant := nearest(name, names):
            return f"there is no agent called {name!r}: {meant} There are {known}"
        cure = f"name one, or add [agents.{name}] and restart"
        return f"there is no agent called {name!r}: there are {known}; {cure}"

    def _misplaced(self, settings: ChannelSettings, where: str) -> Iterator[str]:
        """An agent with tools of its own answers only where there are tools."""
        agent, tools = settings.agent or self.default, settings.remote_tools is RemoteTools.OWNER
        guest = settings.guest_agent or agent
        if settings.agent and not tools and self._has_own_tools(agent):
            yield (
                f'{where}.agent: {agent} has tools of its own, so it answers where remote_tools = "owner": '
                "set that, or name another"
            )
        elif (settings.guests or not tools) and self._has_own_tools(guest):
            text = "name another" if settings.guest_agent else 'say who does, such as guest_agent = "echo"'
            yield (
                f"{where}.guest_agent: {guest} has tools of its own, so it answers nobody but the owner with "
                f"tools: {text}"
            )

    def _has_own_tools(self, name: str) -> bool:
        if name not in self._own_tools:
            try:
                self._own_tools[name] = self.read(name).spec.own_tools
            except ConfigError:  # told elsewhere
                return False
        return self._own_tools[name]
