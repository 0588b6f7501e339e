"""``turnbridge init``: the first settings by a few questions, and the first account signed in."""

from __future__ import annotations

import argparse
import sys
from typing import TYPE_CHECKING, Any

from bridge.cli.common import INTERRUPTED, add_home, home, typed
from bridge.errors import ConfigError

if TYPE_CHECKING:
    from bridge.cli.answers import Given
    from bridge.cli.common import Commands
    from bridge.paths import Home

HOW = """\
On a terminal it asks. Otherwise standard input has the answers, a line KEY=VALUE for each: channel, account,
public_url, port, agent, and all that "turnbridge channels login" takes. Only channel must be there. For
llm there are agent_provider, agent_base_url, agent_model, and agent_key, which is the key or env:NAME for a
variable that the daemon has; for acp agent_preset, agent_command, and agent_guests, who answers others.
"""


def register(commands: Commands) -> None:
    parser = commands.add_parser(
        "init", help="write the first settings, and sign the first account in", epilog=HOW
    )
    parser.add_argument(
        "--no-check", action="store_true", help="ask neither agent nor platform before saving"
    )
    add_home(parser)
    parser.set_defaults(run=run)


def run(args: argparse.Namespace) -> int:
    """Exit codes as of ``channels login``. Where that fails, or is ended, nothing is left."""
    where = home(args)
    if where.config.exists():
        another = typed(where, "channels login CHANNEL")
        raise ConfigError(f"{where.config} is there already; for another account: {another}")
    try:
        return _made(where, checks=not args.no_check)
    except KeyboardInterrupt:
        if where.config.exists():
            raise
        print("\nnothing was written", file=sys.stderr)
        return INTERRUPTED


def _made(where: Home, *, checks: bool) -> int:
    from bridge.cli.answers import Person
    from bridge.cli.first import first

    answers = Person() if sys.stdin.isatty() else _given(sys.stdin.read())
    chosen = first(where, answers, checks=checks)
    code = _signed_in(where, chosen, answers.left, checks=checks)
    print("\n".join(_next(where, chosen)))
    return code


def _given(text: str) -> Given:
    """The answers of standard input, once each of their names is one that is there.

    Raises:
        ConfigError: one is none.
    """
    from bridge import registry
    from bridge.cli.answers import OURS, Given
    from bridge.cli.login import read_lines

    given, channels = Given(text), registry.channels()
    if given.channel in channels.names():  # else that is told, as of the first of all answers
        read_lines(given.left, channels.load(given.channel), OURS)
    return given


def _signed_in(where: Home, chosen: dict[str, Any], left: str, *, checks: bool) -> int:
    """Sign the account in. ``left`` is what standard input held beside our own answers.

    The settings are written with the account, whole, once nothing more is asked for.
    """
    import io

    from bridge.cli.first import text_of
    from bridge.cli.first_agent import keep_key
    from bridge.cli.login import sign_in

    def fresh() -> str:
        keep_key(where, chosen["agent"])
        return text_of(where, chosen)

    stdin = sys.stdin
    if not stdin.isatty():
        sys.stdin = io.StringIO(left)
    try:
        more = chosen["agent"].account
        return sign_in(where, chosen["channel"], chosen["account"], checks=checks, more=more, fresh=fresh)
    finally:
        sys.stdin = stdin


def _next(where: Home, chosen: dict[str, Any]) -> list[str]:
    from bridge.cli.first import CONSOLE
    from bridge.config import load

    own = load(where.config).channels[chosen["channel"]][chosen["account"]]
    account = f"{chosen['channel']}:{chosen['account']}"
    steps = {
        **_starting(),
        "doctor": "when it runs: see whether all is well",
    }
    if chosen["channel"] != CONSOLE and not own.get("owner"):
        steps[f"pair {account}"] = "become its owner"
    steps["chat"] = "talk to it in this terminal"
    commands = {typed(where, words): why for words, why in steps.items()}
    width = max(map(len, commands))
    return [
        "",
        f"The settings are in {where.config}. Next:",
        *(f"  {command:<{width}}  {why}" for command, why in commands.items()),
    ]


def _starting() -> dict[str, str]:
    from bridge.cli import systemd

    if not systemd.is_there():
        return {"run": "run it here, in the foreground; or have your own service manager run it"}
    return {
        "service install": "run it, now and whenever this machine starts",
        "run": "or run it here, in the foreground",
    }
