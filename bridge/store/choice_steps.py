"""What was chosen in a conversation, as a durable step: it outlives the conversation's sessions."""

from __future__ import annotations

from dataclasses import dataclass

from bridge.ids import AccountId, ConversationKey
from bridge.store.step import Query, Step


@dataclass(frozen=True, slots=True)
class Chosen:
    """Which agent answers, with which model and in which mode, and the folder it works in; "": as it is set.

    Models and modes go by the names that their agent has for them.
    """

    agent: str = ""
    model: str = ""
    mode: str = ""
    cwd: str = ""


@dataclass(frozen=True, slots=True)
class Choose(Step[None]):
    """From now on this holds in the conversation; a ``chosen`` that is all "" is none."""

    account: AccountId
    conversation: ConversationKey
    chosen: Chosen


@dataclass(frozen=True, slots=True)
class ChosenIn(Query[Chosen]):
    account: AccountId
    conversation: ConversationKey
