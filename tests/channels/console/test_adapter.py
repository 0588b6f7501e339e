"""The console's requests and answers."""

import json
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest
from multidict import CIMultiDict, CIMultiDictProxy

from bridge.channel import (
    Answer,
    Ask,
    Claimed,
    FileKind,
    Follow,
    Identity,
    LiveTurn,
    OutboundPart,
    Reading,
    RemoteFile,
    Request,
    WaitingPart,
)
from channels.console import adapter
from channels.console.adapter import Console

AT = datetime(2026, 11, 30, 12, 0, tzinfo=UTC)
CONSOLE = Console("you")


def request(method: str, body: bytes = b"", **query: str) -> Request:
    return Request(method, "", query, CIMultiDictProxy(CIMultiDict()), body, AT)


def post(**fields: Any) -> Request:
    return request(
        "POST", json.dumps({"type": "message", "id": "m1", "conversation": "c", **fields}).encode()
    )


def said(answer: object) -> Any:
    assert isinstance(answer, Answer)
    return json.loads(answer.body)


def test_what_became_of_a_message_is_said() -> None:
    reading = CONSOLE.read(post(text="hi"), Identity())
    assert isinstance(reading, Reading)
    statuses = {each: CONSOLE.answer(reading, [each]).status for each in Claimed}
    assert {each for each, status in statuses.items() if status != 202} == {Claimed.CONFLICT}
    assert statuses[Claimed.CONFLICT] == 409
    assert said(CONSOLE.answer(reading, [Claimed.BUSY])) == {"id": "m1", "outcome": "busy"}


def test_what_is_wrong_is_400_and_a_wrong_method_405() -> None:
    answer = CONSOLE.read(post(), Identity())
    assert said(answer) == {"error": "text: a message needs a text or a file"}
    for refused, allowed in (
        (CONSOLE.read(request("GET"), Identity()), "POST"),
        (CONSOLE.ask(request("POST")), "GET"),
        (CONSOLE.follow(request("POST")), "GET"),
    ):
        assert isinstance(refused, Answer)
        assert (refused.status, refused.headers["Allow"]) == (405, allowed)


def test_replies_are_asked_for_by_conversation() -> None:
    assert CONSOLE.ask(request("GET", conversation="主", after="7", wait="2")) == Ask(7, 2.0, "主")
    assert CONSOLE.ask(request("GET", conversation="c")) == Ask(0, 0.0, "c")
    wrong: list[dict[str, Any]] = [
        {},
        {"conversation": "c", "after": "x"},
        {"conversation": "c", "wait": "99"},
    ]
    for query in wrong:
        answer = CONSOLE.ask(request("GET", **query))
        assert isinstance(answer, Answer)
        assert answer.status == 400


def test_a_turn_is_followed_by_its_message() -> None:
    follow = CONSOLE.follow(request("GET", message="m1", version="3", wait="2"))
    assert follow == Follow("m1", 3, 2.0)
    assert said(CONSOLE.shown(follow, LiveTurn(4, "text")))["text"] == "text"
    refused = CONSOLE.follow(request("GET"))
    assert isinstance(refused, Answer)
    assert refused.status == 400


async def test_what_waits_is_told_up_to_a_few_mib(monkeypatch: pytest.MonkeyPatch) -> None:
    waiting = [WaitingPart(n, OutboundPart("c", "m", f"{n:032x}", "x" * 100)) for n in range(5)]
    told = said(await CONSOLE.told(Ask(0, 0), waiting))
    assert [each["cursor"] for each in told["replies"]] == [0, 1, 2, 3, 4]
    monkeypatch.setattr(adapter, "ANSWER_BYTES", 300)
    assert len(said(await CONSOLE.told(Ask(0, 0), waiting))["replies"]) == 2


async def test_a_local_file_is_fetched(tmp_path: Path) -> None:
    (path := tmp_path / "a").write_bytes(b"abc")
    async with CONSOLE.fetch(RemoteFile(str(path), FileKind.FILE), 10) as incoming:
        assert [chunk async for chunk in incoming.chunks] == [b"abc"]
