"""Where an owner can be told something unasked: through which account, in which chat."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from bridge.health import Snapshot, State
from bridge.ids import AccountId, ConversationKey
from bridge.relay.unprompted import Delivers
from bridge.store.contract import OwnerChat, OwnerChats, Store
from bridge.supervisor import Supervisor

_ON_ITS_WAY = frozenset({State.STARTING, State.DISCONNECTED, State.BACKOFF})


@dataclass(frozen=True, slots=True)
class Target:
    """A chat of an owner. ``account`` is there while it has contact; ``may_come``: it may have it soon."""

    chat: OwnerChat
    account: Delivers | None
    may_come: bool = False


class Reach:
    """The owners' chats. ``preferred`` are accounts by their names, the first ones first."""

    def __init__(self, supervisor: Supervisor, store: Store, preferred: Callable[[], Sequence[str]]) -> None:
        self._supervisor, self._store, self._preferred = supervisor, store, preferred

    async def preferred_chats(self) -> list[Target]:
        """One for each preferred account whose owner is known, in order, whether it has contact or not.

        The chat in which that owner wrote last, or, before they have written at all, the one that their id
        leads to.
        """
        return await self.chats_of(self._preferred())

    async def chats_of(self, accounts: Sequence[str]) -> list[Target]:
        """The same for these accounts."""
        chats = await self._store.get(OwnerChats())
        known = {snapshot.id: snapshot for snapshot in self._supervisor.snapshots()}
        wanted = [known[id_] for name in accounts if (id_ := AccountId(name)) in known]
        return [self._target(one, _chat_of(one, chats)) for one in wanted if one.user_id]

    async def last_chats(self) -> list[Target]:
        """Where owners wrote, the latest first, as far as their accounts have contact."""
        known = {snapshot.id: snapshot for snapshot in self._supervisor.snapshots()}
        found = [
            self._target(known[chat.account], chat)
            for chat in await self._store.get(OwnerChats())
            if chat.account in known and known[chat.account].user_id == chat.owner
        ]
        return [target for target in found if target.account is not None]

    def account(self, account: AccountId) -> object | None:
        return self._supervisor.component(account)

    def _target(self, snapshot: Snapshot, chat: OwnerChat) -> Target:
        account = self._supervisor.component(snapshot.id)
        if snapshot.state is State.CONNECTED and isinstance(account, Delivers):
            return Target(chat, account)
        return Target(chat, None, snapshot.state in _ON_ITS_WAY)


def _chat_of(snapshot: Snapshot, chats: Sequence[OwnerChat]) -> OwnerChat:
    own = (chat for chat in chats if (chat.account, chat.owner) == (snapshot.id, snapshot.user_id))
    language = chats[0].language if chats else "en"
    by_id = OwnerChat(snapshot.id, snapshot.user_id, ConversationKey(""), snapshot.user_id, "", language, 0)
    return next(own, by_id)
