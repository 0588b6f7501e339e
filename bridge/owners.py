"""What the command line asks about owners: to make one by a code, and to ask one a question."""

from __future__ import annotations

import asyncio
import re
from collections.abc import Awaitable, Callable
from contextlib import suppress
from functools import partial

from bridge.channel import ChannelSettings
from bridge.clock import Clock
from bridge.errors import BridgeError, StoreError
from bridge.health import Snapshot, State
from bridge.ids import AccountId
from bridge.protocol import ours
from bridge.questions import MOST_SECONDS, QUESTION_BYTES, WAIT_SECONDS, Question, Questions
from bridge.relay.ahead import Ahead
from bridge.relay.pairing import Pairing, Pairings, PairState
from bridge.relay.texts import Language, Text, say
from bridge.relay.unprompted import say_in
from bridge.sessions.contract import ControlError, unknown_account
from bridge.store.contract import NoteOwner, OwnerChat, Store
from bridge.supervisor import Supervisor

_OFF = frozenset({State.DISABLED, State.FAILED, State.STOPPING, State.STOPPED})
_CODE = re.compile(r"[0-9]{8}")

Write = Callable[[AccountId, str], Awaitable[None]]
"""Makes an id the account's owner in the settings and has them taken up. Raises BridgeError."""


class Owners:
    def __init__(
        self, supervisor: Supervisor, store: Store, clock: Clock, pairings: Pairings, questions: Questions
    ) -> None:
        self._supervisor, self._store, self._clock = supervisor, store, clock
        self._pairings, self._questions = pairings, questions

    def ahead(self, account: AccountId, settings: ChannelSettings) -> Ahead:
        """What answers the account's messages, whichever of its runs they come to."""
        return Ahead(
            for_anybody=(self._pairings.answerer(account, settings),),
            for_answered=(self._questions.answerer(account, settings),),
        )

    async def recover(self) -> None:
        """Before any account runs: nobody waits any more for what a daemon before this one had asked."""
        with suppress(StoreError):
            await self._questions.drop_left()

    async def run(self, write: Write) -> None:
        """Make owners of those who sent the right codes, and see to open questions, for ever."""
        async with asyncio.TaskGroup() as tasks:
            tasks.create_task(self._pairings.run(partial(self._save, write)), name="owners/pairings")
            tasks.create_task(self._questions.run(), name="owners/questions")

    async def handle(self, command: ours.OwnerCommand) -> dict[str, ours.Pairing | ours.Question]:
        """Do ``command``; what the status tells with it.

        Raises:
            ControlError: it was not done.
        """
        if isinstance(command, ours.Pair | ours.PairState):
            return {"pairing": await self.pair(command)}
        return {"question": await self.confirm(command)}

    async def pair(self, command: ours.Pair | ours.PairState) -> ours.Pairing:
        """Begin a pairing, or tell of one.

        Raises:
            ControlError: it cannot begin, or there is none of that id.
        """
        pairing = self._begin(command) if isinstance(command, ours.Pair) else await self._followed(command)
        return self._shown(pairing)

    def _begin(self, command: ours.Pair) -> Pairing:
        known = self._known(command.account)
        if not _CODE.fullmatch(command.code):
            raise ControlError("component_error", "a code has 8 digits: update the command")
        if known.user_id and not command.replace:
            raise ControlError(
                "component_error",
                f"{known.id} has an owner already: give --replace to make another one its owner instead",
            )
        return self._pairings.open(known.id, command.code, known.user_id)

    def _known(self, account: str) -> Snapshot:
        known = next((one for one in self._supervisor.snapshots() if one.id == account), None)
        if known is None:
            raise unknown_account(account)
        if known.state in _OFF:
            raise ControlError("component_error", f"{known.id} is {known.state}: have it run first")
        return known

    async def _followed(self, command: ours.PairState) -> Pairing:
        pairing = self._pairings.find(command.id)
        if pairing is None:
            raise ControlError(
                "component_error", "this code is worth nothing any more: another one was shown since, or "
                "the daemon was restarted",
            )  # fmt: skip
        if command.withdraw:
            self._pairings.withdraw(pairing)
        else:
            await self._pairings.news(pairing)
        return pairing

    def _shown(self, pairing: Pairing) -> ours.Pairing:
        is_paired = pairing.state is PairState.PAIRED and pairing.chat is not None
        return ours.Pairing(
            id=pairing.followed.id,
            account=pairing.account,
            state=pairing.state,
            tries_left=pairing.tries_left,
            seconds_left=max(0, int(pairing.give_up_at - self._clock.monotonic())),
            owner=pairing.chat.owner if pairing.chat is not None and is_paired else "",
            reason=pairing.reason,
        )

    async def confirm(self, command: ours.Confirm | ours.QuestionState) -> ours.Question:
        """Ask an owner, or tell of a question.

        Raises:
            ControlError: it cannot be asked, or there is none of that id.
        """
        try:
            if isinstance(command, ours.Confirm):
                question = await self._asked(command)
            else:
                question = await self._news_of(command)
        except BridgeError as error:
            raise ControlError("component_error", str(error)) from error
        return ours.Question(
            id=question.followed.id,
            account=question.chat.account,
            state=question.state,
            seconds_left=max(0, int(question.give_up_at - self._clock.monotonic())),
        )

    async def _asked(self, command: ours.Confirm) -> Question:
        text, seconds = command.text, command.wait_seconds or WAIT_SECONDS
        if not text.strip() or len(text.encode("utf-8", "surrogatepass")) > QUESTION_BYTES:
            raise BridgeError(f"a question has a text of up to {QUESTION_BYTES} bytes")
        if seconds > MOST_SECONDS:
            raise BridgeError(f"a question waits for up to {MOST_SECONDS} seconds")
        return await self._questions.ask(text, command.account, seconds)

    async def _news_of(self, command: ours.QuestionState) -> Question:
        question = self._questions.find(command.id)
        if question is None:
            raise BridgeError(
                "this question is not asked any more: the daemon was restarted, or nobody followed it"
            )
        if command.withdraw:
            await self._questions.withdraw(question)
        else:
            await self._questions.news(question)
        return question

    async def _save(self, write: Write, chat: OwnerChat) -> None:
        """Write the owner down. Who was told to become it is told when that failed.

        Raises:
            BridgeError: it could not be written.
        """
        try:
            await write(chat.account, chat.owner)
        except BridgeError:
            with suppress(StoreError):
                await self._say(chat, say(Text.PAIR_FAILED, Language(chat.language)), Text.PAIR_FAILED)
            raise
        with suppress(StoreError):  # then notices go there once the owner has written again
            await self._store.do(NoteOwner(chat))

    async def _say(self, chat: OwnerChat, text: str, why: str) -> None:
        account = self._supervisor.component(chat.account)
        await say_in(chat, text, why, account, self._store, self._clock)
