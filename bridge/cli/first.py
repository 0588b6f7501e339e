"""The questions of ``turnbridge init``, and the file they lead to."""

from __future__ import annotations

import json
import socket
from ipaddress import ip_address
from typing import TYPE_CHECKING, Any
from urllib.parse import urlsplit

from bridge.cli.answers import one_of
from bridge.errors import ConfigError

if TYPE_CHECKING:
    from collections.abc import Callable

    from bridge.cli.answers import Answers
    from bridge.cli.first_agent import ChosenAgent
    from bridge.paths import Home

CONSOLE = "console"
PORT = 8470
NO_HTTPS = "warning: platforms want https: have a reverse proxy serve it, and set public_url in [web] to that"


def first(where: Home, answers: Answers, *, checks: bool = True) -> dict[str, Any]:
    """What the first settings are to say. ``checks``: the agent is asked whether all is well with it.

    Raises:
        ConfigError: an answer is missing or wrong.
    """
    from bridge import registry
    from bridge.cli import first_agent
    from bridge.paths import plain_name

    channels = registry.channels().names()
    listed = ", ".join(channels)
    chosen = {"channel": answers.to("channel", f"Which channel ({listed})", "", one_of(channels))}
    usual = "local" if chosen["channel"] == "console" else "main"
    chosen["account"] = answers.to("account", "A name for the account", usual, plain_name)
    chosen["agent"] = first_agent.ask(answers, chosen["channel"], checks=checks)
    question = "The port of this machine for webhooks and health"
    chosen["port"] = answers.to("port", question, str(free_port()), _port(where))
    if chosen["channel"] != "console":
        question = "The address by which the platform reaches this machine, https://... (Enter: none yet)"
        chosen["public_url"] = answers.to("public_url", question, "", _web(where, "public_url"))
        if _is_open(chosen["public_url"]):
            print(NO_HTTPS)
    return chosen


def _is_open(address: str) -> bool:
    """Whether what is sent there can be read on its way."""
    url = urlsplit(address)
    try:
        is_local = ip_address(url.hostname or "").is_loopback
    except ValueError:
        is_local = url.hostname == "localhost"
    return url.scheme == "http" and not is_local


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


def _web(where: Home, key: str) -> Callable[[Any], Any]:
    """Whether ``[web]`` takes it."""

    def check(value: Any) -> Any:
        from bridge.config import WebTable
        from bridge.tables import validate

        validate(WebTable, {key: value}, where.config, "web")
        return value

    return check


def text_of(where: Home, chosen: dict[str, Any]) -> str:
    """The settings, with the console, without the account that is to be signed in."""
    from bridge.cli.starter import head
    from bridge.toml_text import with_values

    agent: ChosenAgent = chosen["agent"]
    lines = [
        "",
        "[daemon]",
        f"agent = {json.dumps(agent.name)}",
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
    text = with_values("\n".join([*lines, ""]), ("agents", agent.name), agent.table)
    return head(where) + text
