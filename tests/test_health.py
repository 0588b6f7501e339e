"""An account's state: connected only on proven contact of a run that is alive."""

import json
from dataclasses import replace
from datetime import timedelta

import pytest

from bridge import logs
from bridge.channel.testing.clock import START, FakeClock
from bridge.clock import unix_seconds
from bridge.health import Health, RemoteTools, Snapshot, State, to_wire
from bridge.ids import AccountId
from bridge.protocol import ours

FIRST = Snapshot(
    id=AccountId("pigeon:main"), channel="pigeon", account="main", state=State.STARTING, since=START
)


def new(clock: FakeClock, first: Snapshot = FIRST) -> Health:
    health = Health(first, clock)
    health.starting()
    return health


async def test_contact_connects_and_clears_the_reason() -> None:
    clock = FakeClock()
    health = new(clock)
    health.lost("the platform does not answer")
    assert (health.snapshot.state, health.snapshot.reason) == (
        State.DISCONNECTED,
        "the platform does not answer",
    )
    await clock.advance(5)
    health.contact()
    assert (health.snapshot.state, health.snapshot.reason) == (State.CONNECTED, "")
    assert health.snapshot.last_success == health.snapshot.since == START + timedelta(seconds=5)


async def test_further_contact_moves_the_last_success_and_not_the_since() -> None:
    clock = FakeClock()
    health = new(clock)
    health.contact()
    await clock.advance(7)
    health.contact()
    assert health.snapshot.since == START
    assert health.snapshot.last_success == START + timedelta(seconds=7)


def end_in(health: Health, state: State) -> None:
    match state:
        case State.BACKOFF:
            health.backoff("it crashed", 3.0)
        case State.FAILED:
            health.failed("its settings are wrong")
        case _:
            getattr(health, state.value)()


@pytest.mark.parametrize("state", [State.STOPPING, State.STOPPED, State.FAILED, State.BACKOFF])
def test_a_run_that_is_over_connects_nothing(state: State) -> None:
    health = new(FakeClock())
    end_in(health, state)
    before = health.snapshot
    health.contact()
    health.lost("late")
    assert health.snapshot == before


def test_a_skew_is_unknown_until_it_was_measured_and_outlives_runs() -> None:
    health = new(FakeClock())
    assert health.snapshot.clock_skew_seconds is None
    health.skewed(-600.0)
    health.backoff("it crashed", 2.0)
    health.starting()
    assert health.snapshot.clock_skew_seconds == -600


@pytest.mark.parametrize("state", [State.DISABLED, State.FAILED])
def test_what_is_not_to_run_connects_nothing(state: State) -> None:
    health = Health(replace(FIRST, state=state), FakeClock())
    health.contact()
    health.lost("late")
    assert health.snapshot.state is state


async def test_the_last_success_outlives_runs() -> None:
    clock = FakeClock()
    health = new(clock)
    health.contact()
    await clock.advance(1)
    health.backoff("it crashed", 2.0)
    health.starting()
    assert health.snapshot.last_success == START
    assert health.snapshot.state is State.STARTING


async def test_a_backoff_tells_the_reason_the_next_try_and_counts() -> None:
    clock = FakeClock()
    health = new(clock)
    await clock.advance(10)
    health.backoff("the platform cannot be reached", 4.0)
    assert health.snapshot.next_try == START + timedelta(seconds=14)
    assert health.snapshot.restarts == 1
    health.starting()
    assert health.snapshot.reason == "the platform cannot be reached"  # until there is contact
    assert [health.snapshot.next_try] == [None]
    health.contact()
    assert health.snapshot.reason == ""


def test_a_connection_that_a_run_repeats_by_itself_is_counted() -> None:
    health = new(FakeClock())
    health.repeated()
    assert (health.snapshot.restarts, health.snapshot.state) == (1, State.STARTING)


def test_what_is_parked_for_a_while_tells_its_next_try_and_stays_failed_in_it() -> None:
    health = new(FakeClock())
    health.failed("the platform refused the account", 60.0)
    assert health.snapshot.next_try == START + timedelta(seconds=60)
    health.contact()  # nothing runs
    health.starting()
    health.lost("the platform does not answer")
    snapshot = health.snapshot
    assert (snapshot.state, snapshot.reason) == (State.FAILED, "the platform refused the account")
    assert (snapshot.next_try, snapshot.restarts) == (None, 1)
    health.contact()
    assert health.snapshot.state is State.CONNECTED


async def test_contact_is_measured_as_its_longest_unbroken_span_of_a_run() -> None:
    clock = FakeClock()
    health = new(clock)
    await clock.advance(100)  # no contact yet
    assert health.contact_seconds() == 0
    health.contact()
    await clock.advance(30)
    health.contact()
    await clock.advance(10)
    assert health.contact_seconds() == 40
    health.lost("gone")
    await clock.advance(100)
    health.contact()
    await clock.advance(5)
    health.backoff("it crashed", 1.0)
    assert health.contact_seconds() == 40
    health.starting()
    assert health.contact_seconds() == 0


async def test_a_jump_of_the_wall_clock_changes_no_span() -> None:
    clock = FakeClock()
    health = new(clock)
    health.contact()
    clock.jump(86_400)
    assert health.contact_seconds() == 0


def test_tools_are_in_effect_only_with_a_known_owner() -> None:
    wished = replace(FIRST, tools_configured=RemoteTools.OWNER)
    assert wished.remote_tools is RemoteTools.NONE
    assert replace(wished, user_id="u1").remote_tools is RemoteTools.OWNER
    assert replace(FIRST, user_id="u1").remote_tools is RemoteTools.NONE


def test_what_is_known_of_bot_and_owner_is_kept_apart() -> None:
    health = new(FakeClock(), replace(FIRST, user_id="u1"))
    health.known(bot_id="b1")
    assert (health.snapshot.bot_id, health.snapshot.user_id) == ("b1", "u1")


def test_a_change_is_logged_once_and_retries_are_not(capsys: pytest.CaptureFixture[str]) -> None:
    logs.configure("info", as_json=True)
    health = new(FakeClock())
    for _ in range(3):
        health.backoff("it crashed", 1.0)
        health.starting()
    health.contact()
    health.contact()
    lines = capsys.readouterr().err.splitlines()
    assert [line.count("health.changed") for line in lines] == [1, 1]
    assert '"state": "backoff"' in lines[0]
    assert '"level": "warning"' in lines[0]
    assert "reason" not in lines[1]
    assert '"state": "connected"' in lines[1]


def test_troubles_that_take_turns_are_logged_once_until_contact(
    capsys: pytest.CaptureFixture[str],
) -> None:
    logs.configure("info", as_json=True)
    health = new(FakeClock())
    for _ in range(2):
        health.contact()
        for _ in range(5):
            health.lost("sending fails; it is tried again")
            health.lost("the platform does not answer")
    assert len(capsys.readouterr().err.splitlines()) == 2 * 3


def test_an_account_that_fails_before_its_first_run_is_logged(capsys: pytest.CaptureFixture[str]) -> None:
    logs.configure("info", as_json=True)
    Health(replace(FIRST, state=State.FAILED, reason="main.json is missing: create it"), FakeClock())
    Health(replace(FIRST, state=State.DISABLED), FakeClock())
    (line,) = capsys.readouterr().err.splitlines()
    assert '"level": "warning"' in line
    assert '"reason": "main.json is missing: create it"' in line


def test_the_wire_shows_the_whole_snapshot() -> None:
    at = START + timedelta(seconds=9)
    full = replace(
        FIRST,
        state=State.BACKOFF,
        reason="it crashed",
        last_success=at,
        next_try=at,
        restarts=2,
        tools_configured=RemoteTools.OWNER,
        bot_id="b1",
        user_id="u1",
        senders=ours.Senders.LIST,
        queue_depth=3,
        oldest_waiting=at,
        dead_letters=4,
        unproven_requests=5,
        last_unproven=at,
    )
    assert to_wire(full).model_dump(mode="json") == {
        "id": "pigeon:main",
        "channel": "pigeon",
        "account": "main",
        "bot_id": "b1",
        "user_id": "u1",
        "enabled": True,
        "state": "backoff",
        "last_success_unix_seconds": unix_seconds(at),
        "error": "it crashed",
        "restarts": 2,
        "remote_tools": "owner",
        "reason": "it crashed",
        "since_unix_seconds": unix_seconds(START),
        "next_try_unix_seconds": unix_seconds(at),
        "queue_depth": 3,
        "oldest_waiting_unix_seconds": unix_seconds(at),
        "dead_letters": 4,
        "senders": "list",
        "unproven_requests": 5,
        "last_unproven_unix_seconds": unix_seconds(at),
    }


async def test_requests_that_prove_nothing_are_counted_until_one_is_accepted_and_change_no_state() -> None:
    clock = FakeClock()
    health = new(clock)
    health.contact()
    before = health.snapshot
    health.refusals.refused(403)
    await clock.advance(5)
    health.refusals.refused(403)
    assert health.snapshot == replace(before, unproven_requests=2, last_unproven=START + timedelta(seconds=5))
    health.refusals.accepted()
    assert health.snapshot == before
    health.refusals.refused(403)
    assert health.snapshot.unproven_requests == 1


async def test_requests_that_prove_nothing_are_logged_once_in_ten_minutes(
    capsys: pytest.CaptureFixture[str],
) -> None:
    logs.configure("info", as_json=True)
    clock = FakeClock()
    health = Health(replace(FIRST, state=State.DISABLED), clock)
    for seconds in (0, 1, 598, 1, 1):
        await clock.advance(seconds)
        health.refusals.refused(401)
        health.refusals.accepted()  # anybody may make the two take turns
        health.refusals.refused(401)
    lines = [json.loads(line) for line in capsys.readouterr().err.splitlines()]
    assert [(line["event"], line["level"], line["account"], line["status"]) for line in lines] == [
        ("push.refused", "warning", "pigeon:main", 401)
    ] * 2
    assert [line["count"] for line in lines] == [1, 2]


def test_what_is_not_known_is_null_on_the_wire() -> None:
    wire = to_wire(FIRST)
    assert (wire.bot_id, wire.user_id, wire.last_success_unix_seconds, wire.error) == (None,) * 4


def test_figures_are_shown_as_measured() -> None:
    health = new(FakeClock())
    health.measured(2, START, 1)
    assert (health.snapshot.queue_depth, health.snapshot.oldest_waiting, health.snapshot.dead_letters) == (
        2,
        START,
        1,
    )


async def test_how_far_the_platform_s_clock_is_ahead_is_right_at_once_when_ours_is_set() -> None:
    clock = FakeClock()
    health = Health(Snapshot(AccountId("test:a"), "test", "a", State.CONNECTED, START), clock)
    health.skewed(-600.0)
    clock.jump(3600)
    assert health.snapshot.clock_skew_seconds == -4200
    await clock.advance(60)
    assert health.snapshot.clock_skew_seconds == -4200
    health.skewed(-4200.0)  # as the next probe tells it
    assert health.snapshot.clock_skew_seconds == -4200
    clock.jump(-3600)
    assert health.snapshot.clock_skew_seconds == -600
    health.skewed(-600.0)
    clock.jump(0.5)  # no more than a clock drifts: nothing new to tell
    assert health.snapshot.clock_skew_seconds == -600
