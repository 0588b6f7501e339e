"""What the echo agent says: pure functions from a turn to text."""

import re
from collections.abc import Iterable, Sequence

from bridge.agents.contract import HistoryEntry, Role, TurnFile
from bridge.media.sizes import shown_size

ECHO_CHARACTERS = 20_000
LONG_CHARACTERS = 2_000_000  # over what a step may hold, so that refusals can be seen
_QUOTE_CHARACTERS = 200
_HISTORY_ENTRIES = 20

_CONTROL = re.compile(r"[\x00-\x08\x0b-\x1f\x7f-\x9f\u2028\u2029]")
_HAN = re.compile(r"[\u3400-\u4dbf\u4e00-\u9fff\U00020000-\U0003ffff]")
_KINDS = {"image": "图片", "audio": "语音", "video": "视频", "file": "文件"}
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


def is_chinese(text: str) -> bool:
    """Whether Chinese characters are a good part of its letters."""
    letters = sum(map(str.isalpha, text))
    return 3 * len(_HAN.findall(text)) >= letters > 0


def echo(prompt: str, files: Iterable[TurnFile]) -> str:
    """The prompt said back in its own language, and what is known of each file."""
    text = _CONTROL.sub("", prompt).strip()
    zh = is_chinese(text)
    said = (
        ("你说：" if zh else "You said: ") + _cut(text, ECHO_CHARACTERS, zh) if text else "You wrote nothing."
    )
    lines = [describe(file, zh) for file in files]
    if not lines:
        return f"{said}\n\nWrite help to see what else I can do." if not text else said
    if zh:
        count = f"你发来了 {len(lines)} 个文件："
    else:
        count = "You sent a file:" if len(lines) == 1 else f"You sent {len(lines)} files:"
    return "\n".join([said, "", count, *lines])


def added(seen: Sequence[HistoryEntry], prompt: str) -> list[str]:
    """What its user said to a turn after ``prompt``, which began it; looked for from the end."""
    said: list[str] = []
    for entry in reversed(seen):
        if entry.role is Role.USER:
            if entry.text == prompt:
                return said[::-1]
            said.append(entry.text)
    return []


def describe(file: TurnFile, zh: bool = False) -> str:
    parts = [shown_size(file.size)]
    if file.mime:
        parts.insert(0, file.mime)
    if file.pixels:
        parts.append(f"{file.pixels[0]} x {file.pixels[1]} {'像素' if zh else 'pixels'}")
    if zh:
        line = f"- {_KINDS.get(file.kind, file.kind)} {file.name or '（无名）'}（{'，'.join(parts)}）"
        return f"{line}，内容是：{file.transcript}" if file.transcript else line
    line = f"- {file.kind} {file.name or 'without a name'} ({', '.join(parts)})"
    return f"{line}, which says: {file.transcript}" if file.transcript else line


def recall(history: Sequence[HistoryEntry], zh: bool = False) -> str:
    """What was said before, the newest last; first of all, how much of it is out of sight."""
    words = {Role.USER: "你" if zh else "you", Role.ASSISTANT: "我" if zh else "I"}
    said = [entry for entry in history if entry.role in words and (entry.text.strip() or entry.files)]
    gone = sum(entry.covers for entry in history)
    if not said and not gone:
        return "之前什么也没有说过。" if zh else "Nothing was said before."
    lines = [
        f"{words[entry.role]}{'：' if zh else ': '}{_recalled(entry, zh)}"
        for entry in said[-_HISTORY_ENTRIES:]
    ]
    if gone:
        lines.insert(0, f"（更早的 {gone} 条看不到了）" if zh else f"(out of sight: {gone} earlier ones)")
    if zh:
        return "\n".join([f"到现在有 {len(said)} 条消息，最后的是：", *lines])
    messages = "was 1 message" if len(said) == 1 else f"were {len(said)} messages"
    return "\n".join([f"So far there {messages}. The last ones:", *lines])


def _recalled(entry: HistoryEntry, zh: bool) -> str:
    text = _cut(" ".join(_CONTROL.sub(" ", entry.text).split()), _QUOTE_CHARACTERS, zh)
    files = f"[{'文件' if zh else 'files'}: {len(entry.files)}]"
    return f"{text} {files}".lstrip() if entry.files else text


def seconds(number: str, zh: bool = False) -> str:
    """``number`` of seconds in words."""
    if zh:
        return f"{number} 秒"
    return f"{number} second" if float(number) == 1 else f"{number} seconds"


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


def _cut(text: str, characters: int, zh: bool = False) -> str:
    if len(text) <= characters:
        return text
    left = len(text) - characters
    return (
        f"{text[:characters]}…（还有 {left} 个字符）"
        if zh
        else f"{text[:characters]}… ({left} more characters)"
    )
