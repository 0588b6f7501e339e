import json
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest
from multidict import CIMultiDict, CIMultiDictProxy

from bridge.channel import (
    Answer,
    Ask,
    ConfigError,
    FileKind,
    Http,
    OutboundFile,
    OutboundPart,
    Place,
    Request,
    WaitingPart,
)
from bridge.channel.http import http_session
from bridge.channel.testing.clock import START, FakeClock
from channels.webhook import asking
from channels.webhook.asking import WebhookAsked
from channels.webhook.inbound import UNAUTHORIZED
from tests.channels.webhook.tools import ASK_TOKEN, bare, credentials, settings

AUTH = f"Bearer {ASK_TOKEN}"


@asynccontextmanager
async def asked(address: str = "", **secrets: Any) -> AsyncIterator[WebhookAsked]:
    async with http_session() as session:
        http = Http(session, clock=FakeClock())
        yield WebhookAsked(settings(), credentials(**secrets), http, Place("webhook:a", address))


def question(**query: str) -> Request:
    return bare("GET", "/replies", query, Authorization=AUTH)


def text(n: int, content: str = "hi") -> WaitingPart:
    part = OutboundPart('["c1"]', "m1", f"{n:032x}", content, reply_id="r1", part=n - 1, parts=n)
    return WaitingPart(n, part)


def file(path: Path, n: int = 1, size: int | None = None) -> WaitingPart:
    found = path.stat().st_size if size is None else size
    part = OutboundFile(
        '["c1"]',
        "m1",
        f"{n:032x}",
        path,
        path.name,
        "text/plain",
        FileKind.FILE,
        found,
        "r1",
        created_at=START,
    )
    return WaitingPart(n, part)


@pytest.mark.parametrize(
    ("query", "wanted"),
    [
        ({}, Ask(0, 0.0)),
        ({"after": "12", "wait": "25"}, Ask(12, 25.0)),
        ({"after": "007", "wait": "0.5"}, Ask(7, 0.5)),
        ({"after": "1" * 18}, Ask(int("1" * 18), 0.0)),
    ],
)
async def test_a_question_says_what_was_received_and_how_long_to_wait(
    query: dict[str, str], wanted: Ask
) -> None:
    async with asked() as channel:
        assert channel.ask(question(**query)) == wanted


@pytest.mark.parametrize(
    "query",
    [
        {"after": ""}, {"after": "-1"}, {"after": "x"}, {"after": "1.5"}, {"after": "1" * 19}, {"after": "٣"},
        {"wait": "26"}, {"wait": "25.1"}, {"wait": "-1"}, {"wait": "nan"}, {"wait": "inf"}, {"wait": "1e1"},
        {"wait": ""},
    ],
)  # fmt: skip
async def test_a_bad_cursor_or_wait_is_400(query: dict[str, str]) -> None:
    async with asked() as channel:
        answer = channel.ask(question(**query))
    assert isinstance(answer, Answer)
    assert answer.status == 400


async def test_without_exactly_the_token_nothing_is_told() -> None:
    shown: list[list[tuple[str, str]]] = [
        [],
        [("Authorization", "")],
        [("Authorization", ASK_TOKEN)],
        [("Authorization", "Bearer ")],
        [("Authorization", AUTH + "x")],
        [("Authorization", AUTH.lower())],
        [("Authorization", "Bearer é\udcff")],
        [("Authorization", AUTH), ("Authorization", AUTH)],
    ]
    async with asked() as channel:
        for headers in shown:
            request = Request("GET", "/replies", {}, CIMultiDictProxy(CIMultiDict(headers)), b"", START)
            assert channel.ask(request) == UNAUTHORIZED
        other = channel.ask(bare("POST", "/replies", Authorization=AUTH))
        assert isinstance(other, Answer)
        assert other.status == 405


async def test_an_account_without_a_token_cannot_start() -> None:
    with pytest.raises(ConfigError, match=r"^webhook:a .*ask_token"):
        async with asked(ask_token=""):
            pass


async def test_what_waits_is_told_in_order_with_the_cursor_to_ask_past() -> None:
    async with asked() as channel:
        nothing = await channel.told(Ask(7, 0), [])
        two = await channel.told(Ask(0, 0), [text(1), text(2, "你好")])
    assert json.loads(nothing.body) == {"replies": [], "cursor": 7}
    found = json.loads(two.body)
    assert (two.status, found["cursor"]) == (200, 2)
    assert found["replies"][1] == {
        "cursor": 2,
        "conversation_id": "c1",
        "in_reply_to": "m1",
        "reply_id": "r1",
        "part": 2,
        "parts": 2,
        "final": True,
        "text": "你好",
        "attachments": [],
    }


async def test_files_come_inline_or_by_an_address_relative_to_the_question(tmp_path: Path) -> None:
    small, large = tmp_path / "small.txt", tmp_path / "large.txt"
    small.write_bytes(b"AB")
    large.write_bytes(bytes(262_145))
    async with asked() as channel:
        told = json.loads((await channel.told(Ask(0, 0), [file(small, 1), file(large, 2)])).body)
        first, second = (each["attachments"][0] for each in told["replies"])
        assert first["content_base64"] == "QUI="
        assert second["url"].startswith("files/")
        wanted = channel.file(bare("GET", "/" + second["url"]))
        assert not isinstance(wanted, Answer)
        assert wanted.name == "large.txt"
    async with asked("https://b.example/channels/webhook/a") as channel:
        told = json.loads((await channel.told(Ask(0, 0), [file(large, 2)])).body)
    address = told["replies"][0]["attachments"][0]["url"]
    assert address.startswith("https://b.example/channels/webhook/a/files/")


async def test_a_file_that_is_gone_is_said_to_be_and_spoils_no_answer(tmp_path: Path) -> None:
    async with asked() as channel:
        told = json.loads((await channel.told(Ask(0, 0), [file(tmp_path / "no", 1, 3), text(2)])).body)
    assert told["replies"][0]["attachments"] == [{"id": f"{1:032x}", "name": "no", "unavailable": True}]
    assert told["cursor"] == 2


async def test_an_answer_is_bounded_and_its_cursor_covers_only_what_it_holds(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(asking, "ANSWER_BYTES", 300)
    async with asked() as channel:
        told = json.loads((await channel.told(Ask(0, 0), [text(n, "x" * 100) for n in (1, 2, 3)])).body)
        alone = json.loads((await channel.told(Ask(0, 0), [text(4, "x" * 1000)])).body)
    assert [each["cursor"] for each in told["replies"]] == [1, 2]
    assert told["cursor"] == 2
    assert alone["cursor"] == 4
