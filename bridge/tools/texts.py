"""Text that tools give to a model: cut to what it can take, and always such as UTF-8 can hold."""

import re

OUTPUT_BYTES = 65_536
_SEQUENCE = re.compile(
    r"\x1b(?:\[[0-?]*[ -/]*[@-~]|\][^\x07\x1b]*(?:\x07|\x1b\\)|[ -/]+[0-~]|[0-~])"
)  # of terminals
_CONTROL = re.compile(r"[\x00-\x08\x0b\x0c\x0e-\x1f\x7f]")


def cut(data: bytes, most_bytes: int = OUTPUT_BYTES) -> bytes:
    """The beginning of ``data``, cut between characters."""
    if len(data) <= most_bytes:
        return data
    end = most_bytes
    while end > most_bytes - 4 and data[end] & 0xC0 == 0x80:  # inside of a character
        end -= 1
    return data[:end]


def cut_text(text: str, most_bytes: int = OUTPUT_BYTES) -> str:
    return cut(text.encode(errors="replace"), most_bytes).decode(errors="replace")


def cut_end_text(text: str, most_bytes: int) -> str:
    """The end of ``text``, cut between characters."""
    data = text.encode(errors="replace")[-most_bytes:]
    return data.decode(errors="ignore")


def from_terminal(data: bytes) -> str:
    """What a program wrote as plain text: no colours, line ends as ours, other controls as U+FFFD."""
    text = _SEQUENCE.sub("", data.decode(errors="replace"))
    return _CONTROL.sub("\ufffd", text.replace("\r\n", "\n").replace("\r", "\n"))


def one_line(text: str) -> str:
    """A name or a title without line ends and other controls."""
    return " ".join(_CONTROL.sub(" ", text).split())
