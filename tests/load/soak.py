"""R16: a million messages through a daemon, in simulated time, while accounts come and go.

The daemon is whole and in this process: messages come over HTTP, run as turns of the echo agent, and their
replies are posted to a server here. Its clock is ours: however many messages there are, they take three times
as long as anything is remembered. With each leap of the clock whoever is due wakes up once, late.

Owed are: neither memory nor descriptors grow once it is warm, the database's log stays under 64 MiB, the
database stops growing once what is old is forgotten, and nothing older is there.
"""

from __future__ import annotations

import asyncio
import gc
import heapq
import json
import os
import sqlite3
import tempfile
import time
from collections.abc import Callable
from contextlib import closing
from dataclasses import dataclass, field
from datetime import timedelta
from pathlib import Path
from typing import Any

from bridge.channel.testing.clock import FakeClock, settle
from bridge.cli.common import ask_daemon
from bridge.cli.webhook_client import sign
from bridge.clock import unix_ms
from bridge.daemon import UPKEEP_SECONDS
from bridge.paths import Home
from tests.bench.memory import resident_bytes
from tests.daemons import daemon, short_home, write_settings
from tests.load.peers import Senders, called_back

MIB = 1 << 20
MESSAGES = 1_000_000
ACCOUNTS = 20
AT_ONCE = 64
CHAT_MESSAGES = 20  # then somebody else writes
MEMORY_FOLDER = "/dev/shm"
KEEP_DAYS = 30
SPAN_DAYS = 3 * KEEP_DAYS
KEPT_DAYS = KEEP_DAYS + 0.5
FORGET_TIMES = 500
GENERATIONS = 100  # in each, two accounts go and two come
LOOKS = 40
WARM = 0.25  # of the run; from then on nothing may grow
FULL = 0.5  # of the run; by then the oldest third is forgotten
GROWTH_BYTES, GROWTH_DESCRIPTORS = 10 * MIB, 64
WAL_BYTES = 64 * MIB
DATABASE_TIMES, DATABASE_BYTES = 1.25, 32 * MIB  # both: what the log carried may come into it at once
SECRET, CALLBACK_SECRET = "whsec_" + "QUJD" * 11, "whsec_" + "REVG" * 11
REPLY_SECONDS = 60.0  # by the machine's clock
AGAIN_SECONDS = 900.0  # by ours: what could not be sent is tried again by then
ENDED = "ended by itself"


class LeapingClock(FakeClock):
    """Time passes in leaps, as for a machine that slept."""

    async def leap(self, seconds: float) -> None:
        """Let ``seconds`` pass at once: whoever is due by then wakes up, and sees the time that it is."""
        self._set(self._monotonic + seconds)
        while self._sleepers and self._sleepers[0][0] <= self._monotonic:
            _, _, future = heapq.heappop(self._sleepers)
            if not future.done():
                future.set_result(None)
        await settle()


@dataclass(frozen=True)
class Look:
    """What was seen after so much of the run."""

    share: float
    memory: int
    descriptors: int
    database: int


@dataclass
class Soaked:
    """What was seen of ``messages``."""

    messages: int
    looks: list[Look] = field(default_factory=list)
    wal: int = 0
    oldest_days: float = 0.0
    unanswered: int = 0
    lying: list[str] = field(default_factory=list)  # where was what did not come at once

    def grown(self, of: Callable[[Look], int], extreme: Callable[[list[int]], int] = max) -> int:
        """From the warm state to the end, each by the ``extreme`` one of a tenth of the looks."""
        warm = [of(look) for look in self.looks if look.share >= WARM]
        some = max(1, len(warm) // 10)
        return extreme(warm[-some:]) - extreme(warm[:some])

    @property
    def more_descriptors(self) -> int:
        """By the fewest: when others begin to write, the sessions before theirs are open for a while."""
        return self.grown(lambda look: look.descriptors, min)

    @property
    def _full(self) -> Look:
        return next(look for look in self.looks if look.share >= FULL)

    @property
    def database_times(self) -> float:
        return self.looks[-1].database / self._full.database

    @property
    def breaches(self) -> list[str]:
        found = []
        if self.unanswered:
            found.append("; ".join([f"{self.unanswered} messages were not answered", *self.lying]))
        found += [line for line in self.lying if line.endswith(ENDED)]
        if (grown := self.grown(lambda look: look.memory)) > GROWTH_BYTES:
            found.append(f"the memory grew by {grown / MIB:.1f} MiB")
        if (opened := self.more_descriptors) > GROWTH_DESCRIPTORS:
            found.append(f"{opened} more descriptors are open")
        if self.wal >= WAL_BYTES:
            found.append(f"the database's log had {self.wal / MIB:.0f} MiB")
        more = self.looks[-1].database - self._full.database
        if self.database_times > DATABASE_TIMES and more > DATABASE_BYTES:
            found.append(f"the database grew {self.database_times:.2f} times after it was full")
        if self.oldest_days > KEPT_DAYS:
            found.append(f"something of {self.oldest_days:.0f} days ago is still there")
        return found

    def __str__(self) -> str:
        last = self.looks[-1]
        return (
            f"{self.messages:,} messages in {SPAN_DAYS} days: memory {last.memory / MIB:.0f} MiB, "
            f"{self.grown(lambda look: look.memory) / MIB:+.1f} MiB since it was warm; "
            f"{last.descriptors} descriptors, {self.more_descriptors:+d}; "
            f"database {last.database / MIB:.1f} MiB, {self.database_times:.2f} times what it was half-way; "
            f"its log at most {self.wal / MIB:.1f} MiB; the oldest is {self.oldest_days:.1f} days old"
        )


class Replies:
    """Which messages wait for theirs."""

    def __init__(self) -> None:
        self._waiting: set[str] = set()
        self._over = asyncio.Event()

    def expect(self, ids: list[str]) -> None:
        self._waiting, self._over = set(ids), asyncio.Event()

    def take(self, data: dict[str, Any]) -> None:
        self._waiting.discard(data["in_reply_to"])
        if not self._waiting:
            self._over.set()

    async def missing(self) -> int:
        """How many have not come in time."""
        try:
            async with asyncio.timeout(REPLY_SECONDS):
                await self._over.wait()
        except TimeoutError:
            return len(self._waiting)
        return 0


def settings(first: int, port: int) -> str:
    """The settings of a generation: its accounts are numbered from ``first``."""
    tables = "".join(
        f'[channels.webhook.a{number}]\nsenders = "anyone"\n'
        f'callback_url = "http://127.0.0.1:{port}/"\nprivate_hosts = ["127.0.0.1:{port}"]\n'
        f'credentials.secrets = {{ env = "SOAK_SECRET" }}\n'
        f'credentials.callback_secrets = {{ env = "SOAK_CALLBACK_SECRET" }}\n'
        for number in range(first, first + ACCOUNTS)
    )
    return f"[store]\nkeep_days = {KEEP_DAYS}\n{tables}"


class Soak:
    """One run: ``say`` is told of each look."""

    def __init__(self, messages: int, say: Callable[[str], None]) -> None:
        self._clock, self._say, self._began = LeapingClock(), say, time.monotonic()
        self._soaked, self._replies = Soaked(messages), Replies()
        self._sent = self._generation = 0

    async def run(self) -> Soaked:
        os.environ |= {"SOAK_SECRET": SECRET, "SOAK_CALLBACK_SECRET": CALLBACK_SECRET}
        async with called_back(self._replies.take) as port:
            with short_home(settings(0, port), fast_folder()) as home:
                async with daemon(home, self._clock) as running:
                    if running.error is not None:
                        raise running.error
                    senders = Senders(int(running.address.rpartition(":")[2]))
                    await self._all(home, senders, port)
                    await self._forget(home)
                    senders.close()
        return self._soaked

    async def _all(self, home: Home, senders: Senders, port: int) -> None:
        messages = self._soaked.messages
        while self._sent < messages:
            count = min(AT_ONCE, messages - self._sent)
            await self._some(count, home, senders)
            self._sent += count
            await self._clock.leap(count / messages * timedelta(days=SPAN_DAYS).total_seconds())
            self._soaked.wal = max(self._soaked.wal, size_of(home.db.with_name(home.db.name + "-wal")))
            if self._sent * GENERATIONS // messages > self._generation:
                self._generation = self._sent * GENERATIONS // messages
                write_settings(home, settings(2 * self._generation, port))
                await asyncio.to_thread(ask_daemon, home, {"action": "reload"})
            if self._sent * LOOKS // messages > len(self._soaked.looks):
                self._look(home)

    async def _some(self, count: int, home: Home, senders: Senders) -> None:
        ids = [f"soak-{self._sent + number}" for number in range(count)]
        self._replies.expect(ids)
        async with asyncio.TaskGroup() as tasks:
            for number, id_ in enumerate(ids):
                account = 2 * self._generation + number % ACCOUNTS
                tasks.create_task(self._send(senders, f"/channels/webhook/a{account}", id_, number))
        if await self._replies.missing():  # a send that fails, even one, waits for our clock
            self._soaked.lying += await asyncio.to_thread(lying, home)
            await self._clock.leap(AGAIN_SECONDS)
            self._soaked.unanswered += await self._replies.missing()

    async def _send(self, senders: Senders, path: str, id_: str, number: int) -> None:
        now = self._clock.now()
        data = {
            "conversation_id": f"c{self._sent // AT_ONCE // CHAT_MESSAGES}-{number}",
            "message_id": id_,
            "sender": {"id": f"u{number}"},
            "text": f"message {id_} of a person who writes about as much as people do in a chat",
            "is_direct": True,
        }
        stamp = now.strftime("%Y-%m-%dT%H:%M:%SZ")
        body = json.dumps({"type": "message.created", "timestamp": stamp, "data": data}).encode()
        headers = {"Content-Type": "application/json"}
        headers |= sign(SECRET, id_, int(now.timestamp()), body)
        status = await senders.post(path, headers, body)
        if status >= 300:
            raise AssertionError(f"a message was answered {status}")

    def _look(self, home: Home) -> None:
        gc.collect()
        look = Look(
            self._sent / self._soaked.messages,
            resident_bytes(os.getpid()),
            len(os.listdir("/dev/fd")),
            size_of(home.db),
        )
        self._soaked.looks.append(look)
        seconds = time.monotonic() - self._began
        self._say(
            f"{self._sent:,} after {seconds:.0f} s ({self._sent / seconds:.0f}/s): "
            f"{look.memory / MIB:.1f} MiB, {look.descriptors} descriptors, "
            f"database {look.database / MIB:.1f} MiB, its log up to {self._soaked.wal / MIB:.1f} MiB"
        )

    async def _forget(self, home: Home) -> None:
        """Give the daemon the time to forget what the last leap made old: a little at a time."""
        for _ in range(FORGET_TIMES):
            self._soaked.oldest_days = await asyncio.to_thread(self._oldest_days, home.db)
            if self._soaked.oldest_days <= KEPT_DAYS:
                return
            await self._clock.leap(UPKEEP_SECONDS)

    def _oldest_days(self, path: Path) -> float:
        """Since when the oldest thing that is kept is over, or a session was not used. Blocking."""
        kept = (("messages", "ended_ms"), ("parts", "ended_ms"), ("sessions", "used_ms"))
        with closing(sqlite3.connect(f"file:{path}?mode=ro", uri=True)) as db:
            found = [
                db.execute(f"SELECT min({column}) FROM {table} WHERE {column} > 0").fetchone()[0]
                for table, column in kept
            ]
        oldest = min(stamp for stamp in found if stamp is not None)
        return (unix_ms(self._clock.now()) - int(oldest)) / 86_400_000


def fast_folder() -> str:
    """In memory where there is such a folder: it is not the disk that is measured."""
    return MEMORY_FOLDER if os.access(MEMORY_FOLDER, os.W_OK) else tempfile.gettempdir()


def lying(home: Home) -> list[str]:
    """What holds messages up: accounts without contact, and what the store has open. Blocking."""
    accounts = ask_daemon(home, {"action": "status"})["components"]
    told = [f"{one['id']}: {one['state']}, {one['reason']}" for one in accounts if one.get("reason")]
    told += [f"{one['id']} {ENDED}" for one in accounts if one["restarts"]]
    with closing(sqlite3.connect(f"file:{home.db}?mode=ro", uri=True)) as db:
        for kind in ("messages", "parts"):
            query = f"SELECT account, state, count(*) FROM {kind} WHERE ended_ms = 0 GROUP BY 1, 2"
            told += [f"{count} {kind} of {account} {state}" for account, state, count in db.execute(query)]
    return told


def size_of(path: Path) -> int:
    try:
        return path.stat().st_size
    except OSError:
        return 0


async def soak(messages: int, say: Callable[[str], None]) -> Soaked:
    return await Soak(messages, say).run()
