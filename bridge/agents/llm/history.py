"""A session's messages as the library sends them to any provider: pure.

Providers are strict: a person and the model take turns, calls have their results, nothing is blank. A history
may hold what other agents made of it.
"""

from collections.abc import Mapping, Sequence

from pydantic_ai.messages import (
    BinaryContent,
    ModelMessage,
    ModelRequest,
    ModelRequestPart,
    ModelResponse,
    ModelResponsePart,
    TextPart,
    ToolCallPart,
    ToolReturnPart,
    UserContent,
    UserPromptPart,
)

from bridge.agents.contract import HistoryEntry, Role
from bridge.agents.llm import prompt
from bridge.agents.llm.oddities import sent_arguments, sent_name
from bridge.agents.llm.pictures import Picture, Shown

NOTHING = "(nothing)"
NO_PICTURES = "a picture, which you cannot see"

Kept = Mapping[str, ModelResponse]
"""The turn's own steps as the model gave them, by the id of their first call."""


def messages(
    entries: Sequence[HistoryEntry], kept: Kept, pictures: Shown | None, *, with_paths: bool
) -> list[ModelMessage]:
    """``entries``, oldest first, as messages. ``pictures`` None: the model cannot see any."""
    found: list[ModelMessage] = []
    parts: list[ModelRequestPart] = []
    for entry in entries:
        if entry.role is Role.ASSISTANT:
            found += [ModelRequest(_joined(parts)), _said(entry, kept)]
            parts = []
        elif entry.role is Role.TOOL:
            result = ToolReturnPart(sent_name(entry.name), entry.text or NOTHING, tool_call_id=entry.call_id)
            parts.append(result)
        else:
            parts.append(UserPromptPart(_content(entry, pictures, with_paths=with_paths)))
    return [message for message in [*found, ModelRequest(_joined(parts))] if message.parts]


def _joined(parts: Sequence[ModelRequestPart]) -> list[ModelRequestPart]:
    """Messages of a person that follow each other are one; one of words alone is a plain text."""
    found: list[ModelRequestPart] = []
    for part in parts:
        last = found[-1] if found else None
        if isinstance(part, UserPromptPart) and isinstance(last, UserPromptPart):
            part = UserPromptPart([*last.content, *part.content])
            found.pop()
        found.append(part)
    return [_plain(part) if isinstance(part, UserPromptPart) else part for part in found]


def _plain(part: UserPromptPart) -> UserPromptPart:
    texts = [one for one in part.content if isinstance(one, str)]
    return UserPromptPart("\n\n".join(texts)) if len(texts) == len(part.content) else part


def _said(entry: HistoryEntry, kept: Kept) -> ModelResponse:
    if entry.calls and (response := kept.get(entry.calls[0].call_id)):
        return response
    parts: list[ModelResponsePart] = [TextPart(entry.text)] if entry.text.strip() else []
    parts += [
        ToolCallPart(sent_name(call.name), sent_arguments(call.arguments), call.call_id)
        for call in entry.calls
    ]
    return ModelResponse(parts or [TextPart(NOTHING)])


def _content(entry: HistoryEntry, pictures: Shown | None, *, with_paths: bool) -> list[UserContent]:
    """The words, the list of files, then the pictures in its order."""
    notes: list[str] = []
    shown: list[UserContent] = []
    for file in entry.files:
        note: Picture | str = ""
        if file.picture is not None:
            note = NO_PICTURES if pictures is None else pictures.get(file.picture, "")
        if isinstance(note, Picture):
            shown.append(BinaryContent(note.data, media_type=note.mime))
        notes.append(note if isinstance(note, str) else f"the picture {len(shown)} below")
    listed = prompt.files(entry.files, notes, with_paths=with_paths)
    text = "\n\n".join(filter(None, [entry.text.strip(), listed])) or NOTHING
    return [f"[{text}]" if entry.role is Role.NOTE else text, *shown]
