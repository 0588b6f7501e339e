"""What owners hear of: accounts that are out of contact, and a daemon that crashed."""

import asyncio
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, field, replace
from datetime import timedelta
from typing import Any

from bridge.channel.testing.clock import START, FakeClock, settle, until
from bridge.errors import StoreError
from bridge.health import Snapshot, State
from bridge.ids import AccountId
from bridge.relay.outages import (
    CRASH_SECONDS,
    DEAF,
    DEAF_SECONDS,
    LOOK_SECONDS,
    PARKED,
    PARKED_SECONDS,
    WELL,
    Outages,
    tell_of_crash,
    watch_accounts,
)
from bridge.relay.texts import Text

A, B = AccountId("test:a"), AccountId("test:b")


def account(state: State, id_: AccountId = A, **changes: Any) -> Snapshot:
    return replace(Snapshot(id_, "test", "a", state, START), **changes)


# --- looking ------------------------------------------------------------------------------------


async def test_an_account_is_deaf_after_ten_minutes_without_contact_however_its_run_fares() -> None:
    clock = FakeClock()
    outages = Outages(clock)
    assert outages.look([account(State.CONNECTED)]) == {A: WELL}
    for state in (State.DISCONNECTED, State.BACKOFF, State.STARTING, State.DISCONNECTED):
        assert outages.look([account(state)]) == {}
        await clock.advance(DEAF_SECONDS / 4)
    assert outages.look([account(State.BACKOFF)]) == {A: DEAF}
    assert outages.look([account(State.CONNECTED)]) == {A: WELL}


async def test_one_that_never_had_contact_is_deaf_too() -> None:
    clock = FakeClock()
    outages = Outages(clock)
    assert outages.look([account(State.STARTING)]) == {}
    await clock.advance(DEAF_SECONDS)
    assert outages.look([account(State.STARTING)]) == {A: DEAF}


async def test_contact_between_two_looks_begins_the_ten_minutes_anew() -> None:
    clock = FakeClock()
    outages = Outages(clock)
    outages.look([account(State.BACKOFF)])
    await clock.advance(DEAF_SECONDS)
    touched = account(State.BACKOFF, last_success=START + timedelta(seconds=5))
    assert outages.look([touched]) == {}
    await clock.advance(DEAF_SECONDS)
    assert outages.look([touched]) == {A: DEAF}


async def test_case_86_an_account_that_its_platform_refused_is_told_of_within_two_minutes() -> None:
    clock = FakeClock()
    outages = Outages(clock)
    assert outages.look([account(State.FAILED)]) == {}
    await clock.advance(PARKED_SECONDS)
    assert outages.look([account(State.FAILED)]) == {A: PARKED}
    assert PARKED_SECONDS + LOOK_SECONDS < 120


async def test_one_that_is_switched_off_or_gone_is_out_of_mind() -> None:
    clock = FakeClock()
    outages = Outages(clock)
    for state in (State.DISABLED, State.STOPPING, State.STOPPED):
        outages.look([account(State.BACKOFF), account(State.BACKOFF, B)])
        await clock.advance(DEAF_SECONDS)
        assert outages.look([account(state, enabled=state is not State.DISABLED)]) == {}
        assert outages.look([account(State.BACKOFF), account(State.BACKOFF, B)]) == {}


# --- telling ------------------------------------------------------------------------------------


@dataclass
class Heard:
    """Stands for the notices: what it was asked to tell, as long as it can be told."""

    said: list[tuple[str, str, Text, tuple[AccountId, ...]]] = field(default_factory=list)
    last: dict[str, str] = field(default_factory=dict)
    can: bool = True
    error: StoreError | None = None

    async def tell(
        self, topic: str, state: str, text: Text, about: Sequence[AccountId] = (), **values: object
    ) -> bool:
        if self.error is not None:
            raise self.error
        if not self.can or self.last.get(topic, "") == state:
            return False
        self.last[topic] = state
        self.said.append((topic, state, text, tuple(about)))
        return True

    async def follow(self, topic: str, others: Sequence[str]) -> None:
        self.last.update(dict.fromkeys(others, self.last[topic]))

    async def is_news(self, topic: str, state: str) -> bool:
        return self.last.get(topic, "") != state


class Log:
    def __init__(self) -> None:
        self.events: list[str] = []

    def warning(self, event: str, **values: object) -> None:
        self.events.append(event)


@asynccontextmanager
async def running(watch: Any) -> AsyncIterator[None]:
    async with asyncio.TaskGroup() as tasks:
        task = tasks.create_task(watch)
        await settle()
        yield
        task.cancel()


async def test_an_outage_and_its_end_are_told_once_each_and_not_through_itself() -> None:
    clock, heard, log = FakeClock(), Heard(), Log()
    now = {A: account(State.CONNECTED), B: account(State.CONNECTED, B)}

    async def after(seconds: float) -> list[tuple[str, str, Text, tuple[AccountId, ...]]]:
        for _ in range(round(seconds / LOOK_SECONDS)):
            await clock.advance(LOOK_SECONDS)
            await until(lambda: bool(clock.waits()))
        said, heard.said = heard.said, []
        return said

    watching = watch_accounts(lambda: list(now.values()), heard, clock, log)  # type: ignore[arg-type]  # of both, what it uses
    async with running(watching):
        assert await after(3600) == []
        now[A] = account(State.DISCONNECTED)
        assert await after(DEAF_SECONDS - LOOK_SECONDS) == []
        assert await after(120) == [("contact test:a", DEAF, Text.DEAF, (A,))]
        assert await after(36_000) == []
        now[A] = account(State.CONNECTED)
        assert await after(600) == [("contact test:a", WELL, Text.CONTACT_AGAIN, (A,))]
        now[B] = account(State.FAILED, B)
        assert await after(600) == [("contact test:b", PARKED, Text.PARKED, (B,))]
        heard.error = StoreError("full")
        assert await after(60) == []
        assert log.events == ["notice.failed"] * 2


async def test_many_at_once_are_told_of_together_and_each_but_once() -> None:
    clock, heard = FakeClock(), Heard()
    names = tuple(AccountId(f"test:{number}") for number in range(5))
    state = State.DISCONNECTED
    watching = watch_accounts(lambda: [account(state, id_) for id_ in names], heard, clock, Log())  # type: ignore[arg-type]  # of both, what it uses
    async with running(watching):

        async def after(seconds: float) -> list[tuple[str, str, Text, tuple[AccountId, ...]]]:
            for _ in range(round(seconds / LOOK_SECONDS)):
                await clock.advance(LOOK_SECONDS)
                await until(lambda: bool(clock.waits()))
            said, heard.said = heard.said, []
            return said

        heard.can = False
        assert await after(DEAF_SECONDS + 60) == []
        heard.can = True
        assert await after(600) == [("contact test:0", DEAF, Text.DEAF_MANY, names)]
        state = State.CONNECTED
        assert await after(600) == [("contact test:0", WELL, Text.CONTACT_AGAIN_MANY, names)]


async def test_a_crash_is_told_once_as_soon_as_somebody_can_be_reached() -> None:
    clock, heard, log = FakeClock(), Heard(can=False, error=StoreError("full")), Log()
    async with running(tell_of_crash("since 1", heard, clock, log)):  # type: ignore[arg-type]  # of both, what it uses
        await clock.advance(CRASH_SECONDS)
        heard.error = None
        await clock.advance(CRASH_SECONDS)
        heard.can = True
        await clock.advance(CRASH_SECONDS)
        await settle()
        assert heard.said == [("crash", "since 1", Text.CRASHED, ())]
        assert clock.waits() == []
        assert log.events == ["notice.failed"] * 2


async def test_after_a_proper_stop_nothing_is_told() -> None:
    clock, heard = FakeClock(), Heard()
    async with running(tell_of_crash("", heard, clock, Log())):  # type: ignore[arg-type]  # of both, what it uses
        assert heard.said == []
        assert clock.waits() == []
