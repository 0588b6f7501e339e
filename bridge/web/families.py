"""The metric families, as docs/metrics.md lists them. Imported with the first question: see ``metrics``.

Labels are channel, account and words from closed lists: the number of series grows with the accounts alone. A
histogram, and a count by a word, is there once something was counted in it.
"""

from __future__ import annotations

import platform
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from datetime import datetime
from typing import Any

from prometheus_client import CollectorRegistry, ProcessCollector, generate_latest
from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily, HistogramMetricFamily
from prometheus_client.metrics_core import Metric
from prometheus_client.registry import Collector

from bridge.health import Snapshot, State
from bridge.ids import AccountId
from bridge.meter import AccountMeter, Histogram
from bridge.web.seen import Seen

ACCOUNT = ("channel", "account")
PREFIX = "turnbridge_"
_NOTHING_YET = AccountMeter()


def text_of(seen: Seen) -> bytes:
    """In Prometheus' text format, with what the process itself uses. Blocking: reads /proc."""
    registry = CollectorRegistry()
    registry.register(_Seen(seen))
    ProcessCollector(registry=registry)
    return generate_latest(registry)


class _Seen(Collector):
    def __init__(self, seen: Seen) -> None:
        self._seen = seen

    def describe(self) -> list[Metric]:
        """Nothing is asked for before it is collected."""
        return []

    def collect(self) -> Iterator[Metric]:
        yield from _daemon(self._seen)
        yield from _snapshots(self._seen.snapshots)
        accounts = self._seen.meter.accounts
        meters = {one.id: accounts.get(one.id, _NOTHING_YET) for one in self._seen.snapshots}
        yield from _counters(meters)
        yield from _histograms(meters)


def _daemon(seen: Seen) -> Iterator[Metric]:
    meter, store = seen.meter, seen.meter.store
    build = GaugeMetricFamily(PREFIX + "build_info", "What runs: always 1.", labels=("version", "python"))
    build.add_metric((seen.version, platform.python_version()), 1)
    yield build
    yield _gauge("start_timestamp_seconds", "When it started.", meter.began.timestamp())
    lag = _histogram("event_loop_lag_seconds", "How late the event loop is, looked at once a second.")
    _observed(lag, (), meter.loop_lag)
    yield lag
    yield _gauge("store_backlog", "Steps that wait for the disk.", seen.backlog)
    yield CounterMetricFamily(PREFIX + "store_steps", "Steps taken.", value=store.steps)
    commits = _histogram("store_commit_seconds", "Taking a group of steps, until they are on disk.")
    _observed(commits, (), store.commits)
    yield commits
    yield _gauge("store_database_bytes", "Size of the database.", seen.database_bytes)
    yield _gauge("store_wal_bytes", "Size of the database's log.", seen.wal_bytes)


# --- accounts as they are -----------------------------------------------------------------------


def _snapshots(snapshots: Sequence[Snapshot]) -> Iterator[Metric]:
    state = GaugeMetricFamily(PREFIX + "account_state", "1 in its state.", labels=(*ACCOUNT, "state"))
    for one in snapshots:
        for each in State:
            state.add_metric((one.channel, one.account, each.value), one.state is each)
    yield state
    restarts = CounterMetricFamily(PREFIX + "account_restarts", "Runs that ended.", labels=ACCOUNT)
    for one in snapshots:
        restarts.add_metric((one.channel, one.account), one.restarts)
    yield restarts
    for name, told, value in _GAUGES:
        gauge = GaugeMetricFamily(f"{PREFIX}account_{name}", told, labels=ACCOUNT)
        for one in snapshots:
            if (number := value(one)) is not None:
                gauge.add_metric((one.channel, one.account), number)
        yield gauge


def _stamp(instant: datetime | None) -> float | None:
    return None if instant is None else instant.timestamp()


_GAUGES: tuple[tuple[str, str, Callable[[Snapshot], float | None]], ...] = (
    ("since_timestamp_seconds", "Since when it is in its state.", lambda one: _stamp(one.since)),
    ("last_success_timestamp_seconds", "The last proven exchange.", lambda one: _stamp(one.last_success)),
    ("next_try_timestamp_seconds", "When it is run again.", lambda one: _stamp(one.next_try)),
    ("queue_depth", "Messages and parts that wait or run.", lambda one: one.queue_depth),
    ("oldest_waiting_timestamp_seconds", "When the oldest came.", lambda one: _stamp(one.oldest_waiting)),
    ("dead_letters", "Parts that were given up and are kept.", lambda one: one.dead_letters),
    ("clock_skew_seconds", "How far its platform's clock is ahead.", lambda one: one.clock_skew_seconds),
    ("unproven_requests", "Refused since the last accepted one.", lambda one: one.unproven_requests),
    ("last_unproven_timestamp_seconds", "The last of those.", lambda one: _stamp(one.last_unproven)),
)  # fmt: skip


# --- what they have done ------------------------------------------------------------------------


def _counters(meters: Mapping[AccountId, AccountMeter]) -> Iterator[Metric]:
    for name, told, label, counts in _COUNTS:
        counter = CounterMetricFamily(PREFIX + name, told, labels=(*ACCOUNT, label))
        for id_, meter in meters.items():
            for word, count in dict(counts(meter)).items():
                counter.add_metric((*_labels(id_), word), count)
        yield counter
    for name, told, total in _TOTALS:
        counter = CounterMetricFamily(PREFIX + name, told, labels=ACCOUNT)
        for id_, meter in meters.items():
            counter.add_metric(_labels(id_), total(meter))
        yield counter


_COUNTS: tuple[tuple[str, str, str, Callable[[AccountMeter], Mapping[Any, int]]], ...] = (
    ("requests", "HTTP requests to its route, by their answers.", "code", lambda meter: meter.requests),
    ("messages", "Items received, by what became of them.", "result", lambda meter: meter.messages),
    ("send_tries", "Tries to send a part, by how they ended.", "outcome", lambda meter: meter.tries),
    ("tokens", "What turns used, as agents tell.", "kind", lambda meter: meter.tokens),
    ("given_up_parts", "Parts that were given up, by their state.", "state", lambda meter: meter.given_up),
)
_TOTALS: tuple[tuple[str, str, Callable[[AccountMeter], float]], ...] = (
    ("request_bytes", "Bodies of these requests.", lambda meter: meter.received_bytes),
    ("sent_bytes", "Texts and files that were sent.", lambda meter: meter.sent_bytes),
    ("cost_dollars", "What turns cost, as agents tell.", lambda meter: meter.cost_micros / 1_000_000),
    ("held_replies", "Texts kept for the next reply to carry.", lambda meter: meter.held),
)


def _histograms(meters: Mapping[AccountId, AccountMeter]) -> Iterator[Metric]:
    for name, told, of in _SECONDS:
        family = _histogram(name, told, ACCOUNT)
        for id_, meter in meters.items():
            _observed(family, _labels(id_), of(meter))
        yield family
    turns = _histogram("turn_seconds", "Work on a message in its slot, by its end.", (*ACCOUNT, "outcome"))
    for id_, meter in meters.items():
        for end, seconds in dict(meter.turns).items():
            _observed(turns, (*_labels(id_), end), seconds)
    yield turns


_SECONDS: tuple[tuple[str, str, Callable[[AccountMeter], Histogram]], ...] = (
    ("claim_seconds", "From items that were read to their being on disk.", lambda meter: meter.claims),
    ("turn_wait_seconds", "Waiting for a slot.", lambda meter: meter.slot_waits),
    ("delivery_seconds", "From the outbox to the platform.", lambda meter: meter.deliveries),
)


def _labels(id_: AccountId) -> tuple[str, str]:
    channel, _, account = id_.partition(":")
    return channel, account


def _gauge(name: str, told: str, value: float) -> Metric:
    return GaugeMetricFamily(PREFIX + name, told, value=value)


def _histogram(name: str, told: str, labels: Sequence[str] = ()) -> HistogramMetricFamily:
    return HistogramMetricFamily(PREFIX + name, told, labels=labels)


def _observed(family: HistogramMetricFamily, labels: Iterable[str], seen: Histogram) -> None:
    counts, total = list(seen.counts), seen.total
    if not any(counts):
        return
    buckets, so_far = [], 0
    for bound, count in zip((*seen.bounds, float("inf")), counts, strict=True):
        so_far += count
        buckets.append(("+Inf" if bound == float("inf") else repr(bound), so_far))
    family.add_metric(tuple(labels), buckets, total)
