"""Mends a streamed answer, event by event: for the library, which takes what it is sent for well-formed.

What fits nowhere is dropped; what is right stays as it is; what says that something went wrong is passed on.
"""

from typing import Any, Protocol

from bridge.agents.llm.oddities import Slots, as_chunk, is_map, mend_chunk
from bridge.agents.llm.sse import DONE, Event, event
from bridge.agents.llm.thoughts import Thoughts


class Mender(Protocol):
    @property
    def is_whole(self) -> bool:
        """The answer came to its end."""
        ...

    @property
    def is_counted(self) -> bool:
        """Its tokens were told, and can be believed."""
        ...

    def mend(self, given: Event) -> list[Event]: ...

    def whole(self, data: bytes) -> list[Event]:
        """An answer that did not come in events, as if it had."""
        ...

    def rest(self) -> list[Event]:
        """What was held back until the end."""
        ...


class ChatMender:
    """Of one chat completion."""

    def __init__(self) -> None:
        self._slots, self._thoughts = Slots(), Thoughts()
        self.is_whole = self.is_counted = False

    def mend(self, given: Event) -> list[Event]:
        if given.data.startswith(DONE):
            self.is_whole = True
            return [*self.rest(), given]
        value = given.value
        if not is_map(value) or value.get("error"):
            return [given] if (value is None and given.data != "null") or is_map(value) else []
        return [event("", chunk) for chunk in self._chunks(mend_chunk(value))]

    def whole(self, data: bytes) -> list[Event]:
        value = Event("", data.decode(errors="replace")).value
        if not is_map(value) or not ({"choices", "error"} & value.keys()):
            return []
        self.is_whole = "choices" in value
        return self.mend(event("", as_chunk(value) if self.is_whole else value))

    def rest(self) -> list[Event]:
        return [event("", chunk) for chunk in _said(self._thoughts.rest())]

    def _chunks(self, chunk: dict[str, Any]) -> list[dict[str, Any]]:
        self.is_counted = self.is_counted or chunk["usage"] is not None
        if not chunk["choices"]:
            return [chunk]
        (choice,) = chunk["choices"]
        for call in choice["delta"]["tool_calls"] or ():
            self._slots.place(call)
        words = self._thoughts.feed(choice["delta"].pop("content", None) or "")
        if choice["finish_reason"]:
            self.is_whole = True
            words += self._thoughts.rest()
        return [*_said(words), chunk]


def _said(words: list[tuple[str, str]]) -> list[dict[str, Any]]:
    return [mend_chunk({"choices": [{"delta": {key: text}}]}) for key, text in words]
