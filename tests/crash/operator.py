"""The operator: sends unprompted messages, and looks after what was given up."""

import asyncio
import random
import secrets
from typing import Any

from bridge.channel.testing.fakes.feishu import OWNER
from bridge.cli.common import ask_daemon
from bridge.errors import BridgeError
from bridge.paths import Home
from tests.crash.journal import Journal
from tests.crash.wishes import TOKEN

ACCOUNT = "feishu:main"
PAUSE_SECONDS = 0.3
UNPROMPTED = "unprompted"


async def operate(home: Home, journal: Journal, rng: random.Random, quiet: asyncio.Event) -> None:
    """Until ``quiet``. Whatever the daemon does not confirm is nobody's loss."""
    while not quiet.is_set():
        try:
            await _post(home, journal)
            await _look_after(home, journal, rng)
        except (BridgeError, OSError):
            pass
        await asyncio.sleep(PAUSE_SECONDS)


async def _post(home: Home, journal: Journal) -> None:
    """What was confirmed must arrive."""
    token = f"token-{secrets.token_hex(6)}"
    text = f"{UNPROMPTED} {token}"
    await _ask(home, action="send", account=ACCOUNT, to=OWNER, text=text, files=[])
    journal.posted[token] = ACCOUNT


async def _look_after(home: Home, journal: Journal, rng: random.Random) -> None:
    """An unprompted message that was given up is sent once more; now and then another letter is forgotten."""
    letters = await _ask(home, action="dead_list", account=ACCOUNT)
    if not letters:
        return
    letter = rng.choice(letters)
    (shown,) = await _ask(home, action="dead_show", id=letter["id"])
    if shown["text"].startswith(UNPROMPTED):
        journal.retried.update(TOKEN.findall(shown["text"]))  # it may have arrived before it was refused
        await _ask(home, action="dead_retry", ids=[letter["id"]])
    elif rng.random() < 0.3:
        await _ask(home, action="dead_prune", ids=[letter["id"]])


async def _ask(home: Home, **command: Any) -> list[dict[str, Any]]:
    answer = await asyncio.to_thread(ask_daemon, home, command)
    found: list[dict[str, Any]] = answer.get("dead", [])
    return found
