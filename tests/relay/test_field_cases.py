"""What broke comparable systems in the field, tried on a running account; the numbers name the cases."""

import asyncio
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from bridge.channel import FileKind, OutboundFile, OutboundPart, RemoteFile, UnreachableError
from bridge.channel.testing.clock import FakeClock, settle, until
from bridge.health import Health, Snapshot, State
from bridge.media.limits import MIB
from bridge.relay import outbox, received, turn
from bridge.relay.draft import draft
from bridge.relay.outbox import ReplyFile
from bridge.relay.texts import Language, Text, say
from bridge.store.contract import Claim, CountsOf, OpenParts, OutboxPart
from bridge.supervisor import Supervised
from tests.media.pictures import HEIC, HTML, animated, picture, png_header
from tests.relay.harness import (
    HOUR,
    MINUTE,
    NAME,
    OWNER,
    STRANGER,
    Desk,
    PushedChannel,
    desk,
    homes,
    message,
    put_under,
)
from tests.relay.scripted import Frame, Peer, answer
from tests.store.around import Around

FAILURE = say(Text.FAILURE, Language.EN)


async def endless(peer: Peer, start: Frame) -> None:
    await peer.turn("turn.started", start["request_id"])


# --- 11, 68: one message's failure is no other's ---------------------------------------------


async def test_case_11_a_failure_of_the_first_holds_up_neither_the_next_nor_another_chat() -> None:
    async def first_fails(peer: Peer, start: Frame) -> None:
        if start["prompt"] == "a1":
            await peer.turn("turn.failed", start["request_id"], code="provider_error", message="no")
        else:
            await answer(peer, start)

    async with desk(script={"turn": first_fails}) as here:
        for text, sender in (("a1", OWNER), ("a2", OWNER), ("a3", OWNER), ("b1", STRANGER)):
            await here.say(text, sender)
        said = await here.answered(4)
        assert [text for text in said if text != "echo: b1"] == [FAILURE, "echo: a2", "echo: a3"]


class Once:
    """Raises ``error`` at its first call, and is ``real`` from then on."""

    def __init__(self, real: Callable[..., Any], error: Exception) -> None:
        self._real, self._errors = real, [error]

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        if self._errors:
            raise self._errors.pop()
        return self._real(*args, **kwargs)


STEPS = [
    (received, "receive"),
    (turn, "nothing_left"),
    (turn, "prompt_of"),
    (turn, "content_of"),
    (outbox, "compose"),
]


@pytest.mark.parametrize(("module", "step"), STEPS, ids=[step for _, step in STEPS])
async def test_case_68_whichever_step_of_a_turn_raises_once_the_next_message_runs(
    module: Any, step: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(module, step, Once(getattr(module, step), RuntimeError("a bug")))
    async with desk(limits={"conversation_claims": 1, "turns": 1, "owner_turns": 0}) as here:
        await here.say("one")
        assert await here.answered(1) == [FAILURE]
        assert (await here.say("two")).body == b"accepted"  # its room is free again
        assert await here.answered(2) == [FAILURE, "echo: two"]  # and so is its slot
        assert (await here.store.get(CountsOf(NAME))).waiting == 0


async def test_case_68_a_claim_that_raises_once_leaves_no_mark_behind(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    calls: list[str] = []

    def second_raises(item: Any, **decided: Any) -> Any:
        calls.append(item.message_id)
        if len(calls) == 2:
            raise RuntimeError("a bug")
        return draft(item, **decided)

    monkeypatch.setattr("bridge.relay.claims.draft", second_raises)
    async with desk(limits={"conversation_claims": 1}) as here:
        with pytest.raises(RuntimeError):
            await here.push(message("m1", "one"), message("m2", "two", STRANGER))
        assert (await here.push(message("m1", "one"))).body == b"accepted"
        assert await here.answered(1) == ["echo: one"]


async def test_case_68_a_step_of_the_store_that_raises_once_is_made_up_for_by_the_next_run(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(outbox, "notice", Once(outbox.notice, RuntimeError("a bug in telling of a bug")))
    monkeypatch.setattr(turn, "prompt_of", Once(turn.prompt_of, RuntimeError("a bug")))
    async with homes() as home:
        clock = FakeClock()
        async with desk(home=home, clock=clock, run=False) as here:
            health = Health(Snapshot(NAME, "test", "a", State.STARTING, clock.now()), clock)
            async with asyncio.TaskGroup() as tasks:
                running = Supervised(here.account, health, clock, Longest(), tasks)
                running.start()
                await settle()
                await here.say("one")
                await until(lambda: health.snapshot.state is State.BACKOFF)
                await clock.advance(5)
                assert (await here.say("two")).body == b"accepted"
                assert (await here.answered(2))[-1] == "echo: two"
                await running.stop()


class Longest:
    """Waits are as long as they may be."""

    def uniform(self, low: float, high: float) -> float:
        return high


# --- 18, 55: an outage, a restart -------------------------------------------------------------

AGES = [*(n * MINUTE for n in (1, 5, 20, 50, 61)), *(n * HOUR for n in range(2, 7))]


async def test_case_18_of_ten_messages_after_an_outage_the_old_are_listed_and_none_of_them_runs() -> None:
    async with desk(limits={"account_claims": 20, "conversation_claims": 20}) as here:
        now = here.clock.now()
        texts = {age: "deploy now" if age == 3 * HOUR else f"text {age}" for age in AGES}
        aged = sorted(AGES, reverse=True)
        late = [message(f"m{n}", texts[age], sent_at=now - age) for n, age in enumerate(aged)]
        assert (await here.push(*late)).body == b",".join([b"accepted"] * 10)
        missed, *answers = await here.answered(5)
        for age in AGES:
            assert (texts[age] in missed) is (age > HOUR)
        prompts = [frame["prompt"] for frame in here.server.frames("turn.start")]
        assert len(prompts) == len(answers) == 4
        assert not any("deploy now" in prompt for prompt in prompts)
        for prompt, age in zip(prompts, (50 * MINUTE, 20 * MINUTE), strict=False):
            assert prompt == f"[Sent {now - age:%Y-%m-%d %H:%M} UTC]\n{texts[age]}"
        assert (await here.store.get(CountsOf(NAME))).waiting == 0


class Draining(Around):
    """A store whose next claim waits while the account stops around it."""

    def __init__(self, store: Any) -> None:
        super().__init__(store)
        self.gate = asyncio.Event()

    async def do(self, step: Any) -> Any:
        if isinstance(step, Claim):
            await self.gate.wait()
        return await self._store.do(step)


async def test_case_55_what_waits_and_what_comes_while_draining_runs_once_after_the_restart() -> None:
    ended = [
        ("assistant.completed", "m1", {"content": "the answer"}),
        ("turn.completed", "m1", {"steps": 1, "usage": {}}),
    ]
    async with homes() as home:
        clock = FakeClock()
        async with (
            desk(home=home, clock=clock, run=False, script={"turn": endless}) as before,
            asyncio.TaskGroup() as tasks,
        ):
            running = tasks.create_task(before.account.run(before.health))
            await settle()
            for n in range(1, 5):
                await before.say(f"text {n}")
            await until(lambda: len(before.server.frames("turn.start")) == 1)
            put_under(before, draining := Draining(before.store))
            pushing = tasks.create_task(before.push(message("m5", "text 5")))
            await settle()
            running.cancel()
            await settle()
            draining.gate.set()
            assert (await pushing).body == b"accepted"
        async with desk(home=home, clock=clock, script={"stored": {"s1": ended}}) as after:
            assert await after.answered(5) == ["the answer", *(f"echo: text {n}" for n in range(2, 6))]
            assert [frame["request_id"] for frame in after.server.frames("turn.start")] == [
                "m2", "m3", "m4", "m5",
            ]  # fmt: skip
        async with desk(home=home, clock=clock) as last:
            await settle()
            assert (last.channel.sent, last.server.frames("turn.start")) == ([], [])


# --- 47: what is not there yet is waited for --------------------------------------------------


class NotYet(PushedChannel):
    """Nothing can be sent before ``ready_at``, by the clock."""

    def __init__(self, clock: FakeClock, ready_at: float) -> None:
        super().__init__()
        self._clock, self._ready_at, self.tries = clock, ready_at, 0
        self.delivered: list[str] = []

    def _take(self, part: OutboundPart | OutboundFile) -> Any:
        self.tries += 1
        if self._clock.monotonic() < self._ready_at:
            raise UnreachableError("not connected yet")
        self.delivered.append(part.text if isinstance(part, OutboundPart) else part.path.read_text())
        return super()._take(part)


async def waiting_reply(here: Desk) -> Path:
    """A reply with a file in the outbox of an account that does not run."""
    (copy := here.home.outbox / "0a-report.txt").write_text("the report")
    await here.account.post(f"to-{OWNER}", "hello", [ReplyFile(str(copy), "report.txt", "text/plain", 10)])
    return copy


async def open_parts(here: Desk) -> list[OutboxPart]:
    return list(await here.store.get(OpenParts(NAME)))


async def test_case_47_a_platform_that_is_not_there_for_ten_seconds_costs_no_attempt_and_no_file() -> None:
    async with homes() as home:
        clock = FakeClock()
        async with desk(home=home, clock=clock, run=False) as before:
            copy = await waiting_reply(before)
        channel = NotYet(clock, clock.monotonic() + 10)
        async with desk(channel, home=home, clock=clock) as after:
            await clock.advance(9)
            assert channel.tries > 1
            assert [part.attempts for part in await open_parts(after)] == [0, 0]
            assert copy.read_text() == "the report"
            assert (await after.store.get(CountsOf(NAME))).dead == 0
            await clock.advance(30)  # one wait more at most
            await until(lambda: channel.delivered == ["hello", "the report"] and not copy.exists())
            await clock.advance(600)
            assert len(channel.sent) == 2
            assert await open_parts(after) == []


async def test_case_47_an_adapter_that_cannot_be_made_for_ten_seconds_costs_no_attempt_and_no_file() -> None:
    async with homes() as home:
        clock, channel = FakeClock(), PushedChannel()
        ready_at = clock.monotonic() + 10

        def create(settings: Any, credentials: Any, http: Any, place: Any) -> PushedChannel:
            if clock.monotonic() < ready_at:
                raise UnreachableError("the adapter is not ready")
            return channel

        async with desk(channel, home=home, clock=clock, run=False, spec={"create": create}) as here:
            copy = await waiting_reply(here)
            health = Health(Snapshot(NAME, "test", "a", State.STARTING, clock.now()), clock)
            async with asyncio.TaskGroup() as tasks:
                running = Supervised(here.account, health, clock, Longest(), tasks)
                running.start()
                await settle()
                await clock.advance(9)
                assert health.snapshot.state is State.BACKOFF
                assert [part.attempts for part in await open_parts(here)] == [0, 0]
                assert copy.read_text() == "the report"
                await clock.advance(20)
                await until(lambda: len(channel.sent) == 2 and not copy.exists())
                await running.stop()
            assert channel.texts() == ["hello"]
            assert await open_parts(here) == []


# --- 84: no picture spoils what comes after it ------------------------------------------------


@pytest.mark.parametrize(
    ("data", "size", "kind", "note"),
    [
        (b"\xff\xd8\xff\xe0" + bytes(60 * MIB), 60 * MIB, None, "larger than 50 MB"),
        (b"\xff\xd8\xff\xe0" + bytes(60 * MIB), 5, None, "larger than 50 MB"),
        (png_header(30_000, 30_000) + bytes(200_000), None, "file", ""),
        (picture("JPEG"), 2, "image", ""),
        (HEIC, None, "file", ""),
        (animated(), None, "image", ""),
        (picture("JPEG", mode="CMYK"), None, "image", ""),
        (b"", 0, "file", ""),
        (HTML, None, "file", ""),
    ],
    ids="60MB 60MB-said-to-be-5B bomb longer-than-said heic animated cmyk empty html".split(),
)
async def test_case_84_whatever_picture_comes_the_later_turns_are_as_ever(
    data: bytes, size: int | None, kind: str | None, note: str
) -> None:
    async with desk(settings={"remote_tools": "owner"}) as here:
        here.channel.files["k"] = data
        await here.say("see", files=(RemoteFile("k", FileKind.IMAGE, "photo.jpg", size=size),))
        await here.answered(1)
        await here.say("and now?")
        assert (await here.answered(2))[1] == "echo: and now?"
        first, second = here.server.frames("turn.start")
        assert [one["kind"] for one in first.get("attachments", [])] == ([kind] if kind else [])
        assert note in first["prompt"]
        assert not second.get("attachments")
        assert here.server.opened == 1
        if not kind:
            assert list((here.home.state / "media").rglob("*photo*")) == []
