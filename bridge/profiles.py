"""Named agents: each table ``[agents.<name>]`` is a profile, whose key ``type`` names the installed agent.

Without that key the profile's own name does. An installed agent without a table is a profile of its defaults.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol

from bridge.agents.contract import AgentSettings, AgentSpec
from bridge.config import Config
from bridge.errors import ConfigError
from bridge.paths import Home
from bridge.tables import validate


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
