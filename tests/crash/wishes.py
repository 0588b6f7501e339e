"""What the messages of a crash run ask for, and how that is answered. Nothing of the daemon is needed."""

import re
from dataclasses import dataclass

TOKEN = re.compile(r"token-[0-9a-f]{12}")
EDITED = " edited"  # stands in what was changed, and then in its answer
LONG_LINES = 900  # over 16 KiB, so that the answer takes more than one part
WORDLESS = "You asked for nothing."
_WISH = re.compile(rf"({TOKEN.pattern})((?: (?:long|file|slow|call|shell|edited))*)")


@dataclass(frozen=True, slots=True)
class Wish:
    """What one message asks for, by the words behind its token."""

    token: str
    words: frozenset[str]


def wishes_in(text: str) -> list[Wish]:
    return [Wish(token, frozenset(words.split())) for token, words in _WISH.findall(text)]


def answer(wish: Wish) -> str:
    lines = [f"answer {wish.token}{EDITED if EDITED.strip() in wish.words else ''}"]
    if "long" in wish.words:
        lines += [f"{wish.token} line {number:04}." for number in range(LONG_LINES)]
    return "\n".join(lines)
