"""What is installed: channels, agents, tools and kits, found by their entry points and imported one by one.

Ours and third parties' register alike, in ``[project.entry-points."turnbridge.channels"]`` and its kin.
Naming what there is imports none of it, and loading one imports no other.
"""

from collections.abc import Callable, Sequence
from importlib.metadata import EntryPoint, entry_points
from typing import Any, Generic, TypeVar

from bridge.agents.contract import AgentSpec
from bridge.channel.spec import ChannelSpec
from bridge.errors import ConfigError
from bridge.tools.contract import ToolSpec

T = TypeVar("T")

CHANNELS = "turnbridge.channels"
AGENTS = "turnbridge.agents"
TOOLS = "turnbridge.tools"
KITS = "turnbridge.kits"


class Registry(Generic[T]):
    """One group of entry points. ``word`` is what its entries are called, ``checked`` makes sure of one."""

    def __init__(self, word: str, points: Sequence[EntryPoint], checked: Callable[[str, object], T]) -> None:
        self._word, self._checked = word, checked
        self._points: dict[str, list[EntryPoint]] = {}
        for point in points:
            alike = self._points.setdefault(point.name, [])
            if point.value not in [other.value for other in alike]:
                alike.append(point)

    def names(self) -> list[str]:
        """All names, in order; nothing is imported."""
        return sorted(self._points)

    def origin(self, name: str) -> str:
        """Whose the entry is that is called ``name``: the packages that bring it."""
        return " and ".join(_origin(point) for point in self._points.get(name, []))

    def load(self, name: str) -> T:
        """The entry called ``name``.

        Raises:
            ConfigError: there is none, two packages bring one, or it cannot be loaded; the text says whose.
        """
        found = self._points.get(name, [])
        if not found:
            known = ", ".join(self.names()) or "none"
            raise ConfigError(f"there is no {self._word} called {name!r}; installed: {known}")
        if len(found) > 1:
            whose = self.origin(name)
            raise ConfigError(f"the {self._word} {name!r} is brought by {whose}: uninstall all but one")
        return self._load(found[0])

    def _load(self, point: EntryPoint) -> T:
        told = f"the {self._word} {point.name!r} of {_origin(point)}"
        try:
            value = point.load()
        except Exception as error:  # a third party's module may raise anything when imported
            raise ConfigError(f"{told} cannot be loaded: {_shown(error)}") from error
        try:
            return self._checked(point.name, value)
        except TypeError as error:
            raise ConfigError(f"{told} cannot be used: {error}") from None


def channels() -> Registry[ChannelSpec]:
    """The installed channels."""
    return Registry("channel", _points(CHANNELS), _channel)


def agents() -> Registry[AgentSpec]:
    """The installed agents."""
    return Registry("agent", _points(AGENTS), _agent)


def tools() -> Registry[ToolSpec]:
    """The installed tools of third parties: ours are none of them."""
    return Registry("tool", _points(TOOLS), _tool)


def kits() -> Registry[Callable[[], Any]]:
    """The installed kits of the contract suite, by their channels' names; calling one makes a fresh kit."""
    return Registry("kit", _points(KITS), _kit)


def _points(group: str) -> Sequence[EntryPoint]:
    return tuple(entry_points(group=group))


def _channel(name: str, value: object) -> ChannelSpec:
    if not isinstance(value, ChannelSpec):
        raise TypeError(f"it is no ChannelSpec but {type(value).__name__}")
    return _named(name, value, value.name)


def _agent(name: str, value: object) -> AgentSpec:
    if not isinstance(value, AgentSpec):
        raise TypeError(f"it is no AgentSpec but {type(value).__name__}")
    return _named(name, value, value.name)


def _tool(name: str, value: object) -> ToolSpec:
    if not isinstance(value, ToolSpec):
        raise TypeError(f"it is no ToolSpec but {type(value).__name__}")
    return _named(name, value, value.name)


def _kit(name: str, value: object) -> Callable[[], Any]:
    if not callable(value):
        raise TypeError(f"it is no function or class but {type(value).__name__}")
    return value


def _named(name: str, value: T, own: str) -> T:
    if own != name:
        raise TypeError(f"its entry point is called {name!r}, and it calls itself {own!r}")
    return value


def _origin(point: EntryPoint) -> str:
    """The distribution that brings it, or the module where that is not known."""
    return point.dist.name if point.dist else point.module


def _shown(error: Exception) -> str:
    """Its kind; and its text where that names a module, as any other text might hold anything."""
    kind = type(error).__name__
    return f"{kind}: {error}" if isinstance(error, ImportError) else kind
