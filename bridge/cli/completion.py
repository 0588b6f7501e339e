"""``turnbridge completion``: a script by which a shell completes our commands, options and their choices."""

from __future__ import annotations

import argparse
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from bridge.cli.common import Commands

HOW = {
    "bash": "turnbridge completion bash > ~/.local/share/bash-completion/completions/turnbridge",
    "zsh": "turnbridge completion zsh > ~/.zfunc/_turnbridge   (with fpath+=~/.zfunc before compinit)",
}


def register(commands: Commands) -> None:
    parser = commands.add_parser(
        "completion",
        help="print a script that lets your shell complete commands",
        epilog="\n".join(f"{shell}:  {how}" for shell, how in HOW.items()),
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("shell", choices=sorted(HOW))
    parser.set_defaults(run=run)


def run(args: argparse.Namespace) -> int:
    """Exit 0."""
    import shtab

    from bridge.cli.main import parser

    print(shtab.complete(parser(), shell=args.shell))
    return 0
