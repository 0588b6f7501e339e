from collections.abc import Callable
from dataclasses import replace
from typing import Any

from bridge.channel.testing.checks import polled
from tests.channel.testing.checks.tools import Spoilt, mistakes, notices, passes, skips, sound
from tests.outside.mistakes import adapter


@sound(polled)
def test_sound_adapters_pass(check: Callable[[Any], None], channel: str, outside: None) -> None:
    passes(check, channel)


@mistakes(polled)
def test_mistakes_are_noticed(spoilt: Spoilt, channel: str, outside: None) -> None:
    notices(spoilt, channel)


def test_a_platform_without_checkpoints_is_not_asked_to_repeat_itself(outside: None) -> None:
    def forgets(made: Any, http: object) -> None:
        receive, place = made.receive, ["", "1", "2"]

        async def without(checkpoint: str) -> Any:
            return replace(await receive(place.pop(0)), checkpoint=None)

        made.receive = without

    change = adapter("", "", forgets).change
    skips(polled.test_a_batch_comes_again_until_its_checkpoint_is_used, "pigeon", change)
