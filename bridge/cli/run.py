"""``turnbridge run``: the daemon, in the foreground."""

from __future__ import annotations

import argparse
import gc
from typing import TYPE_CHECKING

from bridge.cli.common import add_home, home, silenced, typed, typed_anywhere

if TYPE_CHECKING:
    from asyncio import AbstractEventLoop
    from collections.abc import Callable

    from bridge.cli.common import Commands
    from bridge.config import Config
    from bridge.daemon import Ready
    from bridge.paths import Home

END_SECONDS = 2.0  # for threads that still work when the daemon has ended


def register(commands: Commands) -> None:
    parser = commands.add_parser("run", help="run the daemon")
    add_home(parser)
    parser.add_argument(
        "--init", action="store_true", help="where there are no settings yet, write some to try it with"
    )
    parser.set_defaults(run=run)


def run(args: argparse.Namespace) -> int:
    """Run until SIGTERM or Ctrl+C (exit 0). Logs go to standard error."""
    gc.disable()  # what is loaded now stays: collections begin when all of it is there
    try:
        return start(args)
    finally:
        gc.enable()


def start(args: argparse.Namespace) -> int:
    from bridge import logs
    from bridge.config import load
    from bridge.errors import ConfigError
    from bridge.process import need_descriptors

    where = home(args)
    need_descriptors()
    if args.init and not where.config.exists():
        from bridge.cli.starter import write

        write(where)
        print(f"wrote {where.config}")
    if not where.config.exists():
        raise ConfigError(
            f"{where.config} is missing: make it: {typed(where, 'init')}; "
            f"or have some written to try it with: {typed(where, 'run --init')}"
        )
    config = load(where.config).shared
    logs.configure(config.log.level, as_json={"json": True, "console": False}.get(config.log.format))
    return serve(where, config)


def serve(where: Home, config: Config) -> int:
    import asyncio
    import os
    import sys
    import threading

    from bridge.clock import SystemClock
    from bridge.daemon import run_daemon
    from bridge.process import keep_others_out, spare_collections

    keep_others_out()

    def ready(state: Ready) -> None:
        spare_collections()
        try:
            print(greeting(where, state, sys.stdout.isatty()), flush=True)
        except OSError:  # nobody reads it, or the disk that keeps it is full: no reason to end
            silenced()

    with asyncio.Runner(loop_factory=loop_factory()) as runner:
        code = runner.run(run_daemon(where, config, clock=SystemClock(), ready=ready))
        hung = threading.Timer(END_SECONDS, os._exit, (code,))
        hung.daemon = True
        hung.start()
    hung.cancel()
    return code


def loop_factory() -> Callable[[], AbstractEventLoop] | None:
    """uvloop's, where it is installed: a waiting TLS connection takes a fifth of the memory."""
    try:
        import uvloop
    except ImportError:
        return None
    return uvloop.new_event_loop


def greeting(where: Home, state: Ready, at_terminal: bool) -> str:
    """Where everything is, and the one line to type next; at a terminal also how it is stopped there."""
    lines = [
        "",
        "  Turnbridge is running." + ("  Ctrl+C stops it." if at_terminal else ""),
        "",
        f"    settings   {where.config}",
        f"    health     {state.address}/healthz",
    ]
    lines += [f"    account    {account.id}" for account in state.accounts]
    if not state.accounts:
        login = typed_anywhere(where, "channels login console")
        lines += [
            "",
            "  It has no account yet. In another terminal, for a chat there, or for another channel:",
        ]
        lines += ["", f"    {login}"]
    chat, attempt, status = (typed_anywhere(where, command) for command in ("chat", "try", "status"))
    there = {account.id for account in state.accounts}
    if "console:local" in there:
        lines += ["", "  Now, in another terminal, talk to it:", "", f"    {chat}"]
    if "webhook:demo" in there:
        lines += ["", "  Send it a picture over HTTP, and get it back:", "", f"    {attempt}"]
    lines += ["", "  How it is, at any time:", "", f"    {status}"]
    return "\n".join([*lines, ""])
