"""The tool ``chat_history``: what was said in this session, also what the model does not see any more."""

import re
from collections.abc import Sequence
from typing import Annotated

from pydantic import Field

from bridge.tools.contract import Arguments, CallPlace, Risk, Said, ToolResult
from bridge.tools.texts import OUTPUT_BYTES, cut_text

SHOWN_CHARACTERS = 600  # of a message among others
PART_CHARACTERS = 20_000  # of one that is asked for by its number
MOST = 200


class HistoryArguments(Arguments):
    search: Annotated[str, Field(max_length=1000, description="Only messages that hold this text.")] = ""
    before: Annotated[int, Field(ge=1, description="Only messages before this number.")] | None = None
    most: Annotated[int, Field(ge=1, le=MOST, description="How many, the newest of them.")] = 20
    number: Annotated[int, Field(ge=1, description="Instead: all of this one message.")] | None = None
    offset: Annotated[int, Field(ge=0, description="From which character of it on.")] = 0


class ChatHistory:
    name, risk, arguments = "chat_history", Risk.READ_ONLY, HistoryArguments
    description = (
        "Read what was said in this chat session before: the newest messages, those that hold a text, or one "
        "message whole by its number. There is nothing of other chats."
    )

    def summary(self, arguments: HistoryArguments) -> str:
        return f"Look for {arguments.search} in this chat" if arguments.search else "Look at what was said"

    async def run(self, arguments: HistoryArguments, place: CallPlace) -> ToolResult:
        said = place.history()
        if arguments.number is not None:
            return _one(said, arguments.number, arguments.offset)
        return _some(said, arguments)


def _one(said: Sequence[Said], number: int, offset: int) -> ToolResult:
    if number > len(said):
        return ToolResult(False, f"There are only {len(said)} messages.")
    found = said[number - 1]
    part = found.text[offset : offset + PART_CHARACTERS]
    end = offset + len(part)
    more = f"\n[go on with offset {end}]" if end < len(found.text) else ""
    return ToolResult(True, f"{number} {found.by}: {part}{more}", bool(more))


def _some(said: Sequence[Said], arguments: HistoryArguments) -> ToolResult:
    wanted = arguments.search.casefold()
    upto = len(said) if arguments.before is None else arguments.before - 1
    found = [
        number for number, one in enumerate(said[:upto], 1) if not wanted or wanted in one.text.casefold()
    ]
    shown = [f"{number} {said[number - 1].by}: {_excerpt(said[number - 1].text, wanted)}" for number in found]
    taken: list[str] = []
    size = 0
    for line in reversed(shown[-arguments.most :]):
        size += len(line.encode(errors="replace")) + 1
        if size > OUTPUT_BYTES:
            break
        taken.insert(0, line)
    head = f"[{len(taken)} of {len(found)} messages, of {len(said)} in all]"
    return ToolResult(True, cut_text("\n".join([head, *taken])), len(taken) < len(found))


def _excerpt(text: str, wanted: str) -> str:
    """A message in one line, or of a long one what is around the first place that is ``wanted``."""
    line = re.sub(r"\s+", " ", text).strip()
    if len(line) <= SHOWN_CHARACTERS:
        return line
    start = max(0, line.casefold().find(wanted) - SHOWN_CHARACTERS // 3) if wanted else 0
    part = line[start : start + SHOWN_CHARACTERS]
    return f"{'…' if start else ''}{part}{'…' if start + SHOWN_CHARACTERS < len(line) else ''}"
