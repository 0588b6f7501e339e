"""Replies that wait to be asked for, and files that the other side fetches from us."""

import asyncio
import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any, TypeVar

import pytest

from bridge.channel import Answer, Ask, FileWanted, OutboundPart, Request, WaitingPart
from bridge.channel.contract import FileAnswer
from bridge.channel.testing.clock import FakeClock, settle, until
from bridge.clock import unix_ms
from bridge.ids import ConversationKey
from bridge.relay.asked import expire
from bridge.relay.outbox import Address, ReplyFile, notice
from bridge.relay.texts import Language
from bridge.store.contract import (
    Bind,
    Collect,
    CountsOf,
    HeldTexts,
    OpenParts,
    PartsOf,
    Post,
    Query,
    Store,
)
from bridge.store.sqlite import open_store
from bridge.store.workers import InlineWorker
from tests.relay.harness import NAME, OWNER, Desk, PushedChannel, desk, homes, request, setup_for
from tests.relay.scripted import Frame, Peer
from tests.relay.test_conversation import key_of
from tests.store.around import Around

R = TypeVar("R")


class AskedChannel(PushedChannel):
    """Does not send: its replies are asked for. ``served`` is the name of the file that is asked for."""

    send: Any = None
    send_file: Any = None

    def __init__(self) -> None:
        super().__init__()
        self.served: FileWanted | Answer = Answer(410)

    def ask(self, request: Request) -> Ask | Answer:
        if "after" not in request.query:
            return Answer(400)
        after, wait = int(request.query["after"]), float(request.query.get("wait", "0"))
        return Ask(after, wait, request.query.get("to", ""))

    async def told(self, ask: Ask, waiting: Sequence[WaitingPart]) -> Answer:
        shown = [
            [one.cursor, one.part.text if isinstance(one.part, OutboundPart) else one.part.name]
            for one in waiting
        ]
        return Answer(200, json.dumps(shown).encode())

    def file(self, request: Request) -> FileWanted | Answer:
        return self.served


async def ask(here: Desk, after: int, wait: float = 0, **query: Any) -> list[tuple[int, str]]:
    answer = await here.account.handle(request(path="/replies", after=str(after), wait=str(wait), **query))
    assert isinstance(answer, Answer)
    return [(cursor, text) for cursor, text in json.loads(answer.body)]


async def counts(here: Desk) -> int:
    return (await here.store.get(CountsOf(NAME))).open_parts


async def answered(here: Desk) -> None:
    for _ in range(10_000):
        if await counts(here):
            return
        await asyncio.sleep(0)


async def test_asking_tells_what_waits_until_the_next_asking_settles_it() -> None:
    async with desk(AskedChannel()) as here:
        await here.say("hi")
        await answered(here)
        (first,) = await ask(here, 0)
        assert first[1] == "echo: hi"
        assert await ask(here, 0) == [first]
        assert await ask(here, first[0]) == []
        assert await counts(here) == 0


async def test_whoever_asks_for_one_recipient_neither_sees_nor_settles_what_waits_for_others() -> None:
    async with desk(AskedChannel()) as here:
        for to, text in (("a", "one"), ("b", "two"), ("a", "three")):
            await here.account.post(to, text, [])
        told = await ask(here, 0, to="b")
        assert [text for _, text in told] == ["two"]
        assert await ask(here, told[-1][0], to="b") == []
        assert [text for _, text in await ask(here, 0, to="a")] == ["one", "three"]
        assert await counts(here) == 2


async def test_what_waits_is_told_again_after_a_restart() -> None:
    async with homes() as home:
        clock = FakeClock()
        async with desk(AskedChannel(), home=home, clock=clock) as before:
            await before.say("hi")
            await answered(before)
        async with desk(AskedChannel(), home=home, clock=clock) as after:
            assert [text for _, text in await ask(after, 0)] == ["echo: hi"]


async def test_asking_with_a_wait_answers_as_soon_as_there_is_something() -> None:
    held = asyncio.Event()

    async def turn(peer: Peer, start: Frame) -> None:
        await held.wait()
        await peer.turn("assistant.completed", start["request_id"], content="late")
        await peer.turn("turn.completed", start["request_id"], steps=1, usage={})

    async with desk(AskedChannel(), script={"turn": turn}) as here, asyncio.TaskGroup() as tasks:
        await here.say("hi")
        asking = tasks.create_task(ask(here, 0, wait=20))
        await settle()
        assert not asking.done()
        held.set()
        await until(asking.done)
        assert [text for _, text in asking.result()] == ["late"]


async def test_asking_with_a_wait_ends_empty_when_nothing_comes() -> None:
    async with desk(AskedChannel()) as here:
        assert await ask(here, 0, wait=0.01) == []


async def test_whoever_waits_is_answered_at_once_when_the_run_ends_as_after_a_change_of_settings() -> None:
    async with asyncio.TaskGroup() as tasks:
        async with desk(AskedChannel()) as here:
            asking = [tasks.create_task(ask(here, 0, wait=20, to=to)) for to in ("a", "b")]
            await settle()
            assert not any(one.done() for one in asking)
        assert [one.done() and one.result() for one in asking] == [[], []]


async def test_what_is_stored_while_the_store_is_asked_is_not_waited_for_in_vain() -> None:
    async with desk(AskedChannel()) as here, asyncio.TaskGroup() as tasks:
        asking = tasks.create_task(ask(here, 0, wait=20))
        for text in ("one", "two"):
            await here.account.post("to", text, [])
        await until(asking.done)
        assert asking.result()[0][1] == "one"


async def test_a_wrong_asking_is_the_channel_s_to_refuse() -> None:
    async with desk(AskedChannel()) as here:
        answer = await here.account.handle(request(path="/replies"))
        assert answer == Answer(400)


async def test_an_asked_file_is_removed_once_it_was_received() -> None:
    async with desk(AskedChannel()) as here:
        (copy := here.home.outbox / "0-a.txt").write_text("abc")
        (kept := here.home.root / "other.txt").write_text("abc")
        for path in (copy, kept):
            await here.account.post("to", "", [ReplyFile(str(path), "a.txt", "text/plain", 3)])
        told = await ask(here, 0)
        assert [name for _, name in told] == ["a.txt", "a.txt"]
        assert await ask(here, told[-1][0]) == []
        await until(lambda: not copy.exists())
        await settle()
        assert kept.exists()  # only copies of ours are removed


async def test_what_nobody_asks_for_in_a_day_is_held() -> None:
    async with desk(AskedChannel()) as here:
        await here.say("hi")
        await answered(here)
        await here.clock.advance(86_300)
        assert await counts(here) == 1
        await here.clock.advance(200)
        assert await counts(here) == 0
        assert [held.text for held in await here.store.get(HeldTexts(NAME, key_of(OWNER)))] == ["echo: hi"]


async def test_all_of_a_long_reply_is_held_when_nobody_asks_for_it() -> None:
    async with desk(AskedChannel()) as here:
        words = " ".join(f"word{n}" for n in range(1000))
        await here.say(words)
        await answered(here)
        assert await counts(here) > 1
        await here.clock.advance(86_500)
        assert await counts(here) == 0
        (held,) = await here.store.get(HeldTexts(NAME, key_of(OWNER)))
        assert "".join(held.text.split()) == "".join(f"echo: {words}".split())


async def test_a_file_expires_without_a_text_to_hold() -> None:
    async with desk(AskedChannel()) as here:
        (copy := here.home.outbox / "0-a.txt").write_text("abc")
        await here.account.post("to", "", [ReplyFile(str(copy), "a.txt", "text/plain", 3)])
        await here.clock.advance(86_500)
        await until(lambda: not copy.exists())
        assert (await here.store.get(CountsOf(NAME))).held == 0


async def test_a_file_is_served_only_from_the_outbox() -> None:
    async with desk(AskedChannel()) as here:
        (copy := here.home.outbox / "0a1b-图.png").write_bytes(b"abc")
        here.channel.served = FileWanted(copy.name)
        served = await here.account.handle(request(path="/files/token"))
        assert served == FileAnswer(copy, "图.png", "application/octet-stream", 3)
        for name in ("../config.toml", "gone", "/etc/passwd", "."):
            here.channel.served = FileWanted(name)
            refused = await here.account.handle(request(path="/files/token"))
            assert isinstance(refused, Answer)
            assert refused.status == 410
        here.channel.served = Answer(404)
        assert await here.account.handle(request(path="/files/token")) == Answer(404)


class Emptied(Around):
    """A store from which a reply is gone by the time that it is read."""

    def __init__(self, store: Store) -> None:
        super().__init__(store)
        self.asked = 0

    async def get(self, query: Query[R]) -> R:
        if isinstance(query, PartsOf):
            self.asked += 1
            for part in await self._store.get(OpenParts(NAME)):
                await self._store.do(Collect(NAME, part.part_id, 0))
        return await self._store.get(query)


async def test_what_is_received_just_as_it_is_to_be_given_up_is_not_held(tmp_path: Path) -> None:
    async with homes() as home, open_store(tmp_path / "s.db", workers=InlineWorker) as file:
        clock, store, released, ended = FakeClock(), Emptied(file), list[str](), list[str]()
        setup = setup_for(home, store, clock, AskedChannel())
        await file.do(Bind(NAME, "x"))
        reply = notice("hi", Address(ConversationKey("c"), "to", "", Language.EN))
        await file.do(Post(NAME, reply, unix_ms(clock.now())))
        await clock.advance(90_000)
        async with asyncio.TaskGroup() as tasks:
            expiring = tasks.create_task(expire(setup, released.extend, ended.append))
            await until(lambda: bool(clock.waits()))
            expiring.cancel()
        assert (store.asked, ended) == (1, [])
        assert (await file.get(CountsOf(NAME))).held == 0


async def test_what_nobody_asked_for_in_time_is_logged_without_its_text(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    async with homes() as home, open_store(tmp_path / "s.db", workers=InlineWorker) as store:
        clock, ended = FakeClock(), list[str]()
        setup = setup_for(home, store, clock, AskedChannel())
        await store.do(Bind(NAME, "x"))
        reply = notice("hello", Address(ConversationKey("c"), "to", "", Language.EN))
        await store.do(Post(NAME, reply, unix_ms(clock.now())))
        await clock.advance(90_000)
        async with asyncio.TaskGroup() as tasks:
            expiring = tasks.create_task(expire(setup, lambda copies: None, ended.append))
            await until(lambda: bool(ended))
            expiring.cancel()
    (line,) = [line for line in capsys.readouterr().err.splitlines() if "delivery.given_up" in line]
    assert '"state": "expired", "reason": "nobody asked for it in time"' in line
    assert "hello" not in line
