"""Names for the ids that cross our parts, so that a type checker tells them apart."""

import secrets
import uuid
from typing import NewType

AccountId = NewType("AccountId", str)  # "<channel>:<account>"
MessageId = NewType("MessageId", str)  # the platform's, unique in an account
ConversationKey = NewType("ConversationKey", str)
SessionId = NewType("SessionId", str)
TurnId = NewType("TurnId", str)
PartId = NewType("PartId", int)  # a row of the outbox


def new_uuid() -> str:
    """A random UUID in its 36-character form."""
    return str(uuid.uuid4())


def new_hex(digits: int = 12) -> str:
    """``digits`` (even) random lowercase hex digits."""
    return secrets.token_hex(digits // 2)
