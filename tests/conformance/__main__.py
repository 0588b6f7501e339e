"""Hold a server of protocol v3 to its rules: ``python -m tests.conformance [--socket PATH | --command
COMMAND]``.

Without either, our own session server is held to them. The exit code is 1 when a rule of the published
protocol is broken, and 2 when the server cannot be spoken to or the pattern fits no rule.
"""

import argparse
import asyncio
import os
import shlex
import sys
import tempfile
from collections import Counter
from collections.abc import AsyncIterator, Sequence
from pathlib import Path

from bridge import logs
from tests.conformance.remote import CommandServer, Remote, SocketServer
from tests.conformance.running import Outcome, Word, judge
from tests.conformance.server import ours
from tests.conformance.suite import Rule, chosen


def arguments(given: Sequence[str] | None = None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        prog="python -m tests.conformance", description=(__doc__ or "").split("\n")[0]
    )
    where = parser.add_mutually_exclusive_group()
    where.add_argument(
        "--socket", type=Path, metavar="PATH", help="a server that listens on this Unix socket"
    )
    where.add_argument("--command", metavar="COMMAND", help="a server on its standard input and output")
    parser.add_argument(
        "--only", default="*", metavar="PATTERN", help="rules by their ids, as '5.*' or '*queue*'"
    )
    parser.add_argument("--patience", type=float, default=10.0, metavar="SECONDS", help="for an answer (10)")
    parser.add_argument("--list", action="store_true", help="show the rules and hold nobody to them")
    options = parser.parse_args(given)
    if not chosen(options.only):
        parser.error(f"no rule's id fits --only {options.only!r}: --list shows them all")
    return options


async def run(options: argparse.Namespace) -> int:
    """Print a line for each rule, and how many were kept; returns the exit code."""
    rules = chosen(options.only)
    if options.list:
        for rule in rules:
            print(f"{rule.id:<30} {'ours' if rule.ours else '':<5} {rule.text}")
        return 0
    found: Counter[Word] = Counter()
    foreign = bool(options.socket or options.command)
    try:
        async for rule, outcome in outcomes(options, rules):
            word = Word.DIFFERS if foreign and rule.ours and outcome.word is Word.BROKEN else outcome.word
            found[word] += 1
            print(f"{rule.id:<30} {word:<10} {outcome.why or rule.text}", flush=True)
    except BrokenPipeError:  # whoever read the table has seen enough
        raise
    except OSError as error:
        print(f"the server cannot be spoken to: {error}", file=sys.stderr)
        return 2
    print(", ".join(f"{found[word]} {word}" for word in Word))
    return 1 if found[Word.BROKEN] else 0


async def outcomes(options: argparse.Namespace, rules: Sequence[Rule]) -> AsyncIterator[tuple[Rule, Outcome]]:
    if not (options.socket or options.command):
        for rule in rules:
            async with ours(rule, options.patience) as target:
                yield rule, await judge(rule, target)
        return
    with tempfile.TemporaryDirectory(prefix="tb-") as folder:
        server = remote(options, Path(folder).resolve())
        await server.probe()
        for rule in rules:
            server.workspace = Path(tempfile.mkdtemp(dir=folder)).resolve()
            yield rule, await judge(rule, server)
            await server.close()


def remote(options: argparse.Namespace, workspace: Path) -> Remote:
    if options.socket:
        return SocketServer(options.socket, workspace, options.patience)
    return CommandServer(shlex.split(options.command), workspace, options.patience)


def main(given: Sequence[str] | None = None) -> int:
    """The exit code. Our server's log, of clients that misbehave on purpose, stays out of the table."""
    options = arguments(given)
    logs.configure("critical")
    try:
        code = asyncio.run(run(options))
        sys.stdout.flush()
    except BrokenPipeError:  # nor does the interpreter's last flush reach anybody
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return 1
    return code


if __name__ == "__main__":
    sys.exit(main())
