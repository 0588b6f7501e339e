"""What senders have used of a day: a read for those who limit them."""

from __future__ import annotations

from dataclasses import dataclass
from sqlite3 import Cursor

from bridge.ids import AccountId, ConversationKey
from bridge.store.step import Query


@dataclass(frozen=True, slots=True)
class SenderTurn:
    """A message that an agent was given, or will be; ``refused``: the limit that it was told of instead."""

    conversation: ConversationKey
    received_ms: int
    refused: str = ""


@dataclass(frozen=True, slots=True)
class SenderTurns(Query[tuple[SenderTurn, ...]]):
    """The account's since ``since_ms``, oldest first, the newest ``limit`` of them.

    ``reasons`` are those of the messages whose senders were told of a limit.
    """

    account: AccountId
    since_ms: int
    reasons: tuple[str, ...]
    limit: int = 100_000


# By rowid, the order of claims: what is old comes last and is not looked at, however many there are.
_NEWEST_FIRST = """
    SELECT account, conversation, received_ms, state = 'claimed' OR session_id != '',
        CASE state WHEN 'seen' THEN '' ELSE reason END
    FROM messages ORDER BY id DESC
"""


def sender_turns(db: Cursor, query: SenderTurns) -> tuple[SenderTurn, ...]:
    found: list[SenderTurn] = []
    for account, conversation, received_ms, turn, reason in db.execute(_NEWEST_FIRST):
        if received_ms < query.since_ms or len(found) == query.limit:
            break
        refused = reason if reason in query.reasons else ""
        if account == query.account and (turn or refused):
            found.append(SenderTurn(ConversationKey(conversation), received_ms, refused))
    return tuple(reversed(found))
