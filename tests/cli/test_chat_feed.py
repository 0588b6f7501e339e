"""What happens at the daemon, as events: in order, once, and settled only when shown."""

import select
from collections.abc import Iterator
from contextlib import contextmanager

import pytest

from bridge.cli import chat_feed
from bridge.cli.chat_client import Part, Progress
from bridge.cli.chat_feed import Back, Came, Event, Failed, Feed, Lost, Moved
from bridge.paths import Home
from tests.cli.console import client_of, console_home, fake_console, part, turn

WAIT_SECONDS = 20.0


@pytest.fixture(autouse=True)
def _soon(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(chat_feed, "RETRY_SECONDS", 0.01)
    monkeypatch.setattr(chat_feed, "STEP_SECONDS", 0.001)


def next_events(feed: Feed) -> list[Event]:
    ready, _, _ = select.select([feed.wakes], [], [], WAIT_SECONDS)
    assert ready, "nothing happened"
    return feed.take()


def next_of(feed: Feed, kind: type[Event]) -> Event:
    """The next event of ``kind``; those before it are skipped."""
    while True:
        for event in next_events(feed):
            if isinstance(event, kind):
                return event


@contextmanager
def feeding(home: Home) -> Iterator[Feed]:
    feed = Feed(client_of(home))
    feed.start()
    try:
        yield feed
    finally:
        feed.close()


def test_replies_come_and_are_settled_once_they_were_shown() -> None:
    with console_home() as home, fake_console(home) as fake, feeding(home) as feed:
        fake.reply(part(1, "one"), part(2, "two"))
        (came,) = next_events(feed)
        assert isinstance(came, Came)
        assert [each.text for each in came.parts] == ["one", "two"]
        assert [query["after"] for _, query in fake.asked] == ["0"] * len(fake.asked)
        feed.settle(2)
        assert feed.settled == 2
        fake.reply(part(3, "three"))
        (came,) = next_events(feed)
        assert isinstance(came, Came)
        assert [each.cursor for each in came.parts] == [3]
        assert [each["cursor"] for each in fake.waiting] == [3]
        assert feed.take() == []


def test_a_daemon_that_goes_away_and_comes_back_is_told_once_each() -> None:
    with console_home() as home:
        feed = Feed(client_of(home))
        with fake_console(home):
            feed.start()
        assert isinstance(next_events(feed)[0], Lost)
        with fake_console(home) as fake:
            fake.reply(part(1, "late"))
            found = next_events(feed)
            found += next_events(feed) if len(found) == 1 else []
            assert [type(each) for each in found] == [Back, Came]
            feed.close()


def test_an_account_that_starts_anew_is_waited_for_in_silence_and_one_that_stays_away_is_told() -> None:
    with console_home() as home, fake_console(home) as fake:
        fake.refusals += [503] * chat_feed.UNREADY_TIMES
        fake.reply(part(1, "one"))
        with feeding(home) as feed:
            assert [type(each) for each in next_events(feed)] == [Came]
            fake.refusals += [503] * (chat_feed.UNREADY_TIMES + 1)
            feed.settle(1)
            assert isinstance(next_events(feed)[0], Lost)


def test_a_refusal_ends_the_asking() -> None:
    with console_home() as home, fake_console(home) as fake:
        fake.refusals.append(404)
        with feeding(home) as feed:
            (failed,) = next_events(feed)
            assert isinstance(failed, Failed)
            assert "is not served" in str(failed.error)


def test_a_turn_is_followed_until_it_is_over() -> None:
    with console_home() as home, fake_console(home) as fake, feeding(home) as feed:
        fake.shows("m1", turn(1, "a"))
        feed.follow("m1")
        assert feed.followed == "m1"
        assert next_of(feed, Moved) == Moved("m1", Progress(1, "a"))
        fake.shows("m1", turn(2, "ab"))
        assert next_of(feed, Moved) == Moved("m1", Progress(2, "ab"))
        fake.shows("m1", turn(over=True))
        moved = next_of(feed, Moved)
        assert isinstance(moved, Moved)
        assert moved.progress.over
        assert feed.followed == ""
        fake.shows("m2", turn(1, "b"))
        feed.follow("m2")
        assert next_of(feed, Moved) == Moved("m2", Progress(1, "b"))


def test_what_is_not_followed_any_more_is_not_told() -> None:
    with console_home() as home, fake_console(home) as fake, feeding(home) as feed:
        fake.shows("m1", turn(0))
        feed.follow("m1")
        while ("live", "m1") not in [(kind, query.get("message")) for kind, query in list(fake.asked)]:
            pass
        feed.follow("")
        fake.shows("m1", turn(1, "late"))
        fake.shows("m2", turn(1, "b"))
        feed.follow("m2")
        assert next_of(feed, Moved) == Moved("m2", Progress(1, "b"))


def test_following_goes_on_from_the_beginning_when_the_daemon_was_away() -> None:
    with console_home() as home, fake_console(home) as fake, feeding(home) as feed:
        fake.shows("m1", turn(7, "a"))
        feed.follow("m1")
        next_of(feed, Moved)
        with fake.changed:
            fake.refusals += [503, 503, 503]
        fake.shows("m1", turn(8, "ab"))  # ends the waiting
        fake.shows("m1", turn(2, "again"))
        while True:
            moved = next_of(feed, Moved)
            assert isinstance(moved, Moved)
            if moved.progress.text == "again":
                break


def test_parts_are_compared_as_values() -> None:
    assert Part.read(part(1, "a")) == Part.read(part(1, "a"))
