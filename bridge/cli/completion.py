"""``turnbridge completion``: a script by which a shell completes our commands, options and their choices."""

from __future__ import annotations

import argparse
from shlex import quote
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from bridge.cli.common import Commands

HOW = {
    "bash": "turnbridge completion bash > ~/.local/share/bash-completion/completions/turnbridge",
    "zsh": "turnbridge completion zsh > ~/.zfunc/_turnbridge   (with fpath+=~/.zfunc before compinit)",
}
ZSH = "#compdef turnbridge\nautoload -U +X bashcompinit && bashcompinit\n"
SCRIPT = """\
_turnbridge() {{
  local path="" words="" i
  local cur="${{COMP_WORDS[COMP_CWORD]}}" prev="${{COMP_WORDS[COMP_CWORD-1]}}"
  for ((i = 1; i < COMP_CWORD; i++)); do
    case "$path/${{COMP_WORDS[i]}}" in
      {paths}) path="$path/${{COMP_WORDS[i]}}" ;;
    esac
  done
  case "$path $prev" in
{values}
    *) case "$path" in
{words}
    esac ;;
  esac
  COMPREPLY=($(compgen -W "$words" -- "$cur"))
}}
complete -o default -F _turnbridge turnbridge
"""


def register(commands: Commands) -> None:
    parser = commands.add_parser(
        "completion",
        help="print a script that lets your shell complete commands",
        epilog="\n".join(f"{shell}:  {how}" for shell, how in HOW.items()),
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("shell", choices=sorted(HOW))
    parser.set_defaults(run=lambda args: run(args, commands.choices))


def run(args: argparse.Namespace, commands: Mapping[str, argparse.ArgumentParser]) -> int:
    """Exit 0."""
    print((ZSH if args.shell == "zsh" else "") + script(commands), end="")
    return 0


def script(commands: Mapping[str, argparse.ArgumentParser]) -> str:
    """For bash, and for zsh with its ``bashcompinit``. What takes a file or a name is left to the shell."""
    found = {path: parser for name in commands for path, parser in _below(commands[name], f"/{name}")}
    words = {"": " ".join([*commands, "--help", "--version"])}
    words |= {path: _words(parser) for path, parser in found.items()}
    values: dict[str, list[str]] = {}
    for path, parser in found.items():
        for option, choices in _values(parser):
            values.setdefault(choices, []).append(f'"{path} {option}"')
    return SCRIPT.format(
        paths="|".join(found),
        values="\n".join(f"    {'|'.join(cases)}) words={quote(each)} ;;" for each, cases in values.items()),
        words="\n".join(f'      "{path}") words={quote(each)} ;;' for path, each in words.items()),
    )


def _below(parser: argparse.ArgumentParser, path: str) -> Iterator[tuple[str, argparse.ArgumentParser]]:
    """Every command by the way that leads to it: ``/dead/list``."""
    yield path, parser
    for action in parser._actions:  # argparse has no public way to list them
        if isinstance(action, argparse._SubParsersAction):
            for name, inner in action.choices.items():
                yield from _below(inner, f"{path}/{name}")


def _words(parser: argparse.ArgumentParser) -> str:
    """What may come next: inner commands or choices, and options by their long names."""
    words: list[str] = []
    for action in parser._actions:
        if action.option_strings:
            words.append(action.option_strings[-1])
        else:
            words += map(str, action.choices or ())
    return " ".join(words)


def _values(parser: argparse.ArgumentParser) -> Iterator[tuple[str, str]]:
    """Each option that wants a value, with the values that it may have, none where it may be anything."""
    for action in parser._actions:
        if action.nargs != 0:
            for option in action.option_strings:
                yield option, " ".join(map(str, action.choices or ()))
