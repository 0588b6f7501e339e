"""Which function takes which step."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from sqlite3 import Cursor
from typing import Any, TypeVar, cast

from bridge.store import (
    accounts,
    changes,
    choices,
    contract,
    dead,
    forget,
    messages,
    outbox,
    owner_chats,
    sessions,
    signs,
    usage,
)
from bridge.store.contract import Step

R = TypeVar("R")

# Any: each function takes the type that is its key, which a mapping's type cannot say.
TAKERS: Mapping[type[Step[object]], Callable[[Cursor, Any], object]] = {
    contract.Bind: accounts.bind,
    contract.Recover: accounts.recover,
    contract.SetIdentity: accounts.set_identity,
    contract.Claim: messages.claim,
    contract.Recall: changes.recall,
    contract.Edit: changes.edit,
    contract.Start: messages.start,
    contract.Answer: messages.answer,
    contract.Post: messages.post,
    contract.Prune: messages.prune,
    contract.Sending: outbox.sending,
    contract.Settle: outbox.settle,
    contract.Later: outbox.later,
    contract.Mark: outbox.mark,
    contract.Hold: outbox.hold,
    contract.Collect: outbox.collect,
    contract.Revive: dead.revive,
    contract.Bury: dead.bury,
    contract.NoteOwner: owner_chats.note_owner,
    contract.Notify: owner_chats.notify,
    contract.BindSession: sessions.bind_session,
    contract.UnbindSession: sessions.unbind_session,
    contract.OpenSession: sessions.open_session,
    contract.BeginTurn: sessions.begin_turn,
    contract.EndTurn: sessions.end_turn,
    contract.ClearSession: sessions.clear_session,
    contract.ReserveSeq: sessions.reserve_seq,
    contract.ConfigureSession: sessions.configure_session,
    contract.CompactSession: sessions.compact_session,
    contract.Choose: choices.choose,
    contract.Spend: usage.spend,
    contract.PutSign: signs.put,
    contract.DropSign: signs.drop,
    contract.Forget: forget.forget,
}


def take(db: Cursor, step: Step[R]) -> R:
    """Take ``step`` inside the transaction that is open.

    Raises:
        StoreError: it is refused. What it changed so far must be rolled back.
    """
    return cast(R, TAKERS[type(step)](db, step))
