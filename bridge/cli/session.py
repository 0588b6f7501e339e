"""``turnbridge session --stdio``: an agent's session for the program that starts it, without a daemon."""

from __future__ import annotations

import argparse
from typing import TYPE_CHECKING

from bridge.cli.common import add_home, home

if TYPE_CHECKING:
    from bridge.cli.common import Commands
    from bridge.config import Config
    from bridge.paths import Home
    from bridge.sessions.agents import Agents
    from bridge.sessions.contract import Services

END_SECONDS = 2.0  # for threads that still work when the session has ended
STDIN, STDOUT = 0, 1


def register(commands: Commands) -> None:
    parser = commands.add_parser("session", help="serve one agent session to the program that runs this")
    add_home(parser)
    parser.add_argument(
        "--stdio",
        action="store_true",
        required=True,
        help="speak the session protocol on standard input and output; diagnostics go to standard error",
    )
    parser.add_argument(
        "--agent", metavar="NAME", help="what answers (default: that of the settings, or echo)"
    )
    parser.add_argument(
        "--cwd", metavar="DIR", help='the folder that "." is in session.start (default: this one)'
    )
    parser.set_defaults(run=run)


def run(args: argparse.Namespace) -> int:
    """Serve until standard input ends, or SIGTERM or Ctrl+C (exit 0). Nothing of it is stored."""
    import os

    from bridge import logs
    from bridge.config import Config, load
    from bridge.errors import ConfigError

    where = home(args)
    config = load(where.config) if where.config.exists() else Config()
    logs.configure(config.log.level, as_json={"json": True, "console": False}.get(config.log.format))
    if args.cwd is not None:
        try:
            os.chdir(args.cwd)
        except OSError as error:
            raise ConfigError(f"--cwd {args.cwd}: {error.strerror}: give an existing folder") from error
    return serve(services(where, config, agents(where, config, args.agent or config.daemon.agent)))


def agents(where: Home, config: Config, default: str) -> Agents:
    """Those of the settings. Raises ConfigError: the one that answers where nothing else is said is none."""
    from bridge import registry
    from bridge.clock import SystemClock
    from bridge.profiles import Profiles
    from bridge.sessions.agents import Agents

    answering = config.daemon.model_copy(update={"agent": default})
    profiles = Profiles(config.model_copy(update={"daemon": answering}), where, registry.agents())
    profiles.read(default)
    return Agents(profiles, where, SystemClock())


def services(where: Home, config: Config, answering: Agents) -> Services:
    from bridge.clock import SystemClock
    from bridge.sessions.contract import Deadlines, Services
    from bridge.sessions.stdio import ForgetfulStore, NoDaemon
    from bridge.tools.choose import toolbox

    clock = SystemClock()
    return Services(
        agents=answering,
        tools=toolbox(where, clock, config.tools),
        store=ForgetfulStore(),
        clock=clock,
        control=NoDaemon(),
        table=config.sessions,
        deadlines=Deadlines(stop=config.daemon.stop_seconds),
    )


def serve(given: Services) -> int:
    import asyncio
    import os
    import threading

    from bridge.process import stopping
    from bridge.sessions.stdio import serve_stdio
    from bridge.version import VERSION

    async def serving() -> None:
        stop: asyncio.Future[int] = asyncio.get_running_loop().create_future()
        with stopping(stop, given.deadlines.stop):
            await serve_stdio(given, VERSION, STDIN, STDOUT, stop)

    with asyncio.Runner() as runner:
        runner.run(serving())
        hung = threading.Timer(END_SECONDS, os._exit, (0,))
        hung.daemon = True
        hung.start()
    hung.cancel()
    return 0
