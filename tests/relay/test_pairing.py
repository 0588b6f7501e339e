"""Pairing: a code that a terminal shows makes its sender the owner, once."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from typing import Any

import pytest

from bridge.channel import ChannelSettings, FileKind, Inbound, RemoteFile
from bridge.channel.testing.clock import FakeClock, settle
from bridge.clock import unix_ms
from bridge.errors import ConfigError, StoreError
from bridge.ids import AccountId
from bridge.logs import HIDDEN, clean
from bridge.relay.ahead import Ahead, Said
from bridge.relay.followed import FOLLOW_SECONDS
from bridge.relay.pairing import CODE_SECONDS, TRIES, Pairing, Pairings, PairState, code_in, welcome
from bridge.relay.payload import conversation_of
from bridge.relay.texts import Language, Text, say
from bridge.store.contract import OwnerChat
from tests.relay.harness import NAME, Desk, desk, message
from tests.relay.test_claims import claims_of

CODE = "48217730"
WRONG, GUESSED, OVER = (
    say(text, Language.EN) for text in (Text.PAIR_WRONG, Text.PAIR_GUESSED, Text.PAIR_OVER)
)
WELCOME = welcome(ChannelSettings(), Language.EN)


def said(text: str, sender: str = "u1", **changes: Any) -> Inbound:
    return message(f"m-{sender}-{text}", text, sender, **changes)


@dataclass
class Place:
    """Pairings that are saved nowhere, and what an account with ``settings`` says to messages."""

    clock: FakeClock = field(default_factory=FakeClock)
    settings: ChannelSettings = field(default_factory=ChannelSettings)
    saved: list[OwnerChat] = field(default_factory=list)
    trouble: BaseException | None = None

    def __post_init__(self) -> None:
        self.pairings = Pairings(self.clock)

    def open(self, code: str = CODE, owner: str = "") -> Pairing:
        return self.pairings.open(NAME, code, owner)

    def hear(self, text: str, sender: str = "u1", **changes: Any) -> Said | None:
        return self.pairings.answerer(NAME, self.settings)(said(text, sender, **changes))

    def told(self, text: str, sender: str = "u1", **changes: Any) -> str | None:
        """What the message is answered with, once it is durable."""
        answer = self.hear(text, sender, **changes)
        if answer is not None:
            answer.act()
        return answer.text if answer is not None else None

    async def save(self, chat: OwnerChat) -> None:
        if self.trouble is not None:
            raise self.trouble
        self.saved.append(chat)
        self.settings = self.settings.model_copy(update={"owner": chat.owner})

    @asynccontextmanager
    async def running(self) -> AsyncIterator[None]:
        async with asyncio.TaskGroup() as tasks:
            run = tasks.create_task(self.pairings.run(self.save))
            yield
            await settle()
            run.cancel()


@pytest.fixture
def place() -> Place:
    return Place()


# --- what a code is ------------------------------------------------------------------------------


@pytest.mark.parametrize("text", ["48217730", "4821-7730", " 4821 7730\n", "４８２１－７７３０", "4821–7730"])
def test_a_code_is_read_however_a_keyboard_writes_it(text: str) -> None:
    assert code_in(said(text)) == CODE


@pytest.mark.parametrize(
    "text", ["", "4821773", "482177301", "my code is 4821-7730", "4821--7730", "48 217730"]
)
def test_a_code_stands_alone(text: str) -> None:
    assert code_in(said(text)) == ""


def test_a_code_with_a_file_a_quote_or_much_else_is_none() -> None:
    file = RemoteFile("k", FileKind.FILE)
    assert code_in(said(CODE, files=(file,))) == ""
    assert code_in(said(CODE, reference="quoted")) == ""
    assert code_in(said(CODE + " " * 100)) == ""


# --- who becomes the owner -----------------------------------------------------------------------


async def test_who_sends_the_code_becomes_the_owner_once_that_is_saved(place: Place) -> None:
    async with place.running():
        pairing = place.open()
        assert place.told("4821-7730") == WELCOME
        states = [pairing.state]
        await settle()
        assert [*states, pairing.state] == [PairState.SAVING, PairState.PAIRED]
        one = said("4821-7730")
        now_ms = unix_ms(place.clock.now())
        chat = OwnerChat(NAME, "u1", conversation_of(one), one.to, one.reply_to, "en", now_ms)
        assert place.saved == [chat]


async def test_a_code_makes_one_owner_however_many_send_it_before_the_first_is_durable(place: Place) -> None:
    async with place.running():
        place.open()
        first, second, again = place.hear(CODE), place.hear(CODE, "u2"), place.hear("4821-7730")
        answers = [answer for answer in (first, second, again) if answer is not None]
        assert [answer.text for answer in answers] == [WELCOME, OVER, WELCOME]
        for number in (1, 0, 2):
            answers[number].act()
        await settle()
        assert [chat.owner for chat in place.saved] == ["u1"]
        assert place.told(CODE) == WELCOME  # it is so
        assert place.told(CODE, "u2") == OVER
        assert len(place.saved) == 1


async def test_a_message_that_was_not_stored_makes_nobody_the_owner_and_its_repeat_does(place: Place) -> None:
    async with place.running():
        pairing = place.open()
        assert place.hear(CODE) is not None  # and it is not stored
        await settle()
        assert (pairing.state, place.saved) == (PairState.WAITING, [])
        place.told(CODE)
        await settle()
        assert pairing.state is PairState.PAIRED


def test_without_a_pairing_and_from_nobody_digits_are_an_ordinary_message(place: Place) -> None:
    assert place.told(CODE) is None
    place.open()
    assert place.told(CODE, "") is None
    assert place.told("hello") is None
    assert place.pairings.answerer(AccountId("test:b"), place.settings)(said(CODE)) is None


def test_five_wrong_codes_over_all_senders_end_it_also_in_one_batch(place: Place) -> None:
    pairing = place.open()
    for number in range(TRIES - 1):
        assert place.hear(f"1111111{number}", f"u{number}") == Said(WRONG)
        place.hear(f"1111111{number}", f"u{number}")  # its repeat is no further try
    assert pairing.tries_left == 1
    assert place.told("22222222") == GUESSED
    assert pairing.state is PairState.GUESSED
    assert place.told(CODE) == OVER
    assert place.told("33333333") is None


def test_the_last_wrong_code_says_what_to_do_and_nothing_of_the_code_or_the_command() -> None:
    assert "no longer valid" in GUESSED
    assert "in the terminal" in GUESSED
    for language in Language:
        assert "turnbridge" not in say(Text.PAIR_GUESSED, language).lower()
        assert not any(letter.isdigit() for letter in say(Text.PAIR_GUESSED, language))


async def test_after_ten_minutes_the_code_is_worth_nothing(place: Place) -> None:
    pairing = place.open()
    for _ in range(9):
        await place.clock.advance(60)
        pairing.followed._asked_at = place.clock.monotonic()
    await place.clock.advance(CODE_SECONDS - 9 * 60)
    assert place.told(CODE) == OVER
    assert pairing.state is PairState.EXPIRED


async def test_a_code_that_no_terminal_shows_any_more_is_worth_nothing(place: Place) -> None:
    pairing = place.open()
    await place.clock.advance(FOLLOW_SECONDS)
    assert place.told(CODE) == OVER
    assert pairing.state is PairState.WITHDRAWN


def test_groups_never_count_and_a_code_that_others_saw_is_worth_nothing(place: Place) -> None:
    pairing = place.open()
    assert place.told("11111111", group=True) is None
    assert pairing.tries_left == TRIES
    assert place.told(CODE, group=True) == OVER
    assert pairing.state is PairState.SHOWN
    assert place.told(CODE) == OVER


async def test_the_owner_s_code_shown_in_a_group_afterwards_changes_nothing(place: Place) -> None:
    async with place.running():
        pairing = place.open()
        place.told(CODE)
        await settle()
        assert place.told(CODE, group=True) == OVER
        assert pairing.state is PairState.PAIRED


@pytest.mark.parametrize("owner", ["u9", ""])
async def test_who_is_the_owner_no_more_is_not_told_so_for_an_old_code(place: Place, owner: str) -> None:
    async with place.running():
        place.open()
        place.told(CODE)
        await settle()
        place.settings = ChannelSettings(owner=owner)
        assert place.told(CODE) == OVER


def test_settings_that_name_another_owner_meanwhile_end_it(place: Place) -> None:
    pairing = place.open()
    place.settings = ChannelSettings(owner="u9")
    assert place.told(CODE) == OVER
    assert pairing.state is PairState.CHANGED


def test_a_new_code_takes_the_place_of_the_one_before(place: Place) -> None:
    before, after = place.open(), place.open("11112222")
    assert (before.state, after.state) == (PairState.REPLACED, PairState.WAITING)
    assert place.told(CODE) == WRONG
    assert place.told("1111-2222") == WELCOME
    assert place.pairings.find(before.followed.id) is None
    assert place.pairings.find(after.followed.id) is after


def test_what_is_withdrawn_is_over_unless_the_code_has_come(place: Place) -> None:
    pairing = place.open()
    place.pairings.withdraw(pairing)
    assert pairing.state is PairState.WITHDRAWN
    pairing = place.open()
    place.told(CODE)
    place.pairings.withdraw(pairing)
    assert pairing.state is PairState.SAVING


# --- saving, and following it --------------------------------------------------------------------


async def test_what_cannot_be_saved_makes_nobody_the_owner_and_says_why(place: Place) -> None:
    place.trouble = ConfigError("config.toml is read-only")
    async with place.running():
        pairing = place.open()
        place.told(CODE)
        await settle()
        assert (pairing.state, pairing.reason) == (PairState.FAILED, "config.toml is read-only")
        assert place.told(CODE) == OVER


async def test_a_crash_while_saving_leaves_nobody_waiting(place: Place) -> None:
    place.trouble = RuntimeError()
    pairing = place.open()
    place.told(CODE)
    with pytest.raises(RuntimeError):
        await place.pairings.run(place.save)
    assert pairing.state is PairState.FAILED


async def test_who_follows_it_is_answered_when_it_is_over_or_in_some_seconds(place: Place) -> None:
    pairing = place.open()

    async def seen(happens: Any) -> PairState:
        async with asyncio.TaskGroup() as tasks:
            following = tasks.create_task(place.pairings.news(pairing))
            await settle()
            happens()
            for _ in range(10):
                await place.clock.advance(0 if following.done() else 1)
        return pairing.state

    assert await seen(lambda: None) is PairState.WAITING
    assert await seen(lambda: place.told(CODE)) is PairState.SAVING
    assert await seen(lambda: pairing.enter(PairState.PAIRED)) is PairState.PAIRED
    await place.pairings.news(pairing)


async def test_who_follows_it_learns_at_once_that_its_time_is_over(place: Place) -> None:
    pairing = place.open()
    for _ in range(60):
        async with asyncio.TaskGroup() as tasks:
            tasks.create_task(place.pairings.news(pairing))
            await settle()
            await place.clock.advance(10)
    assert pairing.state is PairState.EXPIRED


# --- secrets, words ------------------------------------------------------------------------------


def test_a_code_is_never_shown_in_a_log_or_by_its_pairing(place: Place) -> None:
    pairing = place.open()
    assert clean("got 48217730 and 4821-7730") == f"got {HIDDEN} and {HIDDEN}"
    assert CODE not in repr(pairing)


def test_the_answer_names_what_the_owner_may_do() -> None:
    tools = ChannelSettings.model_validate({"remote_tools": "owner"})
    assert "use tools for you" in welcome(tools, Language.EN)
    assert "no tools" in WELCOME
    assert "/我是谁" in welcome(tools, Language.ZH)


# --- on an account -------------------------------------------------------------------------------


@asynccontextmanager
async def unowned() -> AsyncIterator[tuple[Desk, Place]]:
    """An account that answers nobody, and its pairings."""
    clock, settings = FakeClock(), {"owner": "", "senders": "owner"}
    place = Place(clock, ChannelSettings.model_validate(settings))
    ahead = Ahead(for_anybody=[place.pairings.answerer(NAME, place.settings)])
    async with desk(clock=clock, settings=settings, ahead=ahead) as here, place.running():
        place.open()
        yield here, place


async def test_a_stranger_whom_the_account_does_not_answer_can_still_pair() -> None:
    async with unowned() as (here, place):
        await here.say("hello", "u7")
        await here.say("1111 1111", "u7")
        await here.say("4821-7730", "u7")
        assert await here.answered(2) == [WRONG, WELCOME]
        assert here.server.peers == []
        assert [chat.owner for chat in place.saved] == ["u7"]


async def test_a_store_that_fails_leaves_the_code_as_it_was_for_its_sender() -> None:
    async with unowned() as (here, place):
        claims, failing = claims_of(here), True

        class Full:
            async def do(self, step: Any) -> Any:
                if failing:
                    raise StoreError("full")
                return await here.store.do(step)

        claims.store = Full()  # type: ignore[assignment]  # of a store, what claiming needs
        with pytest.raises(StoreError):
            await claims.take([said(CODE, "u7")], 0)
        await settle()
        assert place.saved == []
        failing = False
        await claims.take([said(CODE, "u7")], 0)
        await settle()
        assert [chat.owner for chat in place.saved] == ["u7"]
