"""The command ``turnbridge``: one file per command, each of which imports what it needs when it runs.

Exit codes: 0 yes, 1 no or unhealthy, 2 usage or settings, 3 the daemon is not running.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence
from importlib import import_module
from typing import Any, NoReturn

from bridge.cli import common
from bridge.version import VERSION

COMMANDS = {
    "init": "init",
    "run": "run",
    "service": "service",
    "chat": "chat",
    "exec": "exec_turn",
    "try": "try_it",
    "channels": "channels",
    "status": "status",
    "doctor": "doctor",
    "pair": "pair",
    "send": "send",
    "confirm": "confirm",
    "dead": "dead",
    "usage": "usage",
    "reload": "reload",
    "stop": "stop",
    "agents": "agents",
    "tools": "tools",
    "mcp": "mcp",
    "skills": "skills",
    "session": "session",
    "config": "config",
    "completion": "completion",
    "fake": "fake",
}
"""Each command's module, in the order of the help."""
ERROR_CHARACTERS = 1000


class Parser(argparse.ArgumentParser):
    """And its commands' parsers: what was typed is shown harmlessly in their errors, and not whole."""

    def error(self, message: str) -> NoReturn:
        cut = f"{message[:ERROR_CHARACTERS]}…" if len(message) > ERROR_CHARACTERS else message
        super().error(common.visible(cut))


def main(argv: Sequence[str] | None = None) -> int:
    """Run one command and return its exit code. Every error is one line on standard error."""
    common.open_streams()
    common.lenient()
    words = sys.argv[1:] if argv is None else argv
    args, unknown = parser(needed(words)).parse_known_args(words)
    if unknown:
        args.command.error(f"unrecognized arguments: {' '.join(unknown)}")  # with the command's own usage
    try:
        code = int(args.run(args))
        sys.stdout.flush()
    except KeyboardInterrupt:
        return common.INTERRUPTED
    except BrokenPipeError:  # whoever read the output has seen enough
        return common.silenced()
    except Exception as error:  # noqa: BLE001 - the outermost call: a person gets a line, not a traceback
        return common.explain(error)
    return code


def needed(words: Sequence[str]) -> Sequence[str]:
    """The commands whose modules are loaded for ``words``: one starts at once when no other's is."""
    first = words[0] if words else ""
    if first == "--version":
        return ()
    return (first,) if first in COMMANDS and first != "completion" else tuple(COMMANDS)  # which tells of all


def parser(names: Sequence[str] = tuple(COMMANDS)) -> argparse.ArgumentParser:
    """Of the commands ``names``."""
    top = Parser(
        prog="turnbridge", description="Talk to an AI agent from the chat applications you already use."
    )
    top.add_argument("--version", action="version", version=f"turnbridge {VERSION}")
    commands = top.add_subparsers(title="commands", metavar="COMMAND", required=True)
    for name in names:
        import_module(f"bridge.cli.{COMMANDS[name]}").register(commands)
    _name_commands(commands)
    return top


def _name_commands(commands: argparse._SubParsersAction[Any]) -> None:
    """Let what is parsed know its parser, which of a nested command is the innermost."""
    for command in commands.choices.values():
        command.set_defaults(command=command)
        for action in command._actions:  # argparse has no public way to list them
            if isinstance(action, argparse._SubParsersAction):
                _name_commands(action)
