"""The checks of buttons: they pass on sound adapters, and notice mistakes."""

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pytest

from bridge.channel import Reading
from bridge.channel.testing.checks import buttons
from tests.channel.testing.checks.tools import Spoilt, notices, passes, skips, sound, unable
from tests.outside.mistakes import adapter, wrap_send


@sound(buttons)
def test_sound_adapters_pass(check: Callable[[Any], None], channel: str, outside: None) -> None:
    passes(check, channel)


def test_who_only_hears_is_left_alone(outside: None) -> None:
    skips(buttons.test_a_text_with_choices_arrives_with_all_its_words, "feishu", unable)


async def leaves_the_text_out(send: Any, part: Any) -> Any:
    return await send(replace(part, text="?") if part.choices else part)


async def shows_no_buttons(send: Any, part: Any) -> Any:
    return await send(replace(part, choices=()))


def read_with(change: Callable[[Any], Any]) -> Callable[[Any, Any], None]:
    """An adapter that changes each press that it reads."""

    def spoil(made: Any, http: Any) -> None:
        read = made.read

        def spoilt(request: Any, identity: Any) -> Any:
            reading = read(request, identity)
            if not isinstance(reading, Reading):
                return reading
            items = tuple(change(item) if getattr(item, "pressed", "") else item for item in reading.items)
            return replace(reading, items=items)

        made.read = spoilt

    return spoil


WORDS = "text_with_choices_arrives_with_all_its_words"
VALUE = "choices_are_buttons_that_bring_their_value_back"
WHO = "press_says_who_pressed_and_is_known_when_it_comes_again"
MISTAKES = (
    adapter("leaves the text out", f"a_{WORDS}", wrap_send(leaves_the_text_out)),
    adapter("shows no buttons", VALUE, wrap_send(shows_no_buttons)),
    adapter("makes a text of it", VALUE, read_with(lambda one: replace(one, text="allow"))),
    adapter("brings something else", VALUE, read_with(lambda one: replace(one, pressed="x"))),
    adapter("takes it for a group", VALUE, read_with(lambda one: replace(one, group=True))),
    adapter("loses who pressed", f"a_{WHO}", read_with(lambda one: replace(one, sender="owner"))),
    adapter("has one id for all", f"a_{WHO}", read_with(lambda one: replace(one, message_id="1"))),
)


@pytest.mark.parametrize("spoilt", MISTAKES, ids=[spoilt.by for spoilt in MISTAKES])
def test_mistakes_are_noticed(spoilt: Spoilt, outside: None) -> None:
    notices(spoilt, "feishu")
