import sys
from pathlib import Path

import pytest
from aiohttp import web

from bridge.tools import web_fetch
from bridge.tools.contract import ArgumentsError, Risk, ToolResult, read_arguments
from bridge.tools.texts import OUTPUT_BYTES
from bridge.tools.web_fetch import FetchArguments, WebFetch
from tests.channel.serving import serving
from tests.tools.place import Shown

TOOL = WebFetch(["127.0.0.1"])


async def fetch(url: str, offset: int = 0, tool: WebFetch = TOOL) -> ToolResult:
    return await tool.run(FetchArguments(url=url, offset=offset), Shown(Path("/")).place)


async def of(body: bytes, kind: str = "text/plain", status: int = 200, offset: int = 0) -> ToolResult:
    async def answer(request: web.BaseRequest) -> web.Response:
        response = web.Response(body=body, status=status)
        response.headers["Content-Type"] = kind
        return response

    async with serving(answer) as base:
        result = await fetch(f"{base}/x", offset)
        return ToolResult(result.success, result.output.replace(base, "BASE"), result.truncated)


def test_it_says_its_risk_and_what_it_would_do() -> None:
    assert (TOOL.name, TOOL.risk) == ("web_fetch", Risk.NETWORK)
    assert TOOL.summary(FetchArguments(url="https://e.example/")) == "Fetch https://e.example/"


@pytest.mark.parametrize(
    "raw",
    [{}, {"url": ""}, {"url": "x" * 4097}, {"url": "x", "offset": -1}, {"url": "x", "method": "POST"}],
)
def test_bad_arguments_are_refused(raw: dict[str, object]) -> None:
    with pytest.raises(ArgumentsError):
        read_arguments(FetchArguments, raw)


async def test_of_a_page_its_title_text_and_links_are_told() -> None:
    page = b"<title>Title</title><p>Text <a href='/y'>more</a>"
    result = await of(page, "text/html; charset=utf-8")
    assert result == ToolResult(True, "[BASE/x]\nTitle\n\nText more\n\nLinks:\n- more: BASE/y")
    assert (await of(b"<p>a", "application/xhtml+xml")).output == "[BASE/x]\na"


@pytest.mark.parametrize(
    "kind", ["text/plain", "application/json", "image/svg+xml", "application/ld+json", ""]
)
async def test_texts_are_told_as_they_are(kind: str) -> None:
    assert (await of('{"a": "é"}\n'.encode(), kind)).output == '[BASE/x]\n{"a": "é"}\n'
    assert (await of(b"", kind)).output == "[BASE/x]\nIt is empty."


@pytest.mark.parametrize(
    ("body", "kind", "why"),
    [
        (b"\x89PNG", "image/png", "it is image/png, 4 bytes, and no text"),
        (b"a\0b", "", "it is binary, 3 bytes, and no text"),
        (b"a\0b", "text/plain", "it is text/plain, 3 bytes, and no text"),
    ],
)
async def test_what_is_no_text_is_refused_by_its_type(body: bytes, kind: str, why: str) -> None:
    assert await of(body, kind) == ToolResult(False, f"It was not fetched: {why}.")


async def test_a_servers_error_is_told_with_some_of_what_it_says() -> None:
    result = await of(b"x" * 10_000, status=500)
    assert not result.success
    assert result.output.startswith("The server answered 500 Internal Server Error.\nxxx")
    assert len(result.output) < 5000
    assert (await of(b"", status=404)).output == "The server answered 404 Not Found."


async def test_a_long_text_is_told_in_parts_between_characters() -> None:
    text = "é" * OUTPUT_BYTES
    first = await of(text.encode())
    assert first.truncated
    head, _, part = first.output.partition("\n")
    assert (
        head == f"[BASE/x; bytes 0 to {OUTPUT_BYTES} of {2 * OUTPUT_BYTES}; go on with offset {OUTPUT_BYTES}]"
    )
    second = await of(text.encode(), offset=OUTPUT_BYTES + 1)
    assert (
        second.output == f"[BASE/x; bytes {OUTPUT_BYTES} to {2 * OUTPUT_BYTES} of {2 * OUTPUT_BYTES}]\n{part}"
    )
    assert (await of(b"abc", offset=3)) == ToolResult(False, "The text has only 3 bytes.")


async def test_a_body_that_was_cut_is_told(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("bridge.tools.fetching.MOST_BYTES", 3)
    result = await of(b"abcdef")
    assert result.truncated
    assert result.output.endswith("bytes were taken]\nabc")


async def test_a_page_that_grows_on_its_way_out_of_the_worker_is_read() -> None:
    """Each of its bytes is a letter that takes six as JSON."""
    page = b"<p>" + b"\xe9" * 4_000_000
    result = await of(page, "text/html; charset=latin-1")
    assert result.success, result.output
    assert "bytes 0 to 65536 of 8000000" in result.output


async def test_inner_addresses_are_refused() -> None:
    strict = WebFetch()
    for url in (
        "http://127.0.0.1:1/",
        "http://[::1]/",
        "https://169.254.169.254/latest",
        "http://2130706433/",
    ):
        result = await fetch(url, tool=strict)
        assert not result.success
        assert result.output.startswith("It was not fetched: ")


async def test_a_page_made_to_take_long_is_given_up(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(web_fetch, "READ_SECONDS", 0.3)
    result = await of(b"<!--" * 1_000_000, "text/html")
    assert result == ToolResult(
        False, "It was not fetched: the page cannot be read: it took over 0.3 seconds."
    )


async def test_without_a_worker_no_page_is_read(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "executable", "/none")
    assert "cannot be started" in (await of(b"<p>a", "text/html")).output
