"""The tool ``web_fetch``: read a page or a text of the web. Addresses of inner networks are refused."""

import asyncio
import base64
import ssl
from collections.abc import Iterable
from typing import Annotated, Any

from pydantic import Field

from bridge.guard import Guard, Lookup, system_lookup
from bridge.tools import workers
from bridge.tools.contract import Arguments, CallPlace, Risk, ToolResult
from bridge.tools.fetching import MOST_BYTES, Fetched, FetchError, fetch
from bridge.tools.page import decoded
from bridge.tools.processes import StartError
from bridge.tools.texts import OUTPUT_BYTES, cut, one_line

READ_SECONDS = 15.0  # for finding the text of a page
URL_CHARACTERS = 4096
FAILURE_BYTES = 4096  # of what a server writes with an error
_PAGES = frozenset({"text/html", "application/xhtml+xml"})
_TEXTS = frozenset(
    "application/json application/xml application/javascript application/ecmascript application/yaml "
    "application/x-yaml application/toml application/x-sh application/sql application/rtf".split()
)


class FetchArguments(Arguments):
    url: Annotated[str, Field(min_length=1, max_length=URL_CHARACTERS, description="http:// or https://")]
    offset: Annotated[int, Field(ge=0, description="From which byte of the text on.")] = 0


class WebFetch:
    """``private_hosts`` are asked although their address is private, as "host" or "host:port"."""

    name, risk, arguments = "web_fetch", Risk.NETWORK, FetchArguments
    description = (
        f"GET a page or a text of the web, up to {MOST_BYTES // 1_048_576} MiB; of a page its title, text "
        f"and links. You get {OUTPUT_BYTES} bytes at once, and more with offset. Others wrote what it says."
    )

    def __init__(self, private_hosts: Iterable[str] = (), lookup: Lookup = system_lookup) -> None:
        self._guard = Guard(private_hosts, lookup, plain=True)
        self._tls: ssl.SSLContext | None = None

    def summary(self, arguments: FetchArguments) -> str:
        return f"Fetch {arguments.url}"

    async def run(self, arguments: FetchArguments, place: CallPlace) -> ToolResult:
        if self._tls is None:
            self._tls = await asyncio.to_thread(ssl.create_default_context)
        try:
            found = await fetch(arguments.url, self._guard, self._tls)
            await place.progress(f"{found.said}, {len(found.data)} bytes, {found.mime or 'of no type'}")
            text = await _text(found)
        except (FetchError, StartError) as error:
            return ToolResult(False, f"It was not fetched: {error}.")
        if not 200 <= found.status < 300:
            shown = cut(text.encode(), FAILURE_BYTES).decode()
            return ToolResult(False, f"The server answered {found.said}.\n{shown}".strip())
        return _part(found, text.encode(), arguments.offset)


async def _text(found: Fetched) -> str:
    """Raises FetchError: it is no text, or cannot be read."""
    if found.mime in _PAGES:
        return await _page(found)
    told = found.mime.startswith("text/") or found.mime in _TEXTS or found.mime.endswith(("+json", "+xml"))
    text = decoded(found.data, found.charset)
    if (found.mime and not told) or "\0" in text:
        kind = found.mime or "binary"
        raise FetchError(f"it is {kind}, {len(found.data)} bytes, and no text")
    return text.encode(errors="replace").decode()


async def _page(found: Fetched) -> str:
    request = {
        "page": base64.b64encode(found.data).decode(),
        "charset": found.charset,
        "url": found.url,
    }
    told: list[dict[str, Any]] = []

    async def take(answer: dict[str, Any]) -> None:
        told.append(answer)

    why = await workers.work("page", request, READ_SECONDS, take)
    if not told:
        raise FetchError(f"the page cannot be read: {why}")
    links = [f"- {one_line(text)}: {one_line(url)}" for text, url in told[0]["links"]]
    parts = [one_line(told[0]["title"]), told[0]["text"], "\n".join(["Links:", *links]) if links else ""]
    return "\n\n".join(filter(None, parts)).encode(errors="replace").decode()


def _part(found: Fetched, text: bytes, offset: int) -> ToolResult:
    if offset and offset >= len(text):
        return ToolResult(False, f"The text has only {len(text)} bytes.")
    while offset and text[offset] & 0xC0 == 0x80:  # inside of a character
        offset -= 1
    part = cut(text[offset:])
    end = offset + len(part)
    notes = [found.url]
    if offset or end < len(text):
        notes.append(f"bytes {offset} to {end} of {len(text)}")
    if end < len(text):
        notes.append(f"go on with offset {end}")
    if not found.is_whole:
        notes.append(f"only the first {MOST_BYTES} bytes were taken")
    shown = part.decode(errors="replace") or "It is empty."
    return ToolResult(True, f"[{'; '.join(notes)}]\n{shown}", end < len(text) or not found.is_whole)
