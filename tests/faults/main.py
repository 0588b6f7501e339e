"""``python -m tests.faults.main``: random faults on real adapters, with the seed of your choice.

``--interleaving N`` replays one order of tasks instead. Ends with 1 when the status was wrong, an account did
not come back, or a message was lost or doubled.
"""

from __future__ import annotations

import argparse
import sys

from bridge import logs
from tests.faults.drive import CHANNELS, run
from tests.faults.weave import weave


def main() -> int:
    parser = argparse.ArgumentParser(
        prog="python -m tests.faults.main", description=__doc__.partition("\n")[0]
    )
    parser.add_argument("--faults", type=int, default=500, metavar="N", help="how many (default: 500)")
    parser.add_argument("--seed", type=int, default=1, metavar="N", help="what draws them (default: 1)")
    parser.add_argument("--channels", nargs="+", choices=CHANNELS, default=CHANNELS, help="all by default")
    parser.add_argument("--log", action="store_true", help="show what the accounts log")
    parser.add_argument("--interleaving", type=int, metavar="N", help="replay this seed of test_weave.py")
    args = parser.parse_args()
    logs.configure("info" if args.log else "error", as_json=False)
    if args.interleaving is not None:
        woven = weave(args.interleaving)
        print(f"{len(woven.steps)} steps, {woven.faults} faults, {woven.restarts} restarts: {woven.breaches}")
        return 1 if woven.breaches else 0
    report = run(args.seed, args.faults, args.channels)
    print("\n".join(report.lines()))
    return 1 if report.breaches else 0


if __name__ == "__main__":
    sys.exit(main())
