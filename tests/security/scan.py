"""What a run has shown, file by file and word by word, and what must not have been in it."""

from __future__ import annotations

import base64
import json
from collections.abc import Iterator
from dataclasses import dataclass, field
from enum import StrEnum
from pathlib import Path
from urllib.parse import quote, quote_plus

DATABASE = ("state/turnbridge.db", "database rows")
CONVERSATION = (
    "reply",
    "state/media/",
    "workspace/",
)  # what people and the agent said and sent, to them alone
LEAST_CHARACTERS = 4  # a shorter mark would be found by chance


class Kind(StrEnum):
    SECRET = "a credential"
    TOKEN = "a token that was fetched"
    METRICS = "the token of the metrics"
    MISPLACED = "a secret in the settings, where none belongs"
    OWNER = "an owner's id"
    ID = "a stranger's id, or a chat's"
    TEXT = "what somebody wrote"


# Where each kind may be: what a place's name begins with.
ALLOWED: dict[Kind, tuple[str, ...]] = {
    Kind.SECRET: ("credentials/",),
    Kind.TOKEN: (),
    Kind.METRICS: ("state/metrics.token",),
    Kind.MISPLACED: ("config.toml",),
    Kind.OWNER: (
        "config.toml",
        "command config show",
        "command channels list",
        "status",
        *DATABASE,
        *CONVERSATION,
    ),
    Kind.ID: (*DATABASE, *CONVERSATION),
    Kind.TEXT: (*DATABASE, *CONVERSATION),
}


@dataclass
class Evidence:
    """What was shown under each place's name, and the marks that went through the run."""

    shown: dict[str, list[bytes]] = field(default_factory=dict)
    marks: dict[str, Kind] = field(default_factory=dict)

    def mark(self, kind: Kind, *texts: str) -> None:
        for text in texts:
            assert len(text) >= LEAST_CHARACTERS, "too short to be told from chance"
            self.marks[text] = kind

    def show(self, place: str, what: str | bytes) -> None:
        self.shown.setdefault(place, []).append(what.encode() if isinstance(what, str) else what)

    def show_files(self, root: Path) -> None:
        """All files under ``root``, and their names."""
        for path in sorted(root.rglob("*")):
            place = path.relative_to(root).as_posix()
            self.show("names of files", place)
            if path.is_file():
                self.show(place, path.read_bytes())

    def leaks(self) -> list[str]:
        """Each kind of mark that is in a place where it may not be, with how it stands there."""
        return sorted({leak for mark, kind in self.marks.items() for leak in self._leaks(mark, kind)})

    def _leaks(self, mark: str, kind: Kind) -> Iterator[str]:
        for place, pieces in self.shown.items():
            if not place.startswith(ALLOWED[kind]):
                for how, form in forms(mark).items():
                    if any(form in piece for piece in pieces):
                        yield f"{kind} is in {place}, {how}"


def forms(mark: str) -> dict[str, bytes]:
    """Each form in which ``mark`` could stand somewhere, by what that is called."""
    plain = mark.encode()
    found = {
        "as it is": plain,
        "as JSON": json.dumps(mark)[1:-1].encode(),
        "as in an address": quote(mark, safe="").encode(),
        "as in a form": quote_plus(mark).encode(),
        "in hexadecimal digits": plain.hex().encode(),
        "as Python shows bytes": repr(plain)[2:-1].encode(),
        **{f"in base64 from byte {at}": _base64(plain, at) for at in range(3)},
    }
    return {how: form for how, form in found.items() if how == "as it is" or form != plain}


def _base64(plain: bytes, at: int) -> bytes:
    """The middle of it, whatever stands around: ``at`` bytes before it and any number behind."""
    coded = base64.b64encode(bytes(at) + plain)
    first = (at * 8 + 5) // 6
    last = (at + len(plain)) * 8 // 6
    return coded[first:last]
