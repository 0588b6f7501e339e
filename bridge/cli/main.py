"""The command ``turnbridge``: one file per command, each of which imports what it needs when it runs.

Exit codes: 0 yes, 1 no or unhealthy, 2 usage or settings, 3 the daemon is not running.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence

from bridge.cli import (
    channels,
    chat,
    common,
    completion,
    config,
    dead,
    doctor,
    exec_turn,
    fake,
    init,
    pair,
    reload,
    run,
    send,
    service,
    session,
    status,
    stop,
    try_it,
)
from bridge.version import VERSION


def main(argv: Sequence[str] | None = None) -> int:
    """Run one command and return its exit code. Every error is one line on standard error."""
    common.open_streams()
    common.lenient()
    args, unknown = parser().parse_known_args(argv)
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


def parser() -> argparse.ArgumentParser:
    top = argparse.ArgumentParser(
        prog="turnbridge", description="Talk to an AI agent from the chat applications you already use."
    )
    top.add_argument("--version", action="version", version=f"turnbridge {VERSION}")
    commands = top.add_subparsers(title="commands", metavar="COMMAND", required=True)
    for command in (
        init, run, service, chat, exec_turn, try_it, channels, status, doctor, pair, send, dead, reload, stop,
        session, config, completion, fake,
    ):  # fmt: skip
        command.register(commands)
    _name_commands(commands)
    return top


def _name_commands(commands: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    """Let what is parsed know its parser, which of a nested command is the innermost."""
    for command in commands.choices.values():
        command.set_defaults(command=command)
        for action in command._actions:  # argparse has no public way to list them
            if isinstance(action, argparse._SubParsersAction):
                _name_commands(action)
