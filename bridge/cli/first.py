"""The questions of ``turnbridge init``, asked of a person or answered by lines, and the file they lead to."""

from __future__ import annotations

import json
import socket
from typing import TYPE_CHECKING, Any, Protocol

from bridge.cli.common import visible
from bridge.errors import ConfigError

if TYPE_CHECKING:
    from collections.abc import Callable

    from bridge.paths import Home

CONSOLE = "console"
PORT = 8470
OURS = ("channel", "account", "public_url", "port", "agent")


class Answers(Protocol):
    @property
    def left(self) -> str:
        """What was given beside the answers that were asked for."""
        ...

    def to(self, key: str, question: str, default: str, check: Callable[[str], Any]) -> Any:
        """What ``check`` makes of the answer, which is ``default`` where none is given.

        Raises:
            ConfigError: there is no answer that it takes; its text says why.
        """
        ...


class Person:
    """Asks in the terminal, and again when an answer will not do."""

    left = ""

    def to(self, key: str, question: str, default: str, check: Callable[[str], Any]) -> Any:
        while True:
            try:
                answer = input(f"{question}{f' [{default}]' if default else ''}: ").strip()
            except EOFError:
                raise ConfigError("nothing was written: the input ended") from None
            try:
                return check(answer or default)
            except ConfigError as error:
                print(visible(str(error)))


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

    def to(self, key: str, question: str, default: str, check: Callable[[str], Any]) -> Any:
        try:
            return check(self._ours.get(key) or default)
        except ConfigError as error:
            raise ConfigError(f"{key}: {error}") from None


def first(where: Home, answers: Answers) -> dict[str, Any]:
    """What the first settings are to say.

    Raises:
        ConfigError: an answer is missing or wrong.
    """
    from bridge import registry
    from bridge.paths import plain_name

    channels, agents = registry.channels().names(), registry.agents().names()
    listed = ", ".join(channels)
    chosen = {"channel": answers.to("channel", f"Which channel ({listed})", "", _one_of(channels))}
    usual = "local" if chosen["channel"] == "console" else "main"
    chosen["account"] = answers.to("account", "A name for the account", usual, plain_name)
    agent = "echo" if "echo" in agents else agents[0]
    question = f"Which agent answers ({', '.join(agents)})"
    chosen["agent"] = answers.to("agent", question, agent, _one_of(agents)) if len(agents) > 1 else agent
    question = "The port of this machine for webhooks and health"
    chosen["port"] = answers.to("port", question, str(free_port()), _port(where))
    if chosen["channel"] != "console":
        question = "The address by which the platform reaches this machine, https://... (Enter: none yet)"
        chosen["public_url"] = answers.to("public_url", question, "", _web(where, "public_url"))
    return chosen


def _port(where: Home) -> Callable[[str], int]:
    def check(text: str) -> int:
        if not text.isascii() or not text.isdigit():
            raise ConfigError("a port is a number")
        port: int = _web(where, "port")(int(text[:9]))
        if not is_free(port):
            raise ConfigError(f"the port {port} is taken: choose another")
        return port

    return check


def free_port() -> int:
    """The usual one, or the next that nobody listens on."""
    return next((port for port in range(PORT, PORT + 100) if is_free(port)), PORT)


def is_free(port: int) -> bool:
    try:
        with socket.create_server(("127.0.0.1", port)):
            return True
    except OSError:
        return False


def _one_of(names: list[str]) -> Callable[[str], str]:
    def check(text: str) -> str:
        if text not in names:
            raise ConfigError(f"choose one of: {', '.join(names)}")
        return text

    return check


def _web(where: Home, key: str) -> Callable[[Any], Any]:
    """Whether ``[web]`` takes it."""

    def check(value: Any) -> Any:
        from bridge.config import WebTable
        from bridge.tables import validate

        validate(WebTable, {key: value}, where.config, "web")
        return value

    return check


def write(where: Home, chosen: dict[str, Any]) -> None:
    """The settings for their owner alone: with the console, without the account that is to be signed in.

    Raises:
        ConfigError: they cannot be written.
    """
    from bridge.cli.starter import head
    from bridge.paths import write_private

    lines = [
        "",
        "[daemon]",
        f"agent = {json.dumps(chosen['agent'])}",
        "",
        "[web]",
        f"port = {chosen['port']}",
    ]
    if chosen.get("public_url"):
        lines.append(f"public_url = {json.dumps(chosen['public_url'])}")
    if chosen.get("channel") != CONSOLE:
        lines += [
            "",
            "# turnbridge chat: whoever can open this home is its owner.",
            "[channels.console.local]",
        ]
    where.private_dir(where.root)
    write_private(where.config, (head(where) + "\n".join([*lines, ""])).encode())
