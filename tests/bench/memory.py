"""P12: resident memory of the daemon with every registered channel enabled once, against the bare program.

Each channel's kit gives its account and plays its platform, so whatever is registered is measured by itself.
"""

import asyncio
import json
import subprocess
import sys
import tempfile
import time
import urllib.request
from collections.abc import Callable
from contextlib import AsyncExitStack
from pathlib import Path
from typing import Any

import tomlkit

from bridge.channel.testing.kit import Kit
from bridge.registry import channels, kits
from tests.bench.commands import COMMAND, free_port, started
from tests.bench.figures import Figure, median_of

SETTLED_SECONDS = 2.0  # for accounts to have had contact
MIB = 1_048_576


def resident_bytes(pid: int) -> int:
    """What a process holds in memory, shared pages included."""
    status = Path(f"/proc/{pid}/status")
    if status.exists():
        return int(status.read_text().partition("VmRSS:")[2].split()[0]) * 1024
    shown = subprocess.run(["ps", "-o", "rss=", "-p", str(pid)], capture_output=True, text=True, check=True)
    return int(shown.stdout) * 1024


def measure(rounds: int, say: Callable[[str], None]) -> list[Figure]:
    return asyncio.run(_measure(rounds, say))


async def _measure(rounds: int, say: Callable[[str], None]) -> list[Figure]:
    names = channels().names()
    async with AsyncExitStack() as stack:
        playing = {name: await stack.enter_async_context(kits().load(name)()) for name in names}
        with tempfile.TemporaryDirectory(prefix="tb-bench-") as folder:
            home, port = Path(folder, "home"), free_port()
            _write(home, port, playing)
            ours, bare = [], []
            for number in range(rounds):
                ours.append(await asyncio.to_thread(_daemon, home, port, [f"{name}:main" for name in names]))
                bare.append(await asyncio.to_thread(_bare, Path(folder, "bare.db")))
                say(f"P12 round {number + 1}: {ours[-1] / MIB:.0f} MiB, bare {bare[-1] / MIB:.0f} MiB")
    figure = Figure(
        name="P12",
        what=f"resident memory with every channel once ({', '.join(names)}), against the bare program",
        ratios=tuple(own / other for own, other in zip(ours, bare, strict=True)),
        must=1.8,
        aim=1.3,
        most=True,
        absolute=f"{median_of(ours) / MIB:.0f} MiB, bare {median_of(bare) / MIB:.0f} MiB",
    )
    return [figure]


def _write(home: Path, port: int, playing: dict[str, Kit]) -> None:
    tables: dict[str, Any] = {"web": {"port": port}, "channels": {}}
    home.mkdir(mode=0o700)
    for name, kit in playing.items():
        tables["channels"][name] = {"main": dict(kit.settings)}
        if kit.credentials:
            secrets = home / "credentials" / name / "main.json"
            secrets.parent.mkdir(parents=True, mode=0o700)
            secrets.write_text(json.dumps(kit.credentials))
            secrets.chmod(0o600)
    (home / "config.toml").write_text(tomlkit.dumps(tables))
    (home / "config.toml").chmod(0o600)


def _daemon(home: Path, port: int, accounts: list[str]) -> int:
    with started([str(COMMAND), "run", "--home", str(home)], port) as (_, pid):
        time.sleep(SETTLED_SECONDS)
        told = subprocess.run(
            [str(COMMAND), "status", "--home", str(home), "--json"], capture_output=True, text=True
        )
        states = {one["id"]: one["state"] for one in json.loads(told.stdout)["components"]}
        if wrong := [name for name in accounts if states.get(name) != "connected"]:
            raise RuntimeError(f"not connected: {wrong}: {told.stdout}")
        return resident_bytes(pid)


def _bare(database: Path) -> int:
    port = free_port()
    with started([sys.executable, "-m", "tests.bench.bare", str(port), str(database)], port) as (_, pid):
        with urllib.request.urlopen(f"http://127.0.0.1:{port}/healthz") as answer:
            answer.read()
        time.sleep(SETTLED_SECONDS)
        return resident_bytes(pid)
