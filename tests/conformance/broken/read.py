"""Variants that read what no server may, or do not read what every server must."""

import json
import re
from collections.abc import Callable
from typing import Any

from bridge.protocol.frames import LineDecoder, TooLong
from bridge.sessions import connection, queue
from bridge.sessions.errors import RequestError
from tests.conformance.sections.s03_reading import REQUIRED
from tests.conformance.variants import (
    BROKEN_LINE,
    Event,
    Patch,
    attribute,
    everywhere,
    mends,
    reads,
    sends,
    sets,
    together,
    variant,
    wraps,
)

FRAME_BYTES = 1_048_576
PROMPT_BYTES = 262_144

# --- framing ----------------------------------------------------------------------------------------------


def _decoding(change: Callable[[LineDecoder, bytes], bytes]) -> Callable[[], Patch]:
    """``change`` sees each read, and may break what the decoder remembers."""
    return lambda: wraps(LineDecoder, "feed", lambda feed: lambda self, data: feed(self, change(self, data)))


def _forgets_dropping(decoder: LineDecoder, data: bytes) -> bytes:
    decoder._dropping = False
    return data


def _forgets_pieces(decoder: LineDecoder, data: bytes) -> bytes:
    decoder._kept.clear()
    return data


def _named(event: Event) -> Event:
    return event if "request_id" in event else {"type": "error", "request_id": "p", **event}


def _unasked_twice(event: Event) -> list[Event]:
    return [event] if "request_id" in event else [event, event]


variant("short-frames", lambda: attribute(connection, "CLIENT_FRAME_BYTES", FRAME_BYTES - 1))
variant("long-frames", lambda: attribute(connection, "CLIENT_FRAME_BYTES", FRAME_BYTES + 100))
variant("fatal-too-long", lambda: sets("error", fatal=True))
variant("names-too-long", lambda: sends(_named, "error"))
variant("says-too-long-twice", lambda: sends(_unasked_twice, "error"))
variant("forgets-dropping", _decoding(_forgets_dropping))
variant("forgets-pieces", _decoding(_forgets_pieces))
variant("counts-line-ends", _decoding(lambda _, data: data.replace(b"\r", b" ")))
variant("drops-last-line", lambda: attribute(LineDecoder, "end", lambda _: []))
variant("skips-empty-lines", lambda: reads(lambda line: line or None))
variant("one-line-a-read", lambda: wraps(LineDecoder, "feed", _first_only))


def _first_only(feed: Callable[..., list[bytes | TooLong]]) -> Callable[..., list[bytes | TooLong]]:
    return lambda self, data: feed(self, data)[:1]


# --- prompts ----------------------------------------------------------------------------------------------


def _prompts(check: Callable[[str, bool], bool]) -> Callable[..., None]:
    def checked(prompt: str, *, has_attachments: bool) -> None:
        if not check(prompt, has_attachments):
            raise RequestError("invalid_request", "no")

    return checked


_BY_CHARACTERS = _prompts(lambda prompt, files: bool(prompt.strip() or files) and len(prompt) <= PROMPT_BYTES)
_BLANK_OR_NOT = _prompts(lambda prompt, _: len(prompt.encode()) <= PROMPT_BYTES)
_NEVER_BLANK = _prompts(lambda prompt, _: bool(prompt.strip()))
_HOWEVER_LONG = _prompts(lambda prompt, files: bool(prompt.strip() or files))

variant("short-prompts", lambda: attribute(queue, "PROMPT_BYTES", PROMPT_BYTES - 1))
variant("counts-characters", lambda: everywhere("check_prompt", _BY_CHARACTERS))
variant("blank-prompts", lambda: everywhere("check_prompt", _BLANK_OR_NOT))
variant("files-need-words", lambda: everywhere("check_prompt", _NEVER_BLANK))
variant("updates-to-blank", lambda: attribute(queue, "check_prompt", _BLANK_OR_NOT))
variant("updates-too-long", lambda: attribute(queue, "check_prompt", _HOWEVER_LONG))

# --- JSON -------------------------------------------------------------------------------------------------

_OPTIONAL = (
    "provider model base_url no_tools delegation_depth channel auto_approve attachments chat before_queue_id"
)
_KNOWN = {"type", *_OPTIONAL.split(), *(name for fields in REQUIRED.values() for name in fields)}


def _only(condition: Callable[[bytes], bool]) -> Callable[[], Patch]:
    return lambda: reads(lambda line: line if condition(line) else BROKEN_LINE)


def _fields(line: bytes) -> Event:
    try:
        value = json.loads(line)
    except ValueError:
        return {}
    return value if isinstance(value, dict) else {}


def _has_null(line: bytes) -> bool:
    return any(value is None for key, value in _fields(line).items() if key != "before_queue_id")


def _each(change: Callable[[str, Any], Any]) -> Callable[[], Patch]:
    """Every value of an object is what ``change`` makes of it under its key."""

    def walk(value: Any) -> Any:
        if isinstance(value, dict):
            return {key: change(key, walk(inner)) for key, inner in value.items()}
        return [walk(inner) for inner in value] if isinstance(value, list) else value

    return lambda: mends(walk)


def _coerced(key: str, value: Any) -> Any:
    try:
        match key:
            case "protocol_version" | "revision":
                return int(float(value))
            case "paused":
                return bool(value)
            case "request_id":
                return str(value)
    except (TypeError, ValueError):
        return 3
    return value


def _within(name: str, most: int) -> Callable[[str, Any], Any]:
    return lambda key, value: max(0, min(value, most)) if key == name and type(value) is int else value


def _without_nulls(value: Any) -> Any:
    if isinstance(value, dict):
        return {key: _without_nulls(inner) for key, inner in value.items() if inner is not None}
    return [_without_nulls(inner) for inner in value] if isinstance(value, list) else value


def _filled(value: Any) -> Any:
    if isinstance(value, dict) and value.get("type") in REQUIRED:
        given = {key: inner for key, inner in value.items() if inner is not None}
        return {**REQUIRED[value["type"]], **given}
    return value


def _unlisted(value: Any) -> Any:
    """An object of what is given as a list in the order of the fields."""
    if isinstance(value, list) and value and value[0] in REQUIRED:
        return dict(zip(["type", *REQUIRED[value[0]]], value, strict=False))
    return value


def _without_extra(value: Any) -> Any:
    return (
        {key: inner for key, inner in value.items() if key != "extra"} if isinstance(value, dict) else value
    )


def _tags(change: Callable[[bytes], bytes]) -> Callable[[], Patch]:
    tag = re.compile(rb'"(type|action)":"([^"]*)"')
    return lambda: reads(
        lambda line: tag.sub(lambda found: b'"%s":"%s"' % (found[1], change(found[2])), line)
    )


def _replacing(pattern: bytes, by: bytes) -> Callable[[], Patch]:
    return lambda: reads(lambda line: re.sub(pattern, by, line))


def _first_value(line: bytes) -> bytes:
    try:
        text = line.decode()
        return text[: json.JSONDecoder().raw_decode(text)[1]].encode()
    except ValueError:
        return line


variant("minds-unknown-keys", _only(lambda line: _fields(line).keys() <= _KNOWN))
variant("last-key-wins", lambda: mends(lambda value: value))
variant("lowers-tags", _tags(bytes.lower))
variant("trims-tags", _tags(bytes.strip))
variant("tag-first", _only(lambda line: line.startswith(b'{"type"')))
variant("coerces", _each(_coerced))
variant("clips-integers", _each(_within("revision", 2**64 - 1)))
variant("wide-integers", _each(_within("protocol_version", 2**32 - 1)))
variant("minds-null", _only(lambda line: not _has_null(line)))
variant("null-is-default", lambda: mends(_without_nulls))
variant("fills-in", lambda: mends(_filled))
variant("mends-utf8", lambda: reads(lambda line: line.decode(errors="replace").encode()))
variant("mends-mark", lambda: reads(lambda line: line.removeprefix(b"\xef\xbb\xbf")))
variant("mends-nan", _replacing(rb"-?(NaN|Infinity|nan)", b"0"))
variant("mends-range", _replacing(rb"-?1e(400|999)", b"1"))
variant("mends-zeros", _replacing(rb":\+?0+([0-9])", rb":\1"))
variant("mends-controls", _replacing(rb"[\x00-\x1f]", b""))
variant("mends-surrogates", _replacing(rb"\\u[dD][89a-fA-F]..", b"?"))
variant("mends-trailing", lambda: reads(_first_value))
variant("deep-nesting", lambda: mends(_without_extra))
variant("shallow-nesting", _only(lambda line: line.count(b"[") < 100))
variant("reads-lists", lambda: mends(_unlisted))
variant("skips-no-messages", lambda: reads(lambda line: line if line[:1] == b"{" else None))
variant("minds-spaces", _only(lambda line: b" :" not in line))


def _quotes() -> Patch:
    last = [b""]

    def seen(line: bytes) -> bytes:
        last[0] = line
        return line

    def quoted(text: str) -> str:
        return f"{text}: {last[0].decode(errors='replace')}"

    return together(reads(seen), sets("error", message=quoted))


variant("quotes-requests", _quotes)
