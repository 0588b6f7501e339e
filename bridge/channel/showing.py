"""Abilities by which a chat shows that a turn runs there, and how it goes."""

from __future__ import annotations

from typing import Protocol, runtime_checkable


@runtime_checkable
class ShowsTyping(Protocol):
    async def typing(self, to: str, reply_to: str) -> None:
        """Tell the chat that work is under way, beside the turn: a failure is logged and harmless."""
        ...


@runtime_checkable
class RenewsTyping(Protocol):
    """A sign that fades by itself: ``typing`` is asked again while the turn runs."""

    @property
    def typing_seconds(self) -> float:
        """How long it is seen."""
        ...


@runtime_checkable
class EndsTyping(Protocol):
    """A sign that stays, or that can be taken away before it fades."""

    async def typing_over(self, to: str, reply_to: str) -> None:
        """Take it away, also one of a run before, and one that may never have been shown.

        Asked after ``typing``, once the reply is in the outbox or there will be none; again, when it fails.

        Raises:
            UnreachableError, OutcomeUnknownError: try again. Another ChannelError: it cannot be taken away.
        """
        ...


@runtime_checkable
class EditsMessages(Protocol):
    """What ``send`` has sent can be given another text, at least 20 times."""

    async def edit(self, to: str, platform_id: str, text: str) -> None:
        """Show ``text``, which is the bridge's own words, in place of what was sent as ``platform_id``.

        Raises:
            UnreachableError, OutcomeUnknownError: try again. Another ChannelError: it cannot be edited.
        """
        ...
