"""Answers to the questions of ``init``: a person's, who is asked again, or lines of standard input."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Protocol

from bridge.cli.common import visible
from bridge.errors import ConfigError

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

OURS = (
    "channel", "account", "public_url", "port", "agent", "agent_provider", "agent_base_url", "agent_model",
    "agent_key", "agent_preset", "agent_command", "agent_guests",
)  # fmt: skip


class Answers(Protocol):
    @property
    def left(self) -> str:
        """What was given beside the answers that were asked for."""
        ...

    def to(
        self, key: str, question: str, default: str, check: Callable[[str], Any], *, hidden: bool = False
    ) -> Any:
        """What ``check`` makes of the answer, which is ``default`` where none is given; ``hidden``: a secret.

        Raises:
            ConfigError: there is no answer that it takes; its text says why.
        """
        ...

    def once_more(self, question: str) -> bool:
        """Whether whoever answers would rather answer anew what turned out wrong; "keep" is no."""
        ...


class Person:
    """Asks in the terminal, and again when an answer will not do.

    Whoever is asked the same question anew is offered what they typed before.
    """

    left = ""

    def __init__(self) -> None:
        self._before: dict[str, str] = {}  # by question

    def to(
        self, key: str, question: str, default: str, check: Callable[[str], Any], *, hidden: bool = False
    ) -> Any:
        offered = self._before.get(question, default)
        shown = "as it was typed" if hidden and offered != default else offered
        while True:
            answer = _typed(f"{question}{f' [{shown}]' if shown else ''}: ", hidden=hidden) or offered
            try:
                found = check(answer)
            except ConfigError as error:
                print(visible(str(error)))
            else:
                self._before[question] = answer
                return found

    def once_more(self, question: str) -> bool:
        return _typed(question, hidden=False).lower() != "keep"


def _typed(prompt: str, *, hidden: bool) -> str:
    """Raises ConfigError when nobody answers."""
    from getpass import getpass

    try:
        return (getpass(prompt) if hidden else input(prompt)).strip()
    except EOFError:
        raise ConfigError("nothing was written: the input ended") from None


class Given:
    """Lines ``KEY=VALUE``; what is not ours is for whoever signs in, each line in its place."""

    def __init__(self, text: str) -> None:
        self._ours: dict[str, str] = {}
        rest: list[str] = []
        for line in text.splitlines():
            key, equals, value = line.partition("=")
            if equals and key.strip() in OURS:
                self._ours[key.strip()] = value.strip()
                rest.append("")
            else:
                rest.append(line)
        self.left = "\n".join(rest)
        self.channel = self._ours.get("channel", "")

    def to(
        self, key: str, question: str, default: str, check: Callable[[str], Any], *, hidden: bool = False
    ) -> Any:
        try:
            return check(self._ours.get(key) or default)
        except ConfigError as error:
            raise ConfigError(f"{key}: {error}") from None

    def once_more(self, question: str) -> bool:
        """It has said all that it has to say."""
        return False


def one_of(names: Sequence[str]) -> Callable[[str], str]:
    def check(text: str) -> str:
        if text not in names:
            raise ConfigError(f"choose one of: {', '.join(names)}")
        return text

    return check
