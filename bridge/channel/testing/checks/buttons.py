"""Checks of choices: buttons where the platform has them, the text alone elsewhere; presses that say who."""

from dataclasses import replace

import pytest

from bridge.channel.contract import Choice, Delivered, Inbound, Pushed, Reading, Request
from bridge.channel.testing.checks.sending import part, sender, shown
from bridge.channel.testing.checks.stage import Stage, scenario
from bridge.channel.testing.kit import ButtonsKit

CHOICES = (Choice('first:"1" & <2>', "Allow"), Choice("second:三", "拒绝"))
TEXT = 'May I do this?\n```\n{"path": "*a*"}\n```'


async def asked(stage: Stage) -> Inbound:
    """Someone wrote, and was sent a part with choices."""
    channel, to = sender(stage), await stage.greeting()
    question = replace(part(to, TEXT), reply_to="", notice="approval", choices=CHOICES)
    assert isinstance(await channel.send(question), Delivered)
    return to


def kit_of(stage: Stage) -> ButtonsKit:
    if not isinstance(stage.kit, ButtonsKit) or not isinstance(stage.channel, Pushed):
        pytest.skip("its platform has no buttons")
    return stage.kit


def read(stage: Stage, request: Request) -> Inbound:
    assert isinstance(stage.channel, Pushed)
    reading = stage.channel.read(request, stage.identity)
    assert isinstance(reading, Reading)
    (item,) = reading.items
    assert isinstance(item, Inbound), f"a press on a button of the bot's is a message, not {item!r}"
    return item


@scenario
async def test_a_text_with_choices_arrives_with_all_its_words(stage: Stage) -> None:
    await asked(stage)
    (sent,) = shown(stage, 1)
    assert sent.text == TEXT, "the text says how to answer by words, and is shown as it is"


@scenario
async def test_choices_are_buttons_that_bring_their_value_back(stage: Stage) -> None:
    kit, to = kit_of(stage), await asked(stage)
    assert kit.buttons() == [choice.label for choice in CHOICES]
    for choice in CHOICES:
        press = read(stage, kit.press(choice.label, to.sender))
        assert (press.pressed, press.text, press.files) == (choice.value, "", ())
        assert (press.sender, press.chat, press.group) == (to.sender, to.chat, False)
        assert press.to == to.to, "its answer goes where the question went"


@scenario
async def test_a_press_says_who_pressed_and_is_known_when_it_comes_again(stage: Stage) -> None:
    kit, _ = kit_of(stage), await asked(stage)
    other = kit.press(CHOICES[0].label, stage.kit.person(1))
    first, again = read(stage, other), read(stage, other)
    assert first.sender == stage.kit.person(1)
    assert first == again
    later = read(stage, kit.press(CHOICES[0].label, stage.kit.person(1)))
    assert later.message_id != first.message_id, "each press has an id of its own"
