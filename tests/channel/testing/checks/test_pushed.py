from collections.abc import Callable
from typing import Any

from bridge.channel.testing.checks import pushed
from tests.channel.testing.checks.tools import Spoilt, mistakes, notices, passes, sound


@sound(pushed)
def test_sound_adapters_pass(check: Callable[[Any], None], channel: str, outside: None) -> None:
    passes(check, channel)


@mistakes(pushed)
def test_mistakes_are_noticed(spoilt: Spoilt, channel: str, outside: None) -> None:
    notices(spoilt, channel)
