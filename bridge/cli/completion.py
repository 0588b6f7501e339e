"""``turnbridge completion``: a script by which a shell completes our commands, options and their choices."""

from __future__ import annotations

import argparse
import re
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from bridge.cli.common import Commands

PLACES = {
    "bash": "~/.local/share/bash-completion/completions/turnbridge",
    "zsh": "~/.zfunc/_turnbridge",
}
NOTES = {"bash": "", "zsh": "   (with fpath+=~/.zfunc before compinit)"}
_HEAD = re.compile(
    r"(# AUTOMATICALLY GENERATED[^\n]*\n)(?:#[^\n]*\n)*"
)  # of which the rest names another place


def register(commands: Commands) -> None:
    parser = commands.add_parser(
        "completion",
        help="print a script that lets your shell complete commands",
        epilog="\n".join(f"{shell}:  {how(shell)}" for shell in PLACES),
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("shell", choices=sorted(PLACES))
    parser.set_defaults(run=run)


def run(args: argparse.Namespace) -> int:
    """Exit 0."""
    import shtab

    from bridge.cli.main import parser

    script = shtab.complete(parser(), shell=args.shell)
    place = f"# Put this into {PLACES[args.shell]}{NOTES[args.shell]}\n"
    print(_HEAD.sub(lambda found: found[1] + place, script, count=1))
    return 0


def how(shell: str) -> str:
    place = PLACES[shell]
    folder = place.rpartition("/")[0]
    return f"mkdir -p {folder} && turnbridge completion {shell} > {place}{NOTES[shell]}"
