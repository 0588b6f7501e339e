"""What the echo agent says: pure functions from a turn to text."""

import re
from collections.abc import Iterable

from bridge.agents.contract import HistoryEntry, Role, TurnFile

ECHO_CHARACTERS = 20_000
LONG_CHARACTERS = 200_000
_QUOTE_CHARACTERS = 200
_HISTORY_ENTRIES = 20

_CONTROL = re.compile(r"[\x00-\x08\x0b-\x1f\x7f-\x9f\u2028\u2029]")
_SENTENCE = "This sentence is here to make the answer longer, and says nothing else. "

MARKDOWN = """# A heading

Some **bold**, some *italic*, some ~~struck~~ and some `code`, and a [link](https://example.com/).

- one
- two
  - two and a half

1. first
2. second

> A quotation.

| name | value |
| --- | --- |
| a | 1 |

```python
print("a block of code")
```"""

MENTION = (
    "These must reach nobody: @all @everyone @here <@U0000000> <!channel> <!here> "
    '<at user_id="all">Everyone</at> <at id="all"></at> [everyone](tg://user?id=1)'
)


def echo(prompt: str, files: Iterable[TurnFile]) -> str:
    """The prompt said back, and what is known of each file."""
    text = _CONTROL.sub("", prompt).strip()
    said = f"You said: {_cut(text, ECHO_CHARACTERS)}" if text else "You wrote nothing."
    lines = [describe(file) for file in files]
    if not lines:
        return f"{said}\n\nWrite help to see what else I can do." if not text else said
    count = "a file" if len(lines) == 1 else f"{len(lines)} files"
    return "\n".join([said, "", f"You sent {count}:", *lines])


def describe(file: TurnFile) -> str:
    parts = [f"{file.size} bytes"]
    if file.mime:
        parts.insert(0, file.mime)
    if file.pixels:
        parts.append(f"{file.pixels[0]} x {file.pixels[1]} pixels")
    line = f"- {file.kind} {file.name or 'without a name'} ({', '.join(parts)})"
    return f"{line}, which says: {file.transcript}" if file.transcript else line


def recall(history: Iterable[HistoryEntry]) -> str:
    """What was said before, the newest last."""
    words = {Role.USER: "you", Role.ASSISTANT: "I"}
    said = [entry for entry in history if entry.role in words and (entry.text.strip() or entry.files)]
    if not said:
        return "Nothing was said before."
    shown = [f"{words[entry.role]}: {_recalled(entry)}" for entry in said[-_HISTORY_ENTRIES:]]
    return "\n".join([f"So far there were {len(said)} messages. The last ones:", *shown])


def _recalled(entry: HistoryEntry) -> str:
    text = _cut(" ".join(_CONTROL.sub(" ", entry.text).split()), _QUOTE_CHARACTERS)
    return f"{text} [files: {len(entry.files)}]".lstrip() if entry.files else text


def long(characters: int) -> str:
    """Exactly so many characters: paragraphs, and a block of code in the middle of what is long enough."""
    parts: list[str] = []
    length = number = 0
    while length < characters:
        number += 1
        code = "".join(f"line_{n} = {n}\n" for n in range(40))
        part = f"```python\n{code}```\n\n" if number == 3 else f"{number}. {_SENTENCE * 5}\n\n"
        parts.append(part)
        length += len(part)
    return "".join(parts)[:characters]


def pieces(text: str, characters: int = 1000) -> list[str]:
    """``text`` in pieces, as a model would send it."""
    return [text[at : at + characters] for at in range(0, len(text), characters)]


def _cut(text: str, characters: int) -> str:
    if len(text) <= characters:
        return text
    return f"{text[:characters]}… ({len(text) - characters} more characters)"
