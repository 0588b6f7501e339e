"""Questions to an owner: asked once, open while somebody waits, answered by a plain word or not at all."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest

from bridge.channel import ChannelSettings, FileKind, RemoteFile
from bridge.channel.testing.clock import START, FakeClock, settle, until
from bridge.errors import BridgeError, StoreError
from bridge.health import Health, Snapshot, State
from bridge.ids import AccountId, ConversationKey
from bridge.questions import LOOK_SECONDS, NOT_YET, Question, Questions, QuestionState
from bridge.relay.ahead import Said
from bridge.relay.followed import FOLLOW_SECONDS
from bridge.relay.reach import Reach
from bridge.relay.texts import Language, Text, say
from bridge.store.contract import Hold, NoteOwner, OpenParts, OwnerChat, PartState, Settle, Store
from bridge.store.sqlite import open_store
from bridge.store.workers import InlineWorker
from bridge.supervisor import Plan, Supervisor
from tests.relay.harness import message
from tests.store.around import Around

MAIN, OTHER, LOST = AccountId("test:main"), AccountId("test:other"), AccountId("test:lost")
OWNER = "u1"
SENDING, OPEN = QuestionState.SENDING, QuestionState.OPEN


@dataclass
class Bot:
    """An account; all but ``test:lost`` have contact. It notes what it is told."""

    name: str
    told: list[str] = field(default_factory=list)
    dropped: list[str] = field(default_factory=list)
    room: int = 2000

    async def run(self, health: Health) -> None:
        if self.name != LOST:
            health.contact()
        await asyncio.Event().wait()

    async def deliver(self, reply_id: str) -> None:
        self.told.append(reply_id)

    def drop_reply(self, reply_id: str) -> None:
        self.dropped.append(reply_id)

    def takes(self, text: str) -> bool:
        return len(text) <= self.room


class Failing(Around):
    """A store whose steps fail, or stall, while they shall."""

    def __init__(self, store: Store) -> None:
        super().__init__(store)
        self.fails = False
        self.stalled: asyncio.Event | None = None

    async def do(self, step: Any) -> Any:
        if self.stalled is not None:
            await self.stalled.wait()
        if self.fails:
            raise StoreError("full")
        return await self._store.do(step)


@dataclass
class Place:
    store: Failing
    clock: FakeClock
    questions: Questions
    bots: dict[AccountId, Bot]
    preferred: list[str]
    skew: float = 0.0
    settings: ChannelSettings = field(default_factory=lambda: ChannelSettings(owner=OWNER))

    async def parts(self, account: AccountId = MAIN) -> list[str]:
        return [part.body for part in await self.store.get(OpenParts(account))]

    async def ask(self, account: str = "", seconds: int = 1800, *, shown: bool = True) -> Question:
        question = await self.questions.ask("Deploy <at now?", account, seconds)
        await settle()
        if question.posted is NOT_YET:
            await self.look()
        if shown:
            await self.ends(question, PartState.SENT)
            assert question.state is OPEN
        return question

    async def ends(self, question: Question, state: PartState) -> None:
        """The platform takes the question, or refuses it."""
        part = question.posted.part_id
        step = Settle(part, state, int(self.clock.now().timestamp() * 1000), "om_1")
        await self.store.do(step if state is PartState.SENT else Hold(part, state, "", 1))
        await self.look()

    async def look(self, seconds: float = LOOK_SECONDS) -> None:
        await until(lambda: bool(self.clock.waits()))
        await self.clock.advance(seconds)
        await settle()

    def hear(self, text: str, sender: str = OWNER, **changes: Any) -> Said | None:
        one = message(changes.pop("id_", f"m-{text}"), text, sender, **changes)
        return self.questions.answerer(MAIN, self.settings)(one)

    def told(self, text: str, **changes: Any) -> str:
        """What the message is answered with, "" for none, once it is durable."""
        said = self.hear(text, **changes)
        if said is None:
            return ""
        said.act()
        return said.text


@asynccontextmanager
async def opened(tmp_path: Path, owner: str = OWNER) -> AsyncIterator[Place]:
    clock, preferred = FakeClock(), list[str]()
    supervisor, bots = Supervisor(clock), {name: Bot(name) for name in (MAIN, OTHER, LOST)}

    def plan(name: AccountId) -> Plan:
        first = Snapshot(name, "test", name.partition(":")[2], State.STARTING, START, user_id=owner)
        return Plan(first, 1, lambda: bots[name])

    async with (
        open_store(tmp_path / "db", workers=InlineWorker) as file,
        supervisor.running(),
        asyncio.TaskGroup() as tasks,
    ):
        await supervisor.reconcile([plan(name) for name in bots])
        await settle()
        for number, name in enumerate((LOST, OTHER, MAIN)):
            await file.do(NoteOwner(OwnerChat(name, OWNER, ConversationKey("c"), "to", "h", "en", number)))
        store = Failing(file)
        reach = Reach(supervisor, store, lambda: preferred)
        questions = Questions(store, clock, reach, lambda account: place.skew)
        place = Place(store, clock, questions, bots, preferred)
        running = tasks.create_task(questions.run())
        yield place
        running.cancel()


QUESTION = say(Text.QUESTION, Language.EN, question="Deploy <\u200bat now?", time="30 min")
YES, NO = (
    say(text, Language.EN, question="Deploy <\u200bat now?") for text in (Text.QUESTION_YES, Text.QUESTION_NO)
)
LATE = say(Text.QUESTION_UNANSWERED, Language.EN, question="Deploy <\u200bat now?")
WITHDRAWN = say(Text.QUESTION_WITHDRAWN, Language.EN, question="Deploy <\u200bat now?")


# --- asking ---------------------------------------------------------------------------------------


async def test_it_is_one_message_where_the_owner_wrote_last_and_open_once_the_platform_has_it(
    tmp_path: Path,
) -> None:
    async with opened(tmp_path) as place:
        question = await place.ask(shown=False)
        (part,) = await place.store.get(OpenParts(MAIN))
        assert (part.body, part.to, part.reply_to, part.notice) == (QUESTION, "to", "", "question")
        assert part.transient
        assert place.bots[MAIN].told == [part.reply_id]
        assert place.told("yes") == ""
        await place.look()
        assert question.state is SENDING
        await place.ends(question, PartState.SENT)
        assert question.state is OPEN


async def test_it_goes_where_notices_go_or_to_the_account_that_is_named(tmp_path: Path) -> None:
    async with opened(tmp_path) as place:
        place.preferred += [LOST, OTHER]
        assert (await place.ask(shown=False)).chat.account == OTHER
        assert (await place.ask(MAIN, shown=False)).chat.account == MAIN
        with pytest.raises(BridgeError, match="test:lost has no contact with its platform right now"):
            await place.ask(LOST)
        with pytest.raises(BridgeError, match="no account with a known owner: look at the status"):
            await place.ask("test:unknown")


async def test_without_a_known_owner_nobody_is_asked(tmp_path: Path) -> None:
    async with opened(tmp_path, owner="") as place:
        with pytest.raises(BridgeError, match="no account with a known owner has contact"):
            await place.ask()
        with pytest.raises(BridgeError, match="no account with a known owner"):
            await place.ask(MAIN)


async def test_one_question_is_open_per_chat_and_the_next_after_it(tmp_path: Path) -> None:
    async with opened(tmp_path) as place:
        await place.ask()
        with pytest.raises(BridgeError, match="another question waits for its answer at test:main"):
            await place.ask()
        assert place.told("yes") == YES
        await place.look()
        await place.ask()


@pytest.mark.parametrize("text", ["\u202e\u2066", "\u200b\u200b", "\0\x1b", "\ufeff \n"])
async def test_one_of_which_nothing_can_be_read_is_not_asked(tmp_path: Path, text: str) -> None:
    async with opened(tmp_path) as place:
        with pytest.raises(BridgeError, match="nothing that can be read"):
            await place.questions.ask(text, "", 60)
        await place.ask()


async def test_one_that_is_not_one_message_there_is_not_asked(tmp_path: Path) -> None:
    async with opened(tmp_path) as place:
        place.bots[MAIN].room = 20
        with pytest.raises(BridgeError, match="too long for one message of test:main"):
            await place.ask()
        assert await place.parts() == []


async def test_one_that_cannot_be_stored_fails_and_leaves_room_for_the_next(tmp_path: Path) -> None:
    async with opened(tmp_path) as place:
        place.store.fails = True
        question = await place.ask(shown=False)
        assert question.state is QuestionState.FAILED
        place.store.fails = False
        await place.look()
        await place.ask()


async def test_one_that_is_withdrawn_while_the_store_is_stalled_is_never_sent(tmp_path: Path) -> None:
    async with opened(tmp_path) as place:
        place.store.stalled = asyncio.Event()
        question = await place.questions.ask("Deploy?", "", 1800)
        await settle()
        await place.questions.withdraw(question)
        assert question.state is QuestionState.WITHDRAWN
        place.store.stalled.set()
        await settle()
        assert await place.parts() == []
        assert place.bots[MAIN].told == []
        assert place.bots[MAIN].dropped == [question.posted.reply_id]


async def test_one_that_is_withdrawn_before_it_was_stored_is_not_stored(tmp_path: Path) -> None:
    async with opened(tmp_path) as place:
        question = await place.questions.ask("Deploy?", "", 1800)
        await place.questions.withdraw(question)
        await settle()
        assert (question.posted, place.bots[MAIN].told) == (NOT_YET, [])


# --- answers --------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("text", "said", "state"), [("Yes!", YES, QuestionState.YES), ("no", NO, QuestionState.NO)]
)
async def test_an_answer_is_acknowledged_first_and_then_told(
    tmp_path: Path, text: str, said: str, state: QuestionState
) -> None:
    async with opened(tmp_path) as place:
        question = await place.ask()
        answer = place.hear(text)
        assert answer is not None
        assert (answer.text, question.state) == (said, OPEN)
        answer.act()
        assert question.state is state
        assert place.told(text) == ""


async def test_what_is_no_answer_of_the_owner_s_is_an_ordinary_message(tmp_path: Path) -> None:
    async with opened(tmp_path) as place:
        question = await place.ask()
        assert place.told("yes please") == ""
        assert place.told("yes", sender="u2") == ""
        assert place.told("yes", group=True) == ""
        assert place.told("yes", files=(RemoteFile("k", FileKind.IMAGE),)) == ""
        assert place.told("yes", reference="another message") == ""
        other = place.questions.answerer(OTHER, place.settings)
        assert other(message("m", "yes", OWNER)) is None
        place.settings = ChannelSettings(owner="u2")
        assert place.told("yes", sender="u2") == ""
        assert question.state is OPEN


async def test_a_quote_of_the_question_answers_it(tmp_path: Path) -> None:
    async with opened(tmp_path) as place:
        await place.ask()
        assert place.told("yes", reference='["om_1"]') == YES


async def test_what_was_written_before_the_question_was_there_does_not_count(tmp_path: Path) -> None:
    async with opened(tmp_path) as place:
        place.skew = 3600
        await place.ask()
        shown = place.clock.now() + timedelta(seconds=3600 - LOOK_SECONDS)
        assert place.told("yes", sent_at=shown - timedelta(seconds=2)) == ""
        assert place.told("yes", sent_at=shown.replace(microsecond=0)) == YES


async def test_of_answers_that_come_at_once_the_last_one_counts(tmp_path: Path) -> None:
    async with opened(tmp_path) as place:
        question = await place.ask()
        first, last = place.hear("yes"), place.hear("no")
        assert first is not None
        assert last is not None
        first.act()
        assert question.state is OPEN
        last.act()
        assert question.state is QuestionState.NO


async def test_an_answer_that_was_not_stored_is_none_until_it_comes_again(tmp_path: Path) -> None:
    async with opened(tmp_path) as place:
        question = await place.ask()
        place.hear("yes")
        assert question.state is OPEN
        assert place.told("yes") == YES
        assert question.state is QuestionState.YES


# --- its end --------------------------------------------------------------------------------------


async def follow(place: Place, question: Question, seconds: float) -> None:
    """Somebody waits for it, for so long."""
    for _ in range(round(seconds / 10)):
        async with asyncio.TaskGroup() as tasks:
            tasks.create_task(place.questions.news(question))
            await settle()
            await place.look(10)


async def test_no_answer_in_time_is_a_no_of_which_the_chat_is_told(tmp_path: Path) -> None:
    async with opened(tmp_path) as place:
        question = await place.ask(seconds=120)
        await follow(place, question, 120)
        await place.look()
        assert question.state is QuestionState.UNANSWERED
        assert await place.parts() == [LATE]
        assert place.told("yes") == ""


async def test_one_that_nobody_follows_for_a_minute_is_withdrawn_and_the_chat_is_told(
    tmp_path: Path,
) -> None:
    async with opened(tmp_path) as place:
        question = await place.ask()
        await place.look(FOLLOW_SECONDS)
        assert question.state is QuestionState.WITHDRAWN
        assert await place.parts() == [WITHDRAWN]


async def test_one_that_the_platform_refuses_fails_and_nothing_is_said(tmp_path: Path) -> None:
    async with opened(tmp_path) as place:
        question = await place.ask(shown=False)
        await place.ends(question, PartState.REFUSED)
        assert question.state is QuestionState.FAILED
        assert await place.parts() == []


async def test_one_that_is_not_delivered_in_time_fails_and_is_never_sent(tmp_path: Path) -> None:
    async with opened(tmp_path) as place:
        question = await place.ask(seconds=60, shown=False)
        await follow(place, question, 60)
        await place.look()
        assert question.state is QuestionState.FAILED
        assert await place.parts() == []
        assert place.bots[MAIN].dropped == [question.posted.reply_id]


async def test_one_that_is_withdrawn_before_it_was_sent_is_never_sent(tmp_path: Path) -> None:
    async with opened(tmp_path) as place:
        question = await place.ask(shown=False)
        await place.questions.withdraw(question)
        await place.questions.withdraw(question)
        assert question.state is QuestionState.WITHDRAWN
        assert await place.parts() == []


async def test_one_that_was_just_sent_when_it_is_withdrawn_is_said_to_be(tmp_path: Path) -> None:
    async with opened(tmp_path) as place:
        question = await place.ask(shown=False)
        await place.store.do(Settle(question.posted.part_id, PartState.SENT, 1, "om_1"))
        await place.questions.withdraw(question)
        assert await place.parts() == [WITHDRAWN]


async def test_who_follows_it_learns_its_end_at_once_and_for_a_while(tmp_path: Path) -> None:
    async with opened(tmp_path) as place:
        question = await place.ask()
        async with asyncio.TaskGroup() as tasks:
            following = tasks.create_task(place.questions.news(question))
            await settle()
            place.told("yes")
            await following
        await place.questions.news(question)
        await place.look()
        assert place.questions.find(question.followed.id) is question
        await place.look(FOLLOW_SECONDS)
        assert place.questions.find(question.followed.id) is None


async def test_a_store_that_fails_changes_nothing_and_is_tried_again(tmp_path: Path) -> None:
    async with opened(tmp_path) as place:
        question = await place.ask(seconds=60, shown=False)
        place.store.fails = True
        await follow(place, question, 60)
        await place.look()
        assert question.state is SENDING
        place.store.fails = False
        await place.look()
        assert question.state is QuestionState.FAILED


async def test_a_long_question_is_named_by_its_beginning(tmp_path: Path) -> None:
    async with opened(tmp_path) as place:
        question = await place.questions.ask("Really " * 60, "", 1800)
        await settle()
        await place.ends(question, PartState.SENT)
        said = place.told("yes")
        assert said.endswith("…”.")
        assert len(said) < 120


async def test_what_was_not_sent_before_a_restart_is_never_sent(tmp_path: Path) -> None:
    async with opened(tmp_path) as place:
        await place.ask(shown=False)
        await place.questions.drop_left()
        assert await place.parts() == []
