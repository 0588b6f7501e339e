"""Requests that are held open: each offers its response to one part of what waits for its sender."""

from __future__ import annotations

import asyncio

from bridge.channel import Answer, Reading


class Offer:
    """One request: ``over`` once it has its response or will get none, ``ended`` once nobody reads it.

    ``asks``: its message only asks for what waits.
    """

    def __init__(self, message_id: str, to: str, reading: Reading, *, asks: bool = False) -> None:
        self.message_id, self.to, self.reading, self.asks = message_id, to, reading, asks
        self.answer: Answer | None = None
        self.is_taken = self.is_late = False
        self.over, self.ended = asyncio.Event(), asyncio.Event()
        self._written: asyncio.Future[bool | None] = asyncio.get_running_loop().create_future()

    async def give(self, answer: Answer) -> bool | None:
        """Hand over the response. How it was written: True to an open connection, None if nobody knows."""
        if self.over.is_set():
            return False
        self.answer = answer
        self.over.set()
        return await self._written

    def written(self, how: bool | None) -> None:
        """What ``give`` waits for."""
        if not self._written.done():
            self._written.set_result(how)

    def fail(self) -> None:
        """No response could be made for it."""
        self.over.set()

    def end(self) -> None:
        """Nobody reads it any more, or the run ends."""
        self.over.set()
        self.ended.set()


class Offers:
    """Those that wait, by their lanes."""

    def __init__(self) -> None:
        self._waiting: dict[str, list[Offer]] = {}

    def add(self, offer: Offer) -> None:
        self._waiting.setdefault(offer.to, []).append(offer)

    def remove(self, offer: Offer) -> None:
        """It does not wait (any more): one that is taken is over if it is put back."""
        offer.is_late = offer.is_taken
        waiting = self._waiting.get(offer.to, [])
        if offer in waiting:
            waiting.remove(offer)
        if not waiting:
            self._waiting.pop(offer.to, None)

    def waits(self, to: str) -> bool:
        return to in self._waiting

    def take(self, to: str, message_id: str) -> Offer | None:
        """One for the lane ``to``: that of the very message where it waits, else the one that waits longest.

        What is taken is not over before it has its response, or is put back, or ended.
        """
        waiting = self._waiting.get(to)
        if not waiting:
            return None
        offer = next((one for one in waiting if one.message_id == message_id), waiting[0])
        self.remove(offer)
        offer.is_taken = True
        return offer

    def put_back(self, offer: Offer) -> None:
        """It was not used: it waits again, unless its time is up."""
        offer.is_taken = False
        if offer.is_late:
            offer.fail()
        elif not offer.over.is_set():
            self.add(offer)
