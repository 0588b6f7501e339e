"""What agents and their tools did, in a file that outlives every daemon: a line each, whole and on disk."""

import json
import os
import re
import sys
import time
from collections import Counter, defaultdict
from collections.abc import Sequence
from dataclasses import dataclass, field
from enum import StrEnum
from pathlib import Path
from typing import NamedTuple

TURNS = "turns"  # the file's name, beside the home
_CALL = re.compile(r"(?:^|/)call-(token-[0-9a-f]{12})\.txt$")  # the file that a call writes


class Did(StrEnum):
    BEGAN = "began"  # a turn, with what it was asked
    STEERED = "steered"  # it took in more
    ENDED = "ended"  # it is about to say its last
    RAN = "ran"  # a tool ran a call


class Where(NamedTuple):
    """Who runs a turn: the agent's profile, its model, and the folder."""

    agent: str = ""
    model: str = ""
    folder: str = ""


NOWHERE = Where()


@dataclass(frozen=True, slots=True)
class Line:
    """``at`` by the machine's monotonic clock, which all processes share. ``turn`` is "" for calls.

    ``where`` stands with the beginnings alone.
    """

    did: Did
    turn: str
    tokens: tuple[str, ...]
    at: float = 0.0
    where: Where = NOWHERE


def write(path: Path, line: Line) -> None:
    file = os.open(path, os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o600)
    try:
        told = [line.did, line.turn, line.tokens, line.at or time.monotonic(), *line.where]
        os.write(file, f"{json.dumps(told)}\n".encode())
        os.fsync(file)
    finally:
        os.close(file)


def note_calls(path: Path) -> None:
    """From now on, whatever in this process puts a call's file into its place is noted, before it does."""
    file = os.open(path, os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o600)

    def see(event: str, args: Sequence[object]) -> None:
        if event == "open" and isinstance(args[2], int) and args[2] & os.O_WRONLY:
            name = args[0]
        elif event == "os.rename":
            name = args[1]
        else:
            return
        if isinstance(name, str | os.PathLike) and (found := _CALL.search(os.fspath(name))):
            os.write(file, f"{json.dumps([Did.RAN, '', [found[1]], time.monotonic()])}\n".encode())

    sys.addaudithook(see)


@dataclass
class Trace:
    """By token: how often it was given to an agent, with which others, when that ended, and its calls.

    ``together`` counts what was collected, ``wordless`` turns that were asked for nothing.
    """

    turns: Counter[str] = field(default_factory=Counter)
    with_others: dict[str, set[str]] = field(default_factory=lambda: defaultdict(set))
    ended_at: dict[str, float] = field(default_factory=dict)
    steered_in: Counter[str] = field(default_factory=Counter)
    together: int = 0
    wordless: int = 0
    ran_at: dict[str, list[float]] = field(default_factory=lambda: defaultdict(list))
    where: dict[str, Where] = field(default_factory=dict)


def read(path: Path) -> Trace:
    trace = Trace()
    members: dict[str, set[str]] = defaultdict(set)
    for text in path.read_text().splitlines() if path.exists() else ():
        did, turn, tokens, at, *where = json.loads(text)
        match Did(did):
            case Did.BEGAN | Did.STEERED:
                trace.turns.update(tokens)
                members[turn].update(tokens)
                trace.where.update(dict.fromkeys(tokens, Where(*where)))
                trace.steered_in.update(tokens if did == Did.STEERED else ())
                trace.together += max(0, len(tokens) - 1) if did == Did.BEGAN else 0
                trace.wordless += not tokens
            case Did.ENDED:
                trace.ended_at.update(dict.fromkeys(tokens, at))
            case Did.RAN:
                trace.ran_at[tokens[0]].append(at)
    for some in members.values():
        for token in some:
            trace.with_others[token] |= some - {token}
    return trace
