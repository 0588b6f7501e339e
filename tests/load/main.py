"""Load in simulated time: an outage that a thousand accounts come back from (R9), and a long soak (R16).

``python -m tests.load.main``; exit 1 when something that is owed fails. A million messages take half
an hour of a processor; ``--messages`` takes fewer. The seeds are printed, ``--seed`` repeats one.
"""

import argparse
import asyncio
import random
import sys
from collections.abc import Sequence

import uvloop

from bridge.logs import configure
from bridge.process import raise_descriptor_limit
from tests.load.soak import MESSAGES, soak
from tests.load.storm import ACCOUNTS, Run, Stormed, receiving, sending, storm

SEEDS = 3
PARTS = ("receive", "send", "soak")


def say(text: str) -> None:
    print(text, flush=True)


async def storms(name: str, seeds: Sequence[int], accounts: int) -> list[str]:
    """The breaches of each."""
    breaches = []
    for seed in seeds:
        if name == "receive":
            seen = await _stormed(receiving, seed, accounts)
        else:
            async with sending() as run:
                seen = await _stormed(run, seed, accounts)
        say(f"R9 {name}: {seen}")
        breaches += [f"R9 {name}, seed {seed}: {breach}" for breach in seen.breaches]
    return breaches


async def _stormed(run: Run, seed: int, accounts: int) -> Stormed:
    return await storm(run, seed, accounts, max(1, accounts // 20))


async def soaked(messages: int) -> list[str]:
    seen = await soak(messages, say)
    say(f"R16: {seen}")
    return [f"R16: {breach}" for breach in seen.breaches]


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m tests.load.main", description=__doc__.splitlines()[0])
    parser.add_argument("--only", action="append", choices=PARTS, help="may be repeated")
    parser.add_argument(
        "--messages", type=int, default=MESSAGES, help=f"of the soak, {MESSAGES:,} by default"
    )
    parser.add_argument("--accounts", type=int, default=ACCOUNTS, help="of the outage; 20 s of its capacity")
    parser.add_argument("--seed", type=int, help="of the outage; else three by chance")
    args = parser.parse_args()
    configure("error")
    raise_descriptor_limit()
    seeds = [args.seed] if args.seed is not None else random.sample(range(1_000_000), SEEDS)
    breaches: list[str] = []
    for name in PARTS:
        if not args.only or name in args.only:
            work = soaked(args.messages) if name == "soak" else storms(name, seeds, args.accounts)
            breaches += uvloop.run(work) if name == "soak" else asyncio.run(work)
    for breach in breaches:
        say(f"BREACH {breach}")
    return 1 if breaches else 0


if __name__ == "__main__":
    sys.exit(main())
