"""What is typed: lines that make up a message, and single keys while an agent works. Pure."""

from __future__ import annotations

import re
from dataclasses import dataclass

FENCE = '"""'
_PASTE, _PASTED = "\x1b[200~", "\x1b[201~"
_ESCAPE = re.compile(r"\x1b(?:\[[0-?]*[ -/]*[@-~]|O.|[^\[O])")
_UNFINISHED = re.compile(r"\x1b(?:\[[0-?]*[ -/]*|O)?\Z")


class Lines:
    r"""Puts a message together: a ``\`` at a line's end, or an opening ``\"\"\"``, asks for more."""

    def __init__(self) -> None:
        self._lines: list[str] = []
        self._fenced = False

    @property
    def unfinished(self) -> bool:
        return self._fenced or bool(self._lines)

    def feed(self, line: str) -> str | None:
        """The message that ``line`` ends, or None while more of it is to come."""
        if not self.unfinished and line.strip().startswith(FENCE):
            self._fenced, line = True, line.strip().removeprefix(FENCE)
            if not line:
                return None
        if self._fenced:
            ends = line.rstrip().endswith(FENCE)
            self._lines.append(line.rstrip().removesuffix(FENCE) if ends else line)
            return self.take() if ends else None
        if line.endswith("\\") and not line.endswith("\\\\"):
            self._lines.append(line[:-1])
            return None
        self._lines.append(line)
        return self.take()

    def take(self) -> str:
        """What there is so far; nothing is left."""
        text = "\n".join(self._lines).strip("\n") if self._fenced else "\n".join(self._lines)
        self._lines, self._fenced = [], False
        return text


@dataclass(frozen=True, slots=True)
class Entered:
    text: str


@dataclass(frozen=True, slots=True)
class Interrupted:
    """Ctrl-C."""


@dataclass(frozen=True, slots=True)
class Ended:
    """Ctrl-D on an empty line."""


Typed = Entered | Interrupted | Ended


class Keys:
    """A plain line editor: ``text`` is the line so far. Escape sequences of other keys have no effect."""

    def __init__(self, text: str = "") -> None:
        self.text = text
        self._rest = ""
        self._pasting = False

    def feed(self, typed: str) -> list[Typed]:
        found: list[Typed] = []
        self._rest += typed
        while self._rest and not _UNFINISHED.match(self._rest):
            if sequence := _ESCAPE.match(self._rest):
                self._pasting = {_PASTE: True, _PASTED: False}.get(sequence[0], self._pasting)
                self._rest = self._rest[sequence.end() :]
            else:
                key, self._rest = self._rest[0], self._rest[1:]
                found += self._press(key)
        return found

    def _press(self, key: str) -> list[Typed]:
        match key:
            case "\r" | "\n" if self._pasting:
                self.text += "\n"
            case "\r" | "\n":
                text, self.text = self.text, ""
                return [Entered(text)]
            case "\x03":
                return [Interrupted()]
            case "\x04" if not self.text:
                return [Ended()]
            case "\x7f" | "\b":
                self.text = self.text[:-1]
            case "\x15":
                self.text = ""
            case "\t":
                self.text += key if self._pasting else ""
            case _:
                self.text += key if key.isprintable() else ""
        return []
