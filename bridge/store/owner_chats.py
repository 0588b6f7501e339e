"""The owner's last direct chats, and what was told there unasked."""

from __future__ import annotations

from sqlite3 import Cursor

from bridge.ids import AccountId, ConversationKey
from bridge.store import outbox
from bridge.store.owner_chat_steps import NoteOwner, Notify, OwnerChat, OwnerChats, ToldOf

_NOTE = "INSERT OR REPLACE INTO owner_chats VALUES (?, ?, ?, ?, ?, ?, ?)"
_CHATS = """
    SELECT account, owner, conversation, recipient, reply_to, language, wrote_ms FROM owner_chats
    ORDER BY wrote_ms DESC, account
"""
_TOLD = "SELECT state FROM notices WHERE topic = ?"
_TELL = "INSERT OR REPLACE INTO notices VALUES (?, ?)"


def note_owner(db: Cursor, step: NoteOwner) -> None:
    chat = step.chat
    values = (
        chat.account, chat.owner, chat.conversation, chat.to, chat.reply_to, chat.language, chat.wrote_ms,
    )  # fmt: skip
    db.execute(_NOTE, values)


def notify(db: Cursor, step: Notify) -> bool:
    if _told(db, step.topic) == step.state:
        return False
    db.execute(_TELL, (step.topic, step.state))
    if step.reply is not None:
        outbox.insert(db, step.account, step.reply, 0, step.now_ms, step.topic.partition(" ")[0])
    return True


def forget(db: Cursor, account: AccountId) -> None:
    """The account has another identity from now on: its owner is another's, too."""
    db.execute("DELETE FROM owner_chats WHERE account = ?", (account,))


def owner_chats(db: Cursor, query: OwnerChats) -> tuple[OwnerChat, ...]:
    rows = db.execute(_CHATS).fetchall()
    return tuple(OwnerChat(AccountId(row[0]), row[1], ConversationKey(row[2]), *row[3:]) for row in rows)


def told_of(db: Cursor, query: ToldOf) -> str:
    return _told(db, query.topic)


def _told(db: Cursor, topic: str) -> str:
    row = db.execute(_TOLD, (topic,)).fetchone()
    return str(row[0]) if row else ""
