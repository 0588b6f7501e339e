"""The speeds that are owed, each against a yardstick of the same run: ``python -m tests.bench.main``.

Exit 1 when a must is missed. Figures of one machine mean nothing on another; ratios do.
"""

import argparse
import os
import platform
import sqlite3
import statistics
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

from tests.bench import (
    against,
    commands,
    frames,
    install,
    many,
    memory,
    store,
    stored,
    texts,
    waiting,
    webhooks,
)
from tests.bench.figures import Figure, markdown_table, plain_table

ROUNDS = 7
SYNCS = 200

TEXT = """# Benchmarks

Written by `make bench ARGS="--write docs/benchmarks.md"`; do not edit. Each figure is a ratio against a
yardstick that ran in the same run on the same machine: the median of {rounds} interleaved rounds, with
the lowest and the highest of them. The last column holds for the machine of this run alone: {machine}.

{table}

- **P1, P2, P4**: the yardstick is an aiohttp application on uvloop whose handler reads the body, checks
  Feishu's signature, opens the AES seal, parses the JSON, checks the token and answers 200; it stores
  nothing and logs nothing. Against it stand the daemon's listener, a Feishu account and the store, in
  one process on uvloop, with `synchronous=FULL`: a message is verified, deduplicated and on disk before
  its 200. Limits are so high that none is turned away, and the session server never answers, so that no
  turn runs meanwhile. The load comes from a process of its own, over connections that are kept.
- **P3**: the same account, at 64 connections, against libraries that verify and parse the same pushes and
  store nothing: nonebot2 with its Feishu adapter on its FastAPI driver, as it comes (it logs each event and
  request; here to nowhere) and with its log off, and lark-oapi's dispatcher in a handler of aiohttp, each on
  uvloop in an environment of its own.
- **P7**: processor time of reading a frame from its bytes and writing it back. msgspec has the same types as
  tagged structs, dataclasses get the parsed JSON and are written by `asdict`. The small frames are one
  turn's: a message, twelve deltas, a tool's call, two texts with quotes inside, the end. Pydantic reads and
  writes here; without a single check of ours it is at about 0.2 of msgspec for the small ones, at 0.65 to
  0.7 for 64 KiB of Chinese and for code. So these two rows are told, and nothing is owed by them.
- **P8, P9**: a daemon with a thousand accounts of a polled channel that is installed beside it, each in a
  long poll of 25 s, less one with none; against a task for each in an aiohttp client that is tuned for it and
  does nothing with what it gets. The processor time is that of one poll's length, all threads counted, by
  the process's own clock, which is fine, and not by /proc's ticks of 10 ms.
- **P10**: whole commands, process start included; `status` asks a running daemon.
- **P11**: from starting the process until its port accepts a connection, on a home that exists.
- **P12**: resident memory two seconds after the start, every registered channel with one account that has
  contact with its fake platform. The bare program is that of P11, after one request.
- **P14**: claim, answer and settle of one message through the store, 64 callers, against a loop in
  SQLite's own module with the same statements, 64 messages to a transaction.
- **P15**: `pip install` of this project without extras into an empty environment: packages without pip
  itself, and the bytes of their files without compiled ones, against 92 packages and 302 MiB, which are taken
  as given.
- **texts**: processor time of what is done with an answer: markdown made plain, tables found, cut into
  messages of 2,000. Of two dozen texts that are hard to read the one that grew most is told.
- **stored**: with so many messages done and remembered, as they are for thirty days, made by SQL before.
- **many**: 40 messages a second over 190 webhook accounts of one daemon, each a turn of the echo agent, while
  ten polled ones beside them are well, or fail: broken off, stalled, 401, 429, 500, no JSON, JSON too deep or
  too large, half an answer, updates that nobody can read. A reload that changes one of the ten is watched to
  leave the others' connections alone.
"""


def p14(rounds: int, say: Callable[[str], None]) -> list[Figure]:
    got = store.measure(rounds=rounds)
    say(f"P14 {got['ratio']:.2f}")
    figure = Figure(
        name="P14",
        what="claim, answer and settle through the store, 64 at a time, against raw SQLite",
        ratios=(got["lowest"], got["ratio"], got["highest"]),
        must=got["must"],
        aim=got["aim"],
        absolute=f"{got['store']:.0f}/s, raw {got['raw']:.0f}/s",
    )
    return [figure]


MEASURES: dict[tuple[str, ...], Callable[[int, Callable[[str], None]], list[Figure]]] = {
    ("P1", "P2", "P4"): webhooks.measure,
    ("P3",): against.measure,
    ("P7",): frames.measure,
    ("P8", "P9"): waiting.measure,
    ("P10",): commands.measure_commands,
    ("P11",): commands.measure_start,
    ("P12",): memory.measure,
    ("P14",): p14,
    ("P15",): install.measure,
    ("texts",): texts.measure,
    ("stored",): stored.measure,
    ("many",): many.measure,
}


NAMES = [name for names in MEASURES for name in names]


def sync_milliseconds() -> float:
    """The median of an fdatasync after 4 KiB, where the databases of this run lie."""
    taken = []
    with tempfile.TemporaryFile() as file:
        for _ in range(SYNCS):
            file.write(b"x" * 4096)
            file.flush()
            begin = time.perf_counter()
            (getattr(os, "fdatasync", None) or os.fsync)(file.fileno())
            taken.append(time.perf_counter() - begin)
    return statistics.median(taken) * 1000


def machine() -> str:
    return (
        f"{commands.cores()} cores, {platform.python_implementation()} {platform.python_version()}, "
        f"SQLite {sqlite3.sqlite_version}, {platform.system()}, "
        f"an fdatasync of {sync_milliseconds():.1f} ms, a load of {os.getloadavg()[0]:.1f} when it began"
    )


def say(text: str) -> None:
    print(text, file=sys.stderr, flush=True)


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m tests.bench.main", description=__doc__.splitlines()[0])
    parser.add_argument("--only", action="append", help=f"{', '.join(NAMES)}; may be repeated")
    parser.add_argument("--rounds", type=int, default=ROUNDS)
    parser.add_argument("--write", type=Path, help="also write the page, as docs/benchmarks.md")
    args = parser.parse_args()
    if unknown := set(args.only or ()) - set(NAMES):
        parser.error(f"nothing is called {', '.join(sorted(unknown))}: choose of {', '.join(NAMES)}")
    on = machine()
    say(on)
    figures: list[Figure] = []
    for names, measure in MEASURES.items():
        if not args.only or set(names) & set(args.only):
            figures += measure(args.rounds, say)
    print(plain_table(figures))
    if args.write:
        table = markdown_table(figures)
        args.write.write_text(TEXT.format(rounds=args.rounds, machine=on, table=table), encoding="utf-8")
    missed = [f"{one.name} ({one.what})" for one in figures if not one.met]
    for one in missed:
        print(f"missed: {one}")
    return 1 if missed else 0


if __name__ == "__main__":
    sys.exit(main())
