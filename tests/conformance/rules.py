"""What a rule is: a sentence of the protocol, and a function that shows whether a server keeps it."""

import fnmatch
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Any

from tests.conformance.target import Target

Shown = Callable[[Target], Awaitable[None]]


class Need(StrEnum):
    """What a rule asks of a target beyond one connection; the value says what is lacking where it is not
    there."""

    ECHO = "needs an agent that obeys the echo agent's commands"
    SHARED = "needs several connections to one server"
    DAEMON = "needs a daemon's socket"
    STDIO = "needs a server on its standard input and output"
    FILES = "needs to see the server's socket file"
    HOME = "needs to know the server's home"
    SETTINGS = "needs a server started with settings of its own"
    STARTS = "needs to start and stop servers"


@dataclass(frozen=True, slots=True)
class Rule:
    """``broken_by`` names the variants of our server that do not keep it.

    ``ours`` marks what the published protocol recommends or leaves open: another server is not blamed for it.
    ``slow`` rules need seconds.
    """

    id: str
    text: str
    run: Shown
    broken_by: tuple[str, ...]
    ours: bool = False
    needs: frozenset[Need] = frozenset()
    settings: Mapping[str, Any] = field(default_factory=dict)
    slow: bool = False

    @property
    def order(self) -> tuple[int, ...]:
        """Section and number."""
        return tuple(int(part) for part in self.id.partition("-")[0].split("."))


RULES: dict[str, Rule] = {}


def rule(
    name: str,
    *needs: Need,
    broken_by: str,
    ours: bool = False,
    settings: Mapping[str, Any] | None = None,
    slow: bool = False,
) -> Callable[[Shown], Shown]:
    """Make a rule of a function whose docstring is the rule's sentence. ``broken_by``: names, divided by
    spaces."""

    def register(run: Shown) -> Shown:
        text = " ".join((run.__doc__ or "").split())
        wanted = frozenset(needs) | ({Need.SETTINGS} if settings else frozenset())
        assert name not in RULES, f"{name} is there twice"
        RULES[name] = Rule(name, text, run, tuple(broken_by.split()), ours, wanted, settings or {}, slow)
        return run

    return register


def chosen(pattern: str = "*") -> list[Rule]:
    """The rules whose ids fit ``pattern``, by section."""
    return [
        one for one in sorted(RULES.values(), key=lambda one: one.order) if fnmatch.fnmatch(one.id, pattern)
    ]
