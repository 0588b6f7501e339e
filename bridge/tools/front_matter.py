"""The head of a Markdown file: ``key: value`` lines between two of ``---``; as much of YAML as that takes."""

import json
import re

MOST_LINES = 200
_KEY = re.compile(r"([A-Za-z][A-Za-z0-9_-]*):(?:[ \t]+(.*))?")
_BLOCK = re.compile(r"[|>][+-]?")


class FrontMatterError(ValueError):
    """There is none, or it cannot be read; a fixed sentence."""


def split(text: str) -> tuple[dict[str, str], str]:
    """The fields, each as one text, and what follows them. Of what is nested only that it is there is kept.

    Raises:
        FrontMatterError: the text does not begin with a front matter that can be read.
    """
    lines = text.removeprefix("\ufeff").splitlines()
    if not lines or lines[0].rstrip() != "---":
        raise FrontMatterError("it does not begin with a front matter, a line ---")
    end = next((at for at, line in enumerate(lines[1:MOST_LINES], 1) if line.rstrip() == "---"), 0)
    if not end:
        raise FrontMatterError("its front matter has no end, a second line ---")
    return _fields(lines[1:end]), "\n".join(lines[end + 1 :]).strip()


def _fields(lines: list[str]) -> dict[str, str]:
    found: dict[str, list[str]] = {}
    key = ""
    for line in lines:
        if line[:1] in (" ", "\t", "-") or not line.strip():
            if key:
                found[key].append(line.strip())
            elif line.strip():
                raise FrontMatterError("its front matter has a line that is no key: value")
        elif line.startswith("#"):
            continue
        elif (match := _KEY.fullmatch(line.rstrip())) and match[1] not in found:
            key = match[1]
            found[key] = [match[2] or ""]
        else:
            raise FrontMatterError("its front matter has a line that is no key: value, or a key twice")
    return {name: _value(parts) for name, parts in found.items()}


def _value(parts: list[str]) -> str:
    first, *more = parts
    if _BLOCK.fullmatch(first.strip()):
        return "\n".join(more).strip()
    text = " ".join(part for part in [first.strip(), *more] if part)
    if text.startswith('"'):
        return _quoted(text)
    if text.startswith("'"):
        if len(text) < 2 or not text.endswith("'"):
            raise FrontMatterError("its front matter has a quote that is not closed")
        return text[1:-1].replace("''", "'")
    return text.split(" #")[0].strip()


def _quoted(text: str) -> str:
    try:
        value = json.loads(text)
    except ValueError:
        raise FrontMatterError("its front matter has a quote that is not closed") from None
    return str(value)
