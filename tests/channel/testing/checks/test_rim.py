from collections.abc import Callable
from typing import Any

import pytest

from bridge.channel.testing.checks import rim
from tests.channel.testing.checks.tools import Spoilt, mistakes, notices, passes, sound


@sound(rim)
def test_sound_adapters_pass(check: Callable[[Any], None], channel: str, outside: None) -> None:
    passes(check, channel)


@mistakes(rim)
def test_mistakes_are_noticed(spoilt: Spoilt, channel: str, outside: None) -> None:
    notices(spoilt, channel)


def test_a_channel_without_a_kit_is_noticed() -> None:
    rim.test_a_registered_channel_has_a_kit("webhook")
    rim.test_the_channel_is_registered_under_its_own_name("webhook")
    with pytest.raises(AssertionError, match="register a kit for unheard_of"):
        rim.test_a_registered_channel_has_a_kit("unheard_of")
