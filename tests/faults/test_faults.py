"""The status against the truth, under faults at random; and that a status that lies would be noticed."""

import pytest

from bridge.relay import contact
from bridge.relay.contact import Trouble
from bridge.relay.delivery import Delivery
from tests.faults.drive import CHANNELS, run


@pytest.mark.parametrize("channel", CHANNELS)
def test_status_is_never_connected_too_long_and_every_account_comes_back(channel: str) -> None:
    report = run(1, 10, [channel])
    assert report.messages > 5
    assert report.breaches == [], "\n".join(report.lines())


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(10, 20))
def test_500_faults_among_accounts_that_run_side_by_side(seed: int) -> None:
    report = run(seed, 50)
    assert sum(report.faults.values()) == 50
    assert report.breaches == [], "\n".join(report.lines())


def breaches(channel: str) -> set[str]:
    """Of many seeds, each by its first words after the channel's name."""
    found = {breach for seed in range(2) for breach in run(seed, 8, [channel]).breaches}
    return {" ".join(breach.split()[1:2]) for breach in found}


def test_a_probe_that_comes_too_seldom_is_noticed(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(contact, "PROBE_SECONDS", 1500.0)
    assert "connected" in breaches("feishu")


def test_failed_sendings_that_are_told_to_nobody_are_noticed(monkeypatch: pytest.MonkeyPatch) -> None:
    later = Delivery._later
    monkeypatch.setattr(
        Delivery,
        "_later",
        lambda self, entry, contact, *rest, **more: later(self, entry, Deaf(), *rest, **more),
    )
    assert "connected" in breaches("webhook")


class Deaf:
    """A contact that is never lost."""

    def contact(self) -> None: ...
    def lost(self, reason: str) -> None: ...


def test_trouble_that_is_told_to_nobody_is_noticed(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Trouble, "__call__", lambda self, error: None)
    assert "connected" in breaches("plainline")
