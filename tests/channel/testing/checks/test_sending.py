import asyncio
from collections.abc import Callable
from typing import Any

import pytest

from bridge.channel.testing.checks import sending
from bridge.errors import UnreachableError
from tests.channel.testing.checks.tools import Spoilt, mistakes, notices, passes, sound


@sound(sending)
def test_sound_adapters_pass(check: Callable[[Any], None], channel: str, outside: None) -> None:
    passes(check, channel)


@mistakes(sending)
def test_mistakes_are_noticed(spoilt: Spoilt, channel: str, outside: None) -> None:
    notices(spoilt, channel)


async def test_each_step_of_a_call_is_cancelled_once_and_errors_of_ours_are_answers() -> None:
    cancelled: list[int] = []

    async def three_steps() -> None:
        for step in range(3):
            try:
                await asyncio.sleep(0)
            except asyncio.CancelledError:
                cancelled.append(step)
                raise
        raise UnreachableError("no")

    assert await sending.cancel_everywhere(three_steps) >= 3
    assert set(cancelled) == {0, 1, 2}


async def test_a_call_that_never_gets_done_is_noticed(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sending, "MOST_STEPS", 10)
    with pytest.raises(AssertionError, match="did not get done in 10 steps"):
        await sending.cancel_everywhere(asyncio.Event().wait)
