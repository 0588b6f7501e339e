"""Checks of ``Pushed``: what a platform posts is verified, read purely, and answered."""

import json
from collections.abc import Callable
from dataclasses import asdict, replace
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from multidict import CIMultiDict, CIMultiDictProxy

from bridge.channel.contract import (
    Answer,
    Claimed,
    FileKind,
    Identity,
    Ignored,
    Inbound,
    Pushed,
    Reading,
    RemoteFile,
    Request,
)
from bridge.channel.testing.checks.stage import Stage, scenario
from bridge.channel.testing.kit import KitMessage, PushedKit

bounded = settings(
    max_examples=100, deadline=None, database=None, derandomize=True, suppress_health_check=list(HealthCheck)
)
TEXTS = ("hello", "你好 😀", "a\n\nb", "quote \" and \\ and ' and <b>&amp;", "#1 *not* _markdown_", "/stop")


def pushed(stage: Stage) -> tuple[Pushed, PushedKit]:
    if not isinstance(stage.channel, Pushed) or not isinstance(stage.kit, PushedKit):
        pytest.skip("it is not pushed to")
    return stage.channel, stage.kit


def said(stage: Stage, text: str = "hello", **fields: Any) -> KitMessage:
    return KitMessage(text, sender=stage.kit.person(0), chat=stage.kit.chat(0), **fields)


@scenario
async def test_a_pushed_message_keeps_its_text_sender_and_place(stage: Stage) -> None:
    pushed(stage)
    for text in TEXTS:
        found = await stage.greeting(said(stage, text))
        assert found.text == text, f"{text!r} was read as {found.text!r}"
        assert found.sender == stage.kit.person(0), "the sender is the stable id"
        assert found.message_id, "a message has an id"
        assert found.to, "a message says where its conversation is written to"
        assert found.chat, "a message says in which chat it is"
        assert not found.group, "a direct chat is no group"


@scenario
async def test_a_group_is_told_from_a_direct_chat(stage: Stage) -> None:
    pushed(stage)
    message = KitMessage("hello", sender=stage.kit.person(1), chat=stage.kit.chat(1, group=True), group=True)
    found = await stage.greeting(message)
    assert found.group, "a group was read as a direct chat, so its members would be as trusted"
    assert found.sender == stage.kit.person(1)


@scenario
async def test_the_message_id_is_the_platforms_and_tells_messages_apart(stage: Stage) -> None:
    pushed(stage)
    first = await stage.greeting(said(stage, message_id="message-1"))
    other = await stage.greeting(said(stage, message_id="message-2"))
    again = await stage.greeting(said(stage, message_id="message-1"))
    assert first.message_id == again.message_id, "a redelivery got another id, so it would run twice"
    assert first.message_id != other.message_id, "two messages got one id, so one would be lost"


@scenario
async def test_reading_is_pure(stage: Stage) -> None:
    channel, kit = pushed(stage)
    request = kit.push(said(stage))
    first = channel.read(request, stage.identity)
    other = stage.fresh()
    assert isinstance(other, Pushed)
    assert channel.read(request, stage.identity) == first, "one request was read in two ways"
    assert other.read(request, stage.identity) == first, "an adapter made anew reads it otherwise"


@scenario
async def test_items_can_be_stored_as_json(stage: Stage) -> None:
    pushed(stage)
    for text in TEXTS:
        found = await stage.greeting(said(stage, text))
        stored = json.loads(json.dumps({**asdict(found), "sent_at": None}))
        assert as_inbound(stored) == replace(found, sent_at=None), "an item changed by being stored"
        assert found.sent_at is None or found.sent_at.tzinfo is not None, "a time needs its zone"
        stage.keeps_quiet(json.dumps(stored), "a stored message")


def as_inbound(stored: dict[str, Any]) -> Inbound:
    files = [RemoteFile(**{**file, "kind": FileKind(file["kind"])}) for file in stored["files"]]
    return Inbound(**{**stored, "files": tuple(files)})


@scenario
async def test_a_forged_request_is_refused(stage: Stage) -> None:
    channel, kit = pushed(stage)
    forged = kit.forged(said(stage, "drop tables"))
    assert forged, "a kit needs forged requests"
    for number, request in enumerate(forged):
        answer = channel.read(request, stage.identity)
        assert isinstance(answer, Answer), f"forged request {number} was believed"
        assert 400 <= answer.status < 500, f"forged request {number} was answered with {answer.status}"
        stage.keeps_quiet(answer.body.decode(errors="replace"), "an answer")


@scenario
async def test_what_needs_no_turn_is_acknowledged_and_starts_none(stage: Stage) -> None:
    channel, kit = pushed(stage)
    for number, request in enumerate(kit.uninteresting()):
        read = channel.read(request, stage.identity)
        if isinstance(read, Reading):
            assert all(isinstance(item, Ignored) for item in read.items), (
                f"request {number} would start a turn"
            )
            read = channel.answer(read, [Claimed.IGNORED] * len(read.items))
        assert 200 <= read.status < 300, (
            f"request {number} would be sent again: it was answered {read.status}"
        )


@scenario
async def test_every_outcome_of_a_claim_has_an_answer(stage: Stage) -> None:
    channel, kit = pushed(stage)
    reading = channel.read(kit.push(said(stage)), stage.identity)
    assert isinstance(reading, Reading)
    for outcome in Claimed:
        answer = channel.answer(reading, [outcome] * len(reading.items))
        assert answer == channel.answer(reading, [outcome] * len(reading.items)), "answering is not pure"
        limit = 500 if outcome is Claimed.CONFLICT else 300
        assert 200 <= answer.status < limit, f"{outcome} was answered with {answer.status}"


@scenario
async def test_no_change_of_a_request_makes_reading_fail(stage: Stage) -> None:
    channel, kit = pushed(stage)
    request = kit.push(said(stage))

    @bounded
    @given(_body(request) | _headers(request) | _rest(request))
    def each_change(changed: Request) -> None:
        well_behaved(channel, changed, stage.identity)

    each_change()


@scenario
async def test_no_genuine_text_makes_reading_fail(stage: Stage) -> None:
    channel, kit = pushed(stage)

    @bounded
    @given(st.text(st.characters(codec="utf-8"), min_size=1, max_size=200))
    def each_text(text: str) -> None:
        well_behaved(channel, kit.push(said(stage, text)), stage.identity)

    each_text()


def well_behaved(channel: Pushed, request: Request, identity: Identity) -> None:
    read = channel.read(request, identity)  # whatever it raises fails the check
    if isinstance(read, Reading):
        read = channel.answer(read, [Claimed.ACCEPTED] * len(read.items))
    assert read.status < 500, f"a client's fault was answered with {read.status}"


def _body(request: Request) -> st.SearchStrategy[Request]:
    """Bytes cut out, put in, or replaced altogether."""
    size = len(request.body)

    def cut(where: tuple[int, int], put: bytes) -> bytes:
        first, last = sorted(where)
        return request.body[:first] + put + request.body[last:]

    at = st.integers(0, size)
    change: Callable[..., bytes] = cut
    bodies = st.builds(change, st.tuples(at, at), st.binary(max_size=8)) | st.binary(max_size=64)
    return bodies.map(lambda body: replace(request, body=body))


def _headers(request: Request) -> st.SearchStrategy[Request]:
    """One header changed, dropped or doubled."""
    names = sorted(set(request.headers)) or ["X-Any"]

    def changed(name: str, value: str, how: str) -> Request:
        headers = CIMultiDict(request.headers)
        if how == "doubled":
            headers.add(name, value)
        else:
            headers[name] = value
        if how == "dropped":
            del headers[name]
        return replace(request, headers=CIMultiDictProxy(headers))

    hows = st.sampled_from(["changed", "dropped", "doubled"])
    return st.builds(changed, st.sampled_from(names), st.text(max_size=20), hows)


def _rest(request: Request) -> st.SearchStrategy[Request]:
    methods = st.sampled_from(["GET", "PUT", "HEAD", "OPTIONS", "X"])
    paths = st.text(max_size=10).map(lambda text: f"/{text}")
    queries = st.dictionaries(st.text(max_size=5), st.text(max_size=5), max_size=2)
    return st.builds(lambda m, p, q: replace(request, method=m, path=p, query=q), methods, paths, queries)
