"""What the command line asks about owners: to make one by a code, and to ask one a question."""

from __future__ import annotations

import re
from collections.abc import Awaitable, Callable
from contextlib import suppress

from bridge.clock import Clock
from bridge.errors import BridgeError, StoreError
from bridge.health import Snapshot, State
from bridge.ids import AccountId
from bridge.protocol import ours
from bridge.relay.pairing import Pairing, Pairings, PairState
from bridge.relay.texts import Language, Text, say
from bridge.relay.unprompted import say_in
from bridge.sessions.contract import ControlError
from bridge.store.contract import NoteOwner, OwnerChat, Store
from bridge.supervisor import Supervisor

_OFF = frozenset({State.DISABLED, State.FAILED, State.STOPPING, State.STOPPED})
_CODE = re.compile(r"[0-9]{8}")

Write = Callable[[AccountId, str], Awaitable[None]]
"""Makes an id the account's owner in the settings and has them taken up. Raises BridgeError."""


class Owners:
    def __init__(
        self, supervisor: Supervisor, store: Store, clock: Clock, pairings: Pairings, write: Write
    ) -> None:
        self._supervisor, self._store, self._clock = supervisor, store, clock
        self._pairings, self._write = pairings, write

    async def run(self) -> None:
        """Make owners of those who sent the right codes, for ever."""
        await self._pairings.run(self._save)

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
            raise ControlError("component_error", "no such account is known: look at the status")
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

    async def _save(self, chat: OwnerChat) -> None:
        """Write the owner down. Who was told to become it is told when that failed.

        Raises:
            BridgeError: it could not be written.
        """
        try:
            await self._write(chat.account, chat.owner)
        except BridgeError:
            with suppress(StoreError):
                await self._say(chat, say(Text.PAIR_FAILED, Language(chat.language)), Text.PAIR_FAILED)
            raise
        with suppress(StoreError):  # then notices go there once the owner has written again
            await self._store.do(NoteOwner(chat))

    async def _say(self, chat: OwnerChat, text: str, why: str) -> None:
        account = self._supervisor.component(chat.account)
        await say_in(chat, text, why, account, self._store, self._clock)
