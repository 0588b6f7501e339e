"""Server-sent events, the form in which models stream their answers: bytes to events and back, pure."""

import json
from dataclasses import dataclass
from typing import Any

from bridge.agents.contract import AgentError

EVENT_BYTES = 1_048_576
DONE = "[DONE]"


@dataclass(frozen=True, slots=True)
class Event:
    """``name`` is "" where none was given. ``data`` is the text as it came, ``value`` what it is as JSON."""

    name: str
    data: str

    @property
    def value(self) -> Any:
        """None also where it is no JSON."""
        try:
            return json.loads(self.data)
        except (ValueError, RecursionError):
            return None

    def encode(self) -> bytes:
        lines = [f"event: {self.name}"] if self.name else []
        lines += [f"data: {line}" for line in self.data.split("\n")]
        return ("\n".join(lines) + "\n\n").encode()


def event(name: str, value: Any) -> Event:
    return Event(name, json.dumps(value))


class EventDecoder:
    """Lines end with LF, CR or both; comments and other fields are dropped; what is no UTF-8 is replaced.

    Raises:
        AgentError: ``response_limit``: an event is over 1 MiB.
    """

    def __init__(self) -> None:
        self.has_begun = False
        self._line = bytearray()
        self._after_return = False
        self._name, self._data, self._bytes = "", list[str](), 0

    def feed(self, data: bytes) -> list[Event]:
        """The events that end with ``data``."""
        self.has_begun = True
        if self._after_return and data.startswith(b"\n"):
            data = data[1:]
        self._after_return = data.endswith(b"\r") if data else self._after_return
        *ended, tail = data.replace(b"\r\n", b"\n").replace(b"\r", b"\n").split(b"\n")
        found: list[Event] = []
        for piece in ended:
            self._keep(piece)
            found += self._end_line()
        self._keep(tail)
        return found

    def rest(self) -> list[Event]:
        """The event that was not ended before everything was."""
        return [*self._end_line(), *self._end_event()]

    def _keep(self, piece: bytes) -> None:
        self._line += piece
        self._bytes += len(piece)
        if self._bytes > EVENT_BYTES:
            raise AgentError("response_limit", f"an event of the model's answer is over {EVENT_BYTES} bytes")

    def _end_line(self) -> list[Event]:
        line = self._line.decode(errors="replace")
        self._line.clear()
        if not line:
            return self._end_event()
        field, _, value = line.partition(":")
        value = value.removeprefix(" ")
        if field == "data":
            self._data.append(value)
        elif field == "event":
            self._name = value
        return []

    def _end_event(self) -> list[Event]:
        found = [Event(self._name, "\n".join(self._data))] if self._data else []
        self._name, self._data, self._bytes = "", [], 0
        return found
