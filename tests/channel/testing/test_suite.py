"""The suite as something to collect: ``tests/channel/test_suite.py`` is its run."""

import pytest

from bridge.channel.testing import suite
from bridge.channel.testing.checks import files, polled, pushed, rim, sending
from bridge.registry import channels, kits


class Metafunc:
    """What pytest hands to the hook, as far as it is used."""

    def __init__(self, *names: str) -> None:
        self.fixturenames = names
        self.given: dict[str, tuple[list[str], bool]] = {}

    def parametrize(self, name: str, values: list[str], indirect: bool = False) -> None:
        self.given[name] = (values, indirect)


def test_every_check_of_every_part_is_in_it() -> None:
    for part in (rim, pushed, polled, sending, files):
        for name in vars(part):
            assert not name.startswith("test_") or getattr(suite, name) is suite.CHECKS[name]
    assert len(suite.CHECKS) > 40


def test_checks_run_for_every_kit_and_every_channel() -> None:
    one, other, none = Metafunc("make_kit"), Metafunc("channel_name"), Metafunc("tmp_path")
    for each in (one, other, none):
        suite.pytest_generate_tests(each)  # type: ignore[arg-type]  # as far as it is used
    assert one.given == {"make_kit": (kits().names(), True)}
    assert other.given == {"channel_name": (channels().names(), False)}
    assert none.given == {}


@pytest.mark.parametrize("make_kit", ["webhook"], indirect=True)
def test_a_kit_is_made_of_its_channels_name(make_kit: type) -> None:
    assert make_kit().spec.name == "webhook"


make_kit = suite.make_kit
