"""Rich text (``post``) as plain text with its pictures and videos. Pure; never fails.

Source: https://open.feishu.cn/document/server-docs/im-v1/message-content-description/message_content
"""

import html
import re
from typing import Any

from bridge.channel import FileKind, RemoteFile
from channels.feishu.mentions import Mentioned
from channels.feishu.wire import remote_file, text_of

Element = dict[str, Any]

_APART = "\0"  # where a line ends around what has lines of its own; no content holds it
_FENCES = re.compile(r"^[ \t]*(`{3,})", re.MULTILINE)


def _fence(code: str) -> str:
    """A fence that nothing in ``code`` ends."""
    return "`" * max([3, *(len(found[1]) + 1 for found in _FENCES.finditer(code))])


def _unescaped(text: str) -> str:
    """A number of thousands of digits stands for no character; such a text stays as it is."""
    try:
        return html.unescape(text)
    except ValueError:
        return text


class Post:
    """Reads one post; its files gather in ``files`` as they come."""

    def __init__(self, message_id: str, mentioned: Mentioned) -> None:
        self._message_id = message_id
        self._mentioned = mentioned
        self.files: list[RemoteFile] = []

    @property
    def label(self) -> str:
        """In words, what the files are."""
        return " ".join("[Image]" if file.kind == FileKind.IMAGE else "[Video]" for file in self.files)

    def read(self, fields: Element) -> str:
        """Title and lines. A wrapper by language, which sent posts have, is looked through."""
        if not isinstance(fields.get("content"), list):
            fields = next((each for each in fields.values() if isinstance(each, dict)), fields)
        content = fields.get("content")
        rows = content if isinstance(content, list) else []
        lines = [text_of(fields, "title"), *(self._line(row) for row in rows)]
        return "\n".join(lines).strip()

    def _line(self, row: object) -> str:
        elements = row if isinstance(row, list) else [row]
        line = "".join(self._element(each) for each in elements if isinstance(each, dict))
        if _APART not in line:
            return line.strip(" ")
        pieces = (piece.strip(" ") for piece in line.split(_APART))
        return "\n".join(filter(None, pieces)).strip("\n")

    def _element(self, element: Element) -> str:
        text = text_of(element, "text")
        match element.get("tag"):
            case "text" if element.get("un_escape") is True:
                return self._mentioned.in_line(_unescaped(text))
            case "a":
                href = text_of(element, "href")
                return f"[{text}]({href})" if text and href and text != href else text or href
            case "at":
                return self._mentioned.name(text_of(element, "user_id"), text_of(element, "user_name"))
            case "img":
                return self._file(text_of(element, "image_key"), "image", FileKind.IMAGE)
            case "media":
                return self._file(text_of(element, "file_key"), "file", FileKind.VIDEO)
            case "emotion":
                return f":{text_of(element, 'emoji_type')}:"
            case "hr":
                return f"{_APART}---{_APART}"
            case "code_block":
                fence = _fence(text)
                language = text_of(element, "language").lower().replace("plain_text", "")
                return f"{_APART}{fence}{language}\n{text.rstrip()}\n{fence}{_APART}"
            case "md":
                return self._mentioned.in_line(text)
        return self._mentioned.in_line(text)

    def _file(self, key: str, kind: str, shown: FileKind) -> str:
        """The picture is brought, not written: a message that is one picture has no text."""
        if key and self._message_id:
            self.files.append(remote_file(self._message_id, key, kind, shown))
        return ""
