"""The contract suite: every registered channel against its kit.

An adapter's author registers both, as ours are::

    [project.entry-points."turnbridge.channels"]
    pigeon = "pigeon:SPEC"

    [project.entry-points."turnbridge.kits"]
    pigeon = "pigeon_kit:PigeonKit"

and collects the suite in a test file of their own, with the extra ``turnbridge[testing]`` installed::

    from bridge.channel.testing.suite import *

It runs for every channel that is installed; ``-k "[pigeon]"`` picks one. Each ability is tested where the
adapter has it and the kit can play its other side, else the test is skipped. A check can also be called by
itself, with something that makes a kit: ``CHECKS["test_a_refusal_is_final"](PigeonKit)``.
"""

from collections.abc import Callable
from typing import Any

import pytest

from bridge.channel.testing.checks import buttons, files, polled, pushed, responding, rim, sending
from bridge.registry import channels, kits

CHECKS: dict[str, Callable[[Any], None]] = {
    name: check
    for part in (rim, pushed, polled, sending, buttons, responding, files)
    for name, check in vars(part).items()
    if name.startswith("test_")
}
globals().update(CHECKS)


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    """One run of each check for every registered kit, and of some for every registered channel."""
    if "make_kit" in metafunc.fixturenames:
        metafunc.parametrize("make_kit", kits().names(), indirect=True)
    if "channel_name" in metafunc.fixturenames:
        metafunc.parametrize("channel_name", channels().names())


@pytest.fixture
def make_kit(request: pytest.FixtureRequest) -> Callable[[], Any]:
    """What makes a kit of the channel that ``request`` names, imported only now."""
    return kits().load(request.param)
