"""What /metrics shows: every family that docs/metrics.md lists and no other, with bounded labels."""

import re
from dataclasses import replace
from datetime import timedelta
from pathlib import Path

import pytest
from prometheus_client.metrics_core import Metric
from prometheus_client.parser import text_string_to_metric_families

from bridge.channel.testing.clock import START, FakeClock
from bridge.health import Snapshot, State
from bridge.ids import AccountId
from bridge.meter import Meter, Try, TurnEnd
from bridge.web.families import text_of
from bridge.web.seen import Seen

DOCS = Path(__file__).parents[2] / "docs" / "metrics.md"
PIGEON = AccountId("pigeon:main")
SNAPSHOT = Snapshot(PIGEON, "pigeon", "main", State.CONNECTED, START)


def families(meter: Meter, *snapshots: Snapshot) -> dict[str, Metric]:
    text = text_of(Seen("1.2.3", meter, snapshots, 0, 1, 2)).decode()
    return {family.name: family for family in text_string_to_metric_families(text)}


def sample(family: Metric, name: str, **labels: str) -> float:
    (value,) = [
        one.value for one in family.samples if one.name == name and labels.items() <= one.labels.items()
    ]
    return value


def busy() -> Meter:
    """Everything was counted once."""
    meter = Meter(FakeClock())
    account = meter.of(PIGEON)
    account.requested(200, 512)
    account.claimed(["accepted", "duplicate"], 0.004)
    account.slot_waits.add(0.0)
    account.turned(TurnEnd.COMPLETED, 3.0)
    account.turned(TurnEnd.TIMEOUT, 300.0)
    account.spent(7, 3, 1_500_000)
    account.tries[Try.SENT] += 1
    account.delivered(0.2, 64)
    account.gave_up("expired", 2, is_held=True)
    meter.loop_lag.add(0.001)
    with meter.store.commit(3):
        pass
    return meter


def test_what_was_counted_is_shown_by_channel_and_account() -> None:
    shown = families(busy(), SNAPSHOT)
    own = {"channel": "pigeon", "account": "main"}

    def total(name: str, **labels: str) -> float:
        return sample(shown[f"turnbridge_{name}"], f"turnbridge_{name}_total", **own, **labels)

    def count(name: str, **labels: str) -> float:
        return sample(shown[f"turnbridge_{name}"], f"turnbridge_{name}_count", **own, **labels)

    assert total("requests", code="2xx") == 1
    assert total("request_bytes") == 512
    assert (total("messages", result="accepted"), total("messages", result="duplicate")) == (1, 1)
    assert (total("tokens", kind="input"), total("tokens", kind="output")) == (7, 3)
    assert total("cost_dollars") == 1.5
    assert total("send_tries", outcome="sent") == 1
    assert (total("sent_bytes"), total("held_replies"), total("given_up_parts", state="expired")) == (
        64,
        1,
        2,
    )
    assert (count("claim_seconds"), count("turn_wait_seconds"), count("delivery_seconds")) == (1, 1, 1)
    assert count("turn_seconds", outcome="completed") == count("turn_seconds", outcome="timeout") == 1
    assert sample(shown["turnbridge_store_steps"], "turnbridge_store_steps_total") == 3
    assert sample(shown["turnbridge_build_info"], "turnbridge_build_info", version="1.2.3") == 1


def test_a_histogram_counts_up_to_each_bound_and_all_of_it() -> None:
    turns = families(busy(), SNAPSHOT)["turnbridge_turn_seconds"]
    buckets = {
        one.labels["le"]: one.value
        for one in turns.samples
        if one.name.endswith("_bucket") and one.labels["outcome"] == "timeout"
    }
    assert (buckets["60.0"], buckets["300.0"], buckets["+Inf"]) == (0, 1, 1)
    assert sample(turns, "turnbridge_turn_seconds_sum", outcome="timeout") == 300


@pytest.mark.parametrize("state", list(State))
def test_an_account_is_in_exactly_one_state(state: State) -> None:
    states = families(Meter(FakeClock()), replace(SNAPSHOT, state=state))["turnbridge_account_state"]
    assert {one.labels["state"]: one.value for one in states.samples} == {
        other.value: float(other is state) for other in State
    }


def test_the_snapshot_s_figures_are_shown_and_what_is_not_known_is_left_out() -> None:
    known = replace(
        SNAPSHOT,
        last_success=START + timedelta(seconds=1),
        next_try=START + timedelta(seconds=2),
        oldest_waiting=START + timedelta(seconds=3),
        restarts=4,
        queue_depth=5,
        dead_letters=6,
        clock_skew_seconds=-7.5,
        unproven_requests=8,
        last_unproven=START + timedelta(seconds=9),
    )
    other = replace(SNAPSHOT, id=AccountId("pigeon:other"), account="other")
    shown = families(Meter(FakeClock()), known, other)
    began = START.timestamp()

    def value(name: str, account: str = "main") -> float:
        return sample(shown[f"turnbridge_account_{name}"], f"turnbridge_account_{name}", account=account)

    assert value("since_timestamp_seconds") == began
    assert value("last_success_timestamp_seconds") == began + 1
    assert value("next_try_timestamp_seconds") == began + 2
    assert value("oldest_waiting_timestamp_seconds") == began + 3
    assert (value("queue_depth"), value("dead_letters"), value("clock_skew_seconds")) == (5, 6, -7.5)
    assert value("unproven_requests") == 8
    assert value("last_unproven_timestamp_seconds") == began + 9
    assert value("unproven_requests", "other") == 0
    restarts = shown["turnbridge_account_restarts"]
    assert sample(restarts, "turnbridge_account_restarts_total", account="main") == 4
    assert [
        one.labels["account"] for one in shown["turnbridge_account_next_try_timestamp_seconds"].samples
    ] == ["main"]


def test_an_account_that_is_gone_is_not_shown() -> None:
    assert not [
        one for family in families(busy()).values() for one in family.samples if "account" in one.labels
    ]


def test_the_page_lists_every_family_and_no_other_with_its_labels() -> None:
    shown = families(busy(), replace(SNAPSHOT, last_success=START, next_try=START))
    listed = dict(re.findall(r"^\| `(turnbridge_\w+)` \|([^|]*)\|", DOCS.read_text(), re.MULTILINE))
    own = {name.removesuffix("_total") for name in listed}
    assert own == {name for name in shown if name.startswith("turnbridge_")}
    for name, told in listed.items():
        labels = {label for one in shown[name.removesuffix("_total")].samples for label in one.labels} - {
            "le"
        }
        assert set(re.findall(r"`(\w+)`", told)) == labels or not labels, name
