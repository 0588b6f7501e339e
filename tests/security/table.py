"""The tables of docs/security.md, made by trying: ``python -m tests.security.table --write PAGE``."""

from __future__ import annotations

import argparse
import asyncio
import sys
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path

from tests.security.agents import Kind, every_agent
from tests.security.cells import (
    COMMANDS,
    GRANTS,
    Cell,
    Grant,
    Outcome,
    Senders,
    Where,
    Who,
    every_cell,
    every_command,
)

BEGIN, END = "<!-- made by tests/security/table.py: begin -->", "<!-- end -->"


def page_with(page: str, tables: str) -> str:
    """``page`` with ``tables`` in place of those between its marks."""
    before, begin, rest = page.partition(BEGIN)
    _, end, after = rest.partition(END)
    if not begin or not end:
        raise ValueError(f"the page needs the marks {BEGIN} and {END}")
    return f"{before}{BEGIN}\n\n{tables}\n{END}{after}"


def of_grants(found: Mapping[Cell, Outcome]) -> str:
    """What comes of a message: a row for each person and grant, as few as tell all."""
    head = ["`senders`", "who writes", "`remote_tools`, `approvals`", *Where]
    rows = [
        [f'`"{senders}"`', who, grants, *words]
        for senders in Senders
        for who in Who
        for grants, words in _rows(found, senders, who)
    ]
    return _table(head, rows)


def of_agents(found: Mapping[Kind, Mapping[Cell, Outcome]]) -> str:
    """The same for each agent, on accounts that answer anybody."""
    head = ["agent", "who writes", "`remote_tools`, `approvals`", *Where]
    rows = [
        [f"`{kind}`", who, grants, *words]
        for kind in Kind
        for who in Who
        for grants, words in _rows(found[kind], Senders.ANYONE, who)
    ]
    return _table(head, rows)


def _rows(found: Mapping[Cell, Outcome], senders: Senders, who: Who) -> list[tuple[str, list[str]]]:
    """The grants that come to the same are one row."""
    same: dict[tuple[str, ...], list[Grant]] = {}
    for grant in GRANTS:
        if grant.senders is senders and (grant, who, Where.DIRECT) in found:
            words = tuple(found[grant, who, where].words for where in Where)
            same.setdefault(words, []).append(grant)
    return [(_named(grants), list(words)) for words, grants in same.items()]


def _named(grants: Sequence[Grant]) -> str:
    if len(grants) == len(GRANTS) // len(Senders):
        return "any"
    tools = {grant.remote_tools for grant in grants}
    if len(tools) == 1 and len(grants) > 1:
        return f'`"{tools.pop()}"`, any'
    return "; ".join(f'`"{grant.remote_tools}"`, `"{grant.approvals}"`' for grant in grants)


def of_commands(found: Mapping[tuple[str, Who, Where], str]) -> str:
    """What is told in answer to each command; those that are answered alike together."""
    same: dict[tuple[str, ...], list[str]] = {}
    for command in COMMANDS:
        words = tuple(found[command, who, where] for who in Who for where in Where)
        same.setdefault(words, []).append(f"`{command}`")
    rows = [
        [" ".join(commands), who, *words[len(Where) * at : len(Where) * (at + 1)]]
        for words, commands in same.items()
        for at, who in enumerate(Who)
    ]
    return _table(["command", "who writes", *Where], rows)


def _table(head: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    """Markdown; what a row shares with the one above is left out of its first cells."""
    lines, before = [_line(head), _line(["---"] * len(head))], [""] * len(head)
    for row in rows:
        shown, same = list(row), True
        for at in range(2):
            same = same and row[at] == before[at]
            shown[at] = "" if same and at == 0 else row[at]
        lines.append(_line(shown))
        before = list(row)
    return "\n".join(lines) + "\n"


def _line(cells: Iterable[str]) -> str:
    return f"| {' | '.join(cells)} |"


async def tables() -> str:
    agents = of_agents(await every_agent())
    return f"{of_grants(await every_cell())}\n{agents}\n{of_commands(await every_command())}"


def main(arguments: Sequence[str] | None = None) -> int:
    """Print the tables, or write them into a page. Exit 1 where a page that was to be checked differs."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--write", metavar="PAGE", type=Path, help="put them between the page's marks")
    args = parser.parse_args(arguments)
    made = asyncio.run(tables())
    if args.write is None:
        print(made)
        return 0
    page = args.write.read_text(encoding="utf-8")
    args.write.write_text(page_with(page, made), encoding="utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main())
