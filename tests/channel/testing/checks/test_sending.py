import asyncio
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pytest

from bridge.channel import OutboundPart, Refused, SendOutcome, Withdrawn
from bridge.channel.testing.checks import sending
from bridge.errors import OutcomeUnknownError, UnreachableError
from tests.channel.testing.checks.tools import (
    Spoilt,
    kit_with,
    mistakes,
    notices,
    passes,
    skips,
    sound,
    unable,
)
from tests.outside.mistakes import adapter, wrap_send


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


def test_what_cannot_send_is_skipped(outside: None) -> None:
    skips(sending.test_a_refusal_is_final, "pigeon", unable)


def test_a_platform_without_memory_is_held_to_less(outside: None) -> None:
    skips(sending.test_one_client_id_is_shown_once_where_the_platform_remembers, "pigeon", forgetful)
    sending.test_what_was_taken_without_an_answer_is_unknown(kit_with("pigeon", forgetful))


def test_refusals_may_be_of_other_kinds(outside: None) -> None:
    async def only_answers(send: Any, part: OutboundPart) -> SendOutcome:
        return Refused("only answers are taken") if not part.reply_to else await send(part)

    async def withdrawn(send: Any, part: OutboundPart) -> SendOutcome:
        await send(part)
        return Withdrawn()

    change = adapter("", "", wrap_send(only_answers)).change
    sending.test_an_unprompted_text_arrives(kit_with("pigeon", change))
    sending.test_a_refusal_is_final(kit_with("pigeon", adapter("", "", wrap_send(withdrawn)).change))


def test_an_adapter_may_take_a_while_to_tell_that_nothing_is_known(outside: None) -> None:
    async def slow_to_tell(send: Any, part: OutboundPart) -> SendOutcome:
        try:
            outcome: SendOutcome = await send(part)
        except OutcomeUnknownError:
            await asyncio.sleep(0)
            raise
        return outcome

    change = adapter("", "", wrap_send(slow_to_tell)).change
    for each in (change, lambda spec: forgetful(change(spec))):
        sending.test_what_was_taken_without_an_answer_is_unknown(kit_with("pigeon", each))


def forgetful(spec: Any) -> Any:
    """``spec`` of a platform that remembers no client ids."""
    return replace(spec, idempotent_seconds=0)
