"""One message and its answer: it ends with the last part, in time, or with the truth."""

import itertools
from collections.abc import Iterator

import pytest

from bridge.cli import chat_turn
from bridge.cli.chat_client import ConsoleClient, HungUpError, NotReadyError
from bridge.cli.chat_turn import StoppedError, Turns, new_id
from bridge.cli.common import NotRunningError
from tests.cli.console import FakeConsole, client_of, console_home, fake_console, part, turn


@pytest.fixture(autouse=True)
def _soon(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(chat_turn, "PAUSE_SECONDS", 0.01)
    monkeypatch.setattr(chat_turn, "ASK_SECONDS", 0.05)


@pytest.fixture
def fake() -> Iterator[FakeConsole]:
    with console_home() as home, fake_console(home) as served:
        served.path = home.console_socket
        yield served


def client_at(fake: FakeConsole) -> ConsoleClient:
    return ConsoleClient(fake.path, "local", "main", "turnbridge run")


def turns_of(fake: FakeConsole) -> Turns:
    return Turns(client_at(fake))


def texts(turns: Turns, seconds: float | None = None) -> list[str]:
    return [each.text for each in turns.answer("hi", [], "m1", seconds)]


def test_the_answer_ends_with_its_last_part_and_is_settled(fake: FakeConsole) -> None:
    fake.answers_with = lambda body: fake.reply(
        part(1, "from before", "m0"), part(2, "a", parts=2), part(3, "b", part=2, parts=2)
    )
    assert texts(turns_of(fake)) == ["from before", "a", "b"]
    assert fake.waiting == []


def test_a_part_that_was_not_taken_is_not_settled(fake: FakeConsole) -> None:
    fake.answers_with = lambda body: fake.reply(part(1, "a"), part(2, "b", "m0"))
    turns = turns_of(fake)
    assert next(turns.answer("hi", [], "m1")).text == "a"
    assert turns.settled == 0
    assert len(fake.waiting) == 2


def test_it_comes_later(fake: FakeConsole) -> None:
    def later(body: object) -> None:
        fake.turns["m1"] = turn(1)

    fake.answers_with = later
    answer = turns_of(fake).answer("hi", [], "m1")
    seen = 0

    def asked_again() -> bool:
        nonlocal seen
        seen += 1
        if seen == 3:
            fake.reply(part(1, "late"))
        return True

    own = fake.live
    fake.live = lambda query: (asked_again(), own(query))[1]  # type: ignore[method-assign] # the fake's own
    assert [each.text for each in answer] == ["late"]


def test_busy_is_an_answer_of_its_own(fake: FakeConsole) -> None:
    fake.outcome = "busy"
    (told,) = turns_of(fake).answer("hi", [], "m1")
    assert (told.notice, told.final) == ("busy", True)


def test_a_turn_that_somebody_stopped_has_no_answer(fake: FakeConsole) -> None:
    fake.answers_with = lambda body: fake.shows("m1", turn(over=True))
    with pytest.raises(StoppedError, match="without an answer"):
        texts(turns_of(fake))


def test_an_answer_that_came_just_before_the_turn_was_over_counts(fake: FakeConsole) -> None:
    def ends(query: dict[str, str]) -> dict[str, object]:
        fake.reply(part(1, "just in time"))
        return turn(over=True)

    fake.live = ends  # type: ignore[method-assign] # the fake's own
    assert texts(turns_of(fake)) == ["just in time"]


def test_out_of_time_it_is_taken_back(fake: FakeConsole) -> None:
    with pytest.raises(StoppedError, match="no answer in time: the turn was stopped"):
        texts(turns_of(fake), 0.1)
    assert [body["type"] for body in fake.posted] == ["message", "recall"]


def test_an_answer_that_overtook_the_recall_counts(fake: FakeConsole) -> None:
    def after_the_recall(body: dict[str, object]) -> dict[str, object]:
        if body["type"] == "recall":
            fake.reply(part(1, "done already"))
        return own(body)

    own = fake.post
    fake.post = after_the_recall  # type: ignore[method-assign] # the fake's own
    assert texts(turns_of(fake), 0.1) == ["done already"]
    assert fake.waiting == []


def test_a_turn_that_does_not_stop_in_time_is_left(
    fake: FakeConsole, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(chat_turn, "STOP_SECONDS", 0.05)
    fake.live = lambda query: turn(int(query["version"]) + 1)  # type: ignore[method-assign] # the fake's own
    with pytest.raises(StoppedError):
        texts(turns_of(fake), 0.05)


@pytest.mark.parametrize("end", [KeyboardInterrupt, SystemExit])
def test_ctrl_c_or_a_signal_takes_it_back(fake: FakeConsole, end: type[BaseException]) -> None:
    def interrupt(query: dict[str, str]) -> None:
        raise end

    turns = turns_of(fake)
    turns._replies = interrupt  # type: ignore[method-assign, assignment] # as a signal would while it waits
    with pytest.raises(end):
        texts(turns)
    assert [body["type"] for body in fake.posted] == ["message", "recall"]


def test_a_daemon_that_hangs_up_is_asked_again_under_the_same_id(fake: FakeConsole) -> None:
    fake.refusals += [None, 503]
    fake.answers_with = lambda body: fake.reply(part(1, "a"))
    assert texts(turns_of(fake)) == ["a"]
    assert [body["id"] for body in fake.posted] == ["m1"]


def test_one_that_stays_away_is_given_up(fake: FakeConsole, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(chat_turn, "GONE_SECONDS", 0.05)
    fake.refusals += [None] * 1000
    with pytest.raises(HungUpError):
        texts(turns_of(fake))


def test_where_no_daemon_runs_nothing_is_waited_for() -> None:
    with console_home() as home, pytest.raises(NotRunningError):
        list(Turns(client_of(home)).answer("hi", [], "m1"))


def test_what_waits_is_given_page_by_page(fake: FakeConsole) -> None:
    fake.reply(part(1, "a"), part(2, "b"))
    turns = turns_of(fake)
    assert [each.text for each in turns.waiting()] == ["a", "b"]
    assert (turns.settled, fake.waiting) == (2, [])


def test_ids_differ() -> None:
    assert new_id() != new_id()


def test_a_daemon_that_is_away_is_not_waited_for_longer_than_for_the_answer(fake: FakeConsole) -> None:
    fake.refusals += [503] * 100
    turns = Turns(client_at(fake), itertools.count().__next__)  # each look at the clock is a second later
    with pytest.raises(NotReadyError):
        texts(turns, 10)
    assert len(fake.refusals) > 80
