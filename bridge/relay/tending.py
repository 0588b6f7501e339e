"""What an account lets go of in time: idle sessions and received files."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from contextlib import suppress
from datetime import timedelta

from bridge.ids import ConversationKey
from bridge.relay.conversation import Conversation
from bridge.relay.setup import Setup

TEND_SECONDS = 30.0
SWEEP_SECONDS = 3600.0


async def tend(
    setup: Setup,
    conversations: Mapping[ConversationKey, Conversation],
    retire: Callable[[ConversationKey], None],
) -> None:
    """Close idle sessions, and sweep received files at the start and hourly, for ever."""
    swept = -SWEEP_SECONDS
    while True:
        now = setup.clock.monotonic()
        limit = setup.config.limits.idle_seconds
        for key in [key for key, one in conversations.items() if one.idle_seconds >= limit]:
            retire(key)
        if now - swept >= SWEEP_SECONDS:
            swept = now
            await _sweep(setup)
        await setup.clock.sleep(TEND_SECONDS)


async def _sweep(setup: Setup) -> None:
    keep = timedelta(days=setup.settings.media.keep_days)
    with suppress(OSError):
        await setup.shelf.sweep(keep, setup.clock.now())
