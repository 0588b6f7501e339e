"""Who sends the code that a terminal shows, alone and in a direct chat, becomes the account's owner, once.

All of it is in memory: a restart, ten minutes, or five wrong codes, whoever sends them, end it. What is
decided on a code stands at once, before its message is durable: no batch of messages brings more tries than
five, and none makes two owners.
"""

from __future__ import annotations

import asyncio
import re
import unicodedata
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field
from enum import StrEnum
from functools import partial
from secrets import compare_digest

from bridge.channel import ChannelSettings, Inbound, RemoteTools
from bridge.clock import Clock, unix_ms
from bridge.errors import BridgeError
from bridge.ids import AccountId
from bridge.logs import get_logger, register_passing
from bridge.relay import payload
from bridge.relay.ahead import Answerer, Said
from bridge.relay.followed import Followed
from bridge.relay.texts import Language, Text, language_of, say
from bridge.store.contract import OwnerChat

CODE_SECONDS = 600.0
TRIES = 5
_CODE = re.compile(r"([0-9]{4})[-\N{EN DASH} ]?([0-9]{4})")
_TEXT_CHARACTERS = 64  # what is longer is not looked at

log = get_logger(__name__)


class PairState(StrEnum):
    """How a pairing stands; all but the first two are its end."""

    WAITING = "waiting"
    SAVING = "saving"  # the right code came: the settings are being written
    PAIRED = "paired"
    FAILED = "failed"  # they could not be written
    EXPIRED = "expired"
    GUESSED = "guessed"  # too many wrong codes
    SHOWN = "shown"  # others than the sender have seen the code
    CHANGED = "changed"  # the settings name another owner meanwhile
    REPLACED = "replaced"  # by another pairing of this account
    WITHDRAWN = "withdrawn"


@dataclass(slots=True)
class Pairing:
    """``owner`` is who was the owner before, ``chat`` whose code was right, ``reason`` why it failed."""

    account: AccountId
    code: str = field(repr=False)
    owner: str
    give_up_at: float
    followed: Followed
    state: PairState = PairState.WAITING
    chat: OwnerChat | None = None
    reason: str = ""
    wrong: set[str] = field(default_factory=set)

    @property
    def tries_left(self) -> int:
        return max(0, TRIES - len(self.wrong))

    def enter(self, state: PairState) -> None:
        """Whoever follows it is told, also of a further wrong code."""
        self.state = state
        self.followed.tell()


Save = Callable[[OwnerChat], Awaitable[None]]
"""Writes down whose chat it is as the owner, and raises BridgeError where that cannot be done."""


class Pairings:
    """The latest pairing of each account. ``run`` saves what came of them."""

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._latest: dict[AccountId, Pairing] = {}
        self._won: asyncio.Queue[tuple[Pairing, OwnerChat]] = asyncio.Queue()

    def open(self, account: AccountId, code: str, owner: str) -> Pairing:
        """Wait for ``code``, 8 digits, in place of what was waited for before. ``owner``: who is it now."""
        register_passing(code)
        register_passing(f"{code[:4]}-{code[4:]}")
        before = self._latest.get(account)
        if before is not None and before.state is PairState.WAITING:
            before.enter(PairState.REPLACED)
        give_up_at = self._clock.monotonic() + CODE_SECONDS
        self._latest[account] = Pairing(account, code, owner, give_up_at, Followed(self._clock))
        return self._latest[account]

    def find(self, id_: str) -> Pairing | None:
        """The pairing ``id_``, unless it was replaced before its latest news was asked for."""
        found = next((one for one in self._latest.values() if one.followed.id == id_), None)
        if found is not None:
            self._look_at_time(found)
        return found

    async def news(self, pairing: Pairing) -> None:
        """Wait until it stands otherwise, for some seconds at most."""
        if pairing.state in (PairState.WAITING, PairState.SAVING):
            left = pairing.give_up_at - self._clock.monotonic()
            await pairing.followed.news(max(left, 1.0))
            self._look_at_time(pairing)

    def withdraw(self, pairing: Pairing) -> None:
        """The code is worth nothing any more, unless it has come."""
        if pairing.state is PairState.WAITING:
            pairing.enter(PairState.WITHDRAWN)

    async def run(self, save: Save) -> None:
        """Make owners of those who sent the right codes, for ever."""
        while True:
            pairing, chat = await self._won.get()
            await self._save(pairing, save, chat)

    async def _save(self, pairing: Pairing, save: Save, chat: OwnerChat) -> None:
        state = PairState.FAILED
        try:
            await save(chat)
            state = PairState.PAIRED
        except BridgeError as error:
            pairing.reason = str(error)
        finally:
            log.info("owner.pairing", account=pairing.account, state=state)
            pairing.enter(state)

    # --- messages ----------------------------------------------------------

    def answerer(self, account: AccountId, settings: ChannelSettings) -> Answerer:
        """What answers the account's messages that are codes."""
        return partial(self._answer, account, settings)

    def _answer(self, account: AccountId, settings: ChannelSettings, message: Inbound) -> Said | None:
        pairing = self._latest.get(account)
        if pairing is None or not message.sender or not (code := code_in(message)):
            return None
        self._look_at_time(pairing)
        if pairing.state is PairState.WAITING and pairing.owner != settings.owner:
            pairing.enter(PairState.CHANGED)
        language = language_of(message.text, settings.language)
        if not compare_digest(code, pairing.code):
            return self._wrong(pairing, message, language)
        return self._right(pairing, settings, message, language)

    def _wrong(self, pairing: Pairing, message: Inbound, language: Language) -> Said | None:
        if message.group or pairing.state is not PairState.WAITING:
            return None
        pairing.wrong.add(message.message_id)
        if pairing.tries_left:
            pairing.enter(pairing.state)
            return Said(say(Text.PAIR_WRONG, language))
        pairing.enter(PairState.GUESSED)
        # No more than a further code would show, which is not answered any more.
        return Said(say(Text.PAIR_GUESSED, language))

    def _right(
        self, pairing: Pairing, settings: ChannelSettings, message: Inbound, language: Language
    ) -> Said | None:
        if message.group and pairing.state is PairState.WAITING:
            pairing.enter(PairState.SHOWN)
        is_over = pairing.state not in (PairState.WAITING, PairState.SAVING, PairState.PAIRED)
        if pairing.state is PairState.PAIRED and settings.owner != message.sender:
            is_over = True  # another one is the owner since then
        if message.group or is_over or (pairing.chat is not None and pairing.chat.owner != message.sender):
            return Said(say(Text.PAIR_OVER, language))
        if pairing.chat is None:
            pairing.chat = self._chat(pairing.account, message, language)
        return Said(welcome(settings, language), partial(self._taken, pairing, pairing.chat))

    def _taken(self, pairing: Pairing, chat: OwnerChat) -> None:
        """The message with the right code is durable."""
        if pairing.state is PairState.WAITING:
            pairing.enter(PairState.SAVING)
            self._won.put_nowait((pairing, chat))

    def _chat(self, account: AccountId, message: Inbound, language: Language) -> OwnerChat:
        now_ms = unix_ms(self._clock.now())
        conversation = payload.conversation_of(message)
        return OwnerChat(
            account, message.sender, conversation, message.to, message.reply_to, language, now_ms
        )

    def _look_at_time(self, pairing: Pairing) -> None:
        if pairing.state is not PairState.WAITING:
            return
        if self._clock.monotonic() >= pairing.give_up_at:
            pairing.enter(PairState.EXPIRED)
        elif pairing.followed.is_abandoned:
            pairing.enter(PairState.WITHDRAWN)


def code_in(message: Inbound) -> str:
    """The 8 digits that a message is, and nothing else; "" for any other."""
    if message.files or message.reference or len(message.text) > _TEXT_CHARACTERS:
        return ""
    found = _CODE.fullmatch(unicodedata.normalize("NFKC", message.text).strip())
    return found[1] + found[2] if found else ""


def welcome(settings: ChannelSettings, language: Language) -> str:
    """What the new owner may do from now on."""
    tools = settings.remote_tools is RemoteTools.OWNER
    return say(
        Text.PAIRED, language, tools=say(Text.PAIRED_TOOLS if tools else Text.PAIRED_NO_TOOLS, language)
    )
