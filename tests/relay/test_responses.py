"""Replies in responses: which requests are held, for how long, and what becomes of each."""

import asyncio
from typing import Any

import pytest

from bridge.channel import (
    Answer,
    Claimed,
    CredentialsError,
    FileKind,
    OutboundPart,
    Refused,
    RemoteFile,
    UnreachableError,
)
from bridge.channel.contract import NoAnswer, SentAnswer
from bridge.channel.testing.clock import FakeClock, settle, until
from bridge.clock import unix_ms
from bridge.relay import responses
from bridge.relay.outbox import ReplyFile
from bridge.relay.texts import Language, Text, say
from bridge.store.contract import CountsOf, OpenParts, PartState
from tests.relay.harness import NAME, OWNER, STRANGER, Desk, desk, homes, message
from tests.relay.responding import HOLD, Platform, RespondingChannel, SilentChannel
from tests.relay.scripted import Frame, Peer, answer, cancellable
from tests.relay.test_changes import prompts, recall
from tests.relay.test_conversation import Held

LATER, MORE = say(Text.LATER, Language.EN), say(Text.MORE, Language.EN)
TO_EARLIER, NEXT = say(Text.TO_EARLIER, Language.EN), say(Text.NEXT, Language.EN)
REPEAT_MARK, BUSY = say(Text.REPEAT, Language.EN), say(Text.BUSY, Language.EN)
PLAIN = {"accepted", "duplicate", "busy", "ignored"}
ONE = "1"


async def long_answer(peer: Peer, start: Frame) -> None:
    """Three parts of 4000 characters, where the prompt wants it."""
    if start["prompt"] != "long":
        await answer(peer, start)
        return
    text = "\n".join(letter * 3999 for letter in "abc")
    await peer.turn("turn.started", start["request_id"])
    await peer.turn("assistant.completed", start["request_id"], content=text)
    await peer.turn("turn.completed", start["request_id"], steps=1, usage={})


async def open_parts(here: Desk) -> list[str]:
    return [part.body for part in await here.store.get(OpenParts(NAME))]


# --- a channel that has no other way out --------------------


async def test_an_answer_that_comes_in_time_rides_in_the_first_response() -> None:
    async with desk(SilentChannel()) as here:
        platform = Platform(here)
        assert await platform.attempt(message("m1", "hi")) == "echo: hi"
        await settle()
        counts = await here.store.get(CountsOf(NAME))
        assert (counts.open_parts, counts.dead, counts.held, counts.waiting) == (0, 0, 0, 0)
        assert set(here.health.told) == {"contact"}


async def test_case_31_a_slow_turn_is_told_of_at_the_last_attempt_and_fetched_by_a_one() -> None:
    held = Held()
    async with desk(SilentChannel(), script={"turn": held}) as here, asyncio.TaskGroup() as tasks:
        platform, one = Platform(here), message("m1", "hi")
        first = tasks.create_task(platform.attempt(one))
        await platform.held()
        await here.clock.advance(5)
        assert not first.done(), "it is held past the platform's own limit"
        second = tasks.create_task(platform.attempt(one))
        await until(first.done)
        await here.clock.advance(5)
        third = tasks.create_task(platform.attempt(one))
        await until(second.done)
        await here.clock.advance(HOLD)
        assert [await first, await second, await third] == ["-", "-", LATER]
        assert await platform.attempt(one) == LATER, "its repeat gets the same"
        asked = tasks.create_task(platform.attempt(message("m2", ONE)))
        await platform.held()
        held.let_go("hi")
        assert await asked == "echo: hi"
        assert platform.shown == [LATER, LATER, "echo: hi"]
        assert held.started == ["hi"], "a one is no turn"
        notice = here.channel.made[0]
        assert isinstance(notice, OutboundPart)
        assert (notice.notice, notice.to, notice.reply_to) == ("later", f"to-{OWNER}", "m1")
        assert here.health.told == ["contact", "contact"]


async def test_the_answer_rides_in_the_response_to_a_repeat() -> None:
    held = Held()
    async with desk(SilentChannel(), script={"turn": held}) as here, asyncio.TaskGroup() as tasks:
        platform, one = Platform(here), message("m1", "hi")
        first = tasks.create_task(platform.attempt(one))
        await platform.held()
        await here.clock.advance(5)
        second = tasks.create_task(platform.attempt(one))
        await until(first.done)
        held.let_go("hi")
        assert (await first, await second) == ("-", "echo: hi")


async def test_a_request_that_nobody_repeats_is_let_go_in_the_end() -> None:
    async with desk(SilentChannel(), script={"turn": Held()}) as here, asyncio.TaskGroup() as tasks:
        platform = Platform(here)
        first = tasks.create_task(platform.attempt(message("m1", "hi")))
        await platform.held()
        await here.clock.advance(HOLD + responses.LINGER_SECONDS - 0.1)
        assert not first.done()
        await here.clock.advance(0.2)
        assert await first == "-"


async def test_what_making_it_durable_took_is_part_of_the_hold() -> None:
    held = Held()
    async with desk(SilentChannel(), script={"turn": held}) as here, asyncio.TaskGroup() as tasks:
        run = here.account._run
        assert run is not None
        take = run.claims.take

        async def slowly(*args: Any) -> list[Claimed]:
            await here.clock.sleep(3)
            return await take(*args)

        run.claims.take = slowly  # type: ignore[method-assign, assignment]  # as on a slow disk
        platform = Platform(here)
        first = tasks.create_task(platform.attempt(message("m1", "hi")))
        await settle()
        await here.clock.advance(3)
        await platform.held()
        await here.clock.advance(HOLD - 3)
        held.let_go("hi")
        await here.clock.advance(responses.LINGER_SECONDS)
        assert await first == "-", "the platform has hung up: the answer waits for its repeat"


async def test_an_answer_whose_client_was_gone_goes_to_the_next_request() -> None:
    async with desk(SilentChannel()) as here:
        platform, one = Platform(here), message("m1", "hi")
        assert await platform.attempt(one, gone=True) == "gone"
        await settle()
        (part,) = await here.store.get(OpenParts(NAME))
        assert (part.state, part.attempts) == (PartState.PENDING, 0)
        assert await platform.attempt(one) == "echo: hi"
        assert platform.shown == ["echo: hi"]


async def test_a_repeat_within_half_a_minute_gets_the_same_bytes_and_later_ones_nothing() -> None:
    async with desk(SilentChannel()) as here:
        platform, one = Platform(here), message("m1", "hi")
        for _ in range(2):
            assert await platform.attempt(one) == "echo: hi"
        await here.clock.advance(31)
        assert await platform.attempt(one) == "duplicate"
        assert len(here.channel.made) == 1


async def test_what_waits_behind_a_part_is_told_of_and_fetched_one_by_one() -> None:
    async with desk(SilentChannel(), script={"turn": long_answer}) as here:
        platform = Platform(here)
        assert await platform.attempt(message("m1", "long")) == "a" * 3999 + f"\n{MORE}"
        assert await platform.attempt(message("m2", ONE)) == "b" * 3999 + f"\n{MORE}"
        assert await platform.attempt(message("m2", ONE)) == "b" * 3999 + f"\n{MORE}", "a repeat of it"
        assert await platform.attempt(message("m3", " １ ")) == "c" * 3999
        await settle()
        assert prompts(here) == ["long"]
        assert await platform.attempt(message("m4", ONE)) == "echo: 1", "nothing waits: it is a turn"


async def test_any_other_message_runs_and_its_response_carries_what_waits() -> None:
    async with desk(SilentChannel(), script={"turn": long_answer}) as here:
        platform = Platform(here)
        await platform.attempt(message("m1", "long"))
        with_file = message("m2", ONE, files=(RemoteFile("k", FileKind.FILE, "a", fetchable=False),))
        assert await platform.attempt(with_file) == f"{TO_EARLIER}\n{'b' * 3999}\n{NEXT}"
        await until(lambda: len(prompts(here)) == 2)
        assert (await platform.attempt(message("m3", ONE))).startswith("ccc")
        assert (await platform.attempt(message("m4", ONE))).startswith("echo: 1")


async def test_case_31_answers_that_come_one_message_late_say_so() -> None:
    held = Held()
    async with desk(SilentChannel(), script={"turn": held}) as here, asyncio.TaskGroup() as tasks:
        platform = Platform(here)
        attempts = []
        for _ in range(3):
            attempts.append(tasks.create_task(platform.attempt(message("m1", "slow"))))
            await platform.held()
            await here.clock.advance(5)
        assert [await one for one in attempts] == ["-", "-", LATER]
        second = tasks.create_task(platform.attempt(message("m2", "hello")))
        await platform.held()
        held.let_go("slow")
        assert await second == f"{TO_EARLIER}\necho: slow\n{NEXT}"
        third = tasks.create_task(platform.attempt(message("m3", "how are you")))
        await platform.held()
        held.let_go("hello")
        assert await third == f"{TO_EARLIER}\necho: hello\n{NEXT}"
        held.let_go("how are you")
        assert await platform.attempt(message("m4", ONE)) == "echo: how are you"


async def test_a_one_whose_answer_does_not_come_is_told_to_wait_as_well() -> None:
    async with desk(SilentChannel(), script={"turn": Held()}) as here, asyncio.TaskGroup() as tasks:
        platform, asking = Platform(here), message("m2", ONE)
        first = tasks.create_task(platform.attempt(message("m1", "hi")))
        await platform.held()
        attempts = []
        for _ in range(3):
            attempts.append(tasks.create_task(platform.attempt(asking)))
            await platform.held(2)
            await here.clock.advance(5)
        assert [await one for one in attempts] == ["-", "-", LATER]
        await here.clock.advance(20)
        assert await first == "-"


async def test_a_busy_notice_rides_in_the_response_it_is_about() -> None:
    limits = {"conversation_claims": 1}
    async with desk(SilentChannel(), script={"turn": Held()}, limits=limits) as here:
        async with asyncio.TaskGroup() as tasks:
            platform = Platform(here)
            waiting = tasks.create_task(platform.attempt(message("m1", "hi")))
            await platform.held()
            assert await platform.attempt(message("m2", "more")) == BUSY
            await here.clock.advance(20)
            assert await waiting == "-"


async def test_a_notice_rides_in_the_response_too() -> None:
    async with desk(SilentChannel()) as here:
        voice = message("m1", "", files=(RemoteFile("k", FileKind.AUDIO),))
        assert await Platform(here).attempt(voice) == say(Text.VOICE, Language.EN)
        made = here.channel.made[0]
        assert made.notice == "voice"


async def test_who_is_not_answered_is_not_kept_waiting() -> None:
    async with desk(SilentChannel(), settings={"senders": "owner"}) as here:
        platform = Platform(here)
        for _ in range(2):
            assert await platform.attempt(message("m1", "hi", STRANGER)) in PLAIN
        assert await platform.attempt(message("m2", ONE, STRANGER)) in PLAIN


async def test_a_recalled_message_is_let_go_without_a_word() -> None:
    async with desk(SilentChannel(), script={"turn": cancellable}) as here, asyncio.TaskGroup() as tasks:
        platform, one = Platform(here), message("m1", "long")
        first = tasks.create_task(platform.attempt(one))
        await platform.held()
        await here.clock.advance(11)
        second = tasks.create_task(platform.attempt(one))
        await until(first.done)
        await platform.held()
        assert await recall(here, "m1") == b"accepted"
        await settle()
        await here.clock.advance(HOLD)
        assert (await first, await second) == ("-", "duplicate")


async def test_other_requests_are_answered_while_one_is_held() -> None:
    held = Held()
    async with desk(SilentChannel(), script={"turn": held}) as here, asyncio.TaskGroup() as tasks:
        platform = Platform(here)
        waiting = tasks.create_task(platform.attempt(message("m1", "slow")))
        await platform.held()
        held.let_go("quick")
        assert await platform.attempt(message("m2", "quick", STRANGER)) == "echo: quick"
        held.let_go("slow")
        assert await waiting == "echo: slow"


async def test_over_a_restart_the_repeat_is_held_as_well() -> None:
    async with homes() as home:
        clock, one = FakeClock(), message("m1", "hi")
        async with desk(SilentChannel(), home=home, clock=clock, script={"turn": Held()}) as before:
            async with asyncio.TaskGroup() as tasks:
                platform = Platform(before)
                first = tasks.create_task(platform.serve(one))
                await platform.held()
                await until(lambda: prompts(before) == ["hi"])
                before.run.responses.close()  # type: ignore[union-attr]  # as the run's end does
                assert isinstance(await first, NoAnswer)
        async with desk(SilentChannel(), home=home, clock=clock) as after:
            assert await Platform(after).attempt(one) == say(Text.INTERRUPTED, Language.EN)


@pytest.mark.parametrize(("age", "told"), [(500.0, LATER), (11.0, LATER), (3.0, "-"), (-3600.0, "-")])
async def test_a_message_from_before_a_restart_is_as_old_as_it_is(age: float, told: str) -> None:
    """The wall clock may have been set back meanwhile: then it counts as new."""
    async with homes() as home:
        clock, one = FakeClock(), message("m1", "hi")
        async with desk(SilentChannel(), home=home, clock=clock) as before:
            before.run.work.slots._free = 0  # so that no turn starts
            await before.run.claims.take([one], unix_ms(clock.now()))
        clock.jump(age)
        async with desk(SilentChannel(), home=home, clock=clock, script={"turn": Held()}) as after:
            async with asyncio.TaskGroup() as tasks:
                platform = Platform(after)
                attempt = tasks.create_task(platform.attempt(one))
                await platform.held()
                await clock.advance(HOLD + 20)
                assert await attempt == told


async def test_what_nobody_fetched_within_a_day_is_a_dead_letter_and_asked_for_no_more() -> None:
    async with desk(SilentChannel(), script={"turn": long_answer}) as here:
        platform = Platform(here)
        await platform.attempt(message("m1", "long"))
        await here.clock.advance(86_400 + 120)
        counts = await here.store.get(CountsOf(NAME))
        assert (counts.open_parts, counts.dead, counts.held) == (0, 1, 1)
        assert say(Text.EARLIER, Language.EN) in await platform.attempt(message("m2", ONE))
        assert prompts(here) == ["long", "1"], "a turn like any other: its reply brings what was missed"
        assert "contact" in here.health.told
        assert not [told for told in here.health.told if told != "contact"]


async def test_a_message_posted_by_the_operator_waits_for_its_reader() -> None:
    async with desk(SilentChannel()) as here:
        (copy := here.home.outbox / "0-a.txt").write_text("abc")
        await here.account.post(f"to-{OWNER}", "news", [ReplyFile(str(copy), "a.txt", "text/plain", 3)])
        await here.clock.advance(3600)
        platform = Platform(here)
        assert await platform.attempt(message("m1", ONE)) == f"news\n{MORE}"
        assert await platform.attempt(message("m2", ONE)) == "a.txt"
        await until(lambda: not copy.exists())


# --- what a response may meet --------------------


async def test_a_response_that_cannot_be_made_now_is_made_for_the_repeat() -> None:
    async with desk(SilentChannel()) as here, asyncio.TaskGroup() as tasks:
        platform, one = Platform(here), message("m1", "hi")
        here.channel.troubles = [UnreachableError("the upload failed")]
        first = tasks.create_task(platform.attempt(one))
        await until(lambda: len(here.channel.made) == 1)
        await here.clock.advance(5)
        assert not first.done()
        assert await platform.attempt(one) == "echo: hi"
        assert await first == "-"
        assert "sending fails; it is tried again" in here.health.told


async def test_a_bug_in_making_a_response_sends_nothing_and_is_tried_again() -> None:
    async with desk(SilentChannel()) as here, asyncio.TaskGroup() as tasks:
        platform, one = Platform(here), message("m1", "hi")
        here.channel.troubles = [ZeroDivisionError()]
        first = tasks.create_task(platform.attempt(one))
        await until(lambda: len(here.channel.made) == 1)
        assert await platform.attempt(one) == "echo: hi", "without a mark"
        await here.clock.advance(20)
        assert await first == "-"


async def test_a_text_that_is_refused_is_held_and_its_request_carries_the_next() -> None:
    async with desk(SilentChannel()) as here:
        platform = Platform(here)
        await here.account.post(f"to-{OWNER}", "bad", ())
        here.channel.troubles = [Refused("no")]
        assert await platform.attempt(message("m1", "hi")) == "echo: hi"
        assert (await here.store.get(CountsOf(NAME))).dead == 1


async def test_a_file_that_is_refused_is_told_of_in_its_place() -> None:
    async with desk(SilentChannel()) as here:
        (copy := here.home.outbox / "0-a.txt").write_text("abc")
        await here.account.post(f"to-{OWNER}", "", [ReplyFile(str(copy), "a.txt", "text/plain", 3)])
        here.channel.troubles = [Refused("no such files")]
        told = await Platform(here).attempt(message("m1", ONE))
        assert told == say(Text.FILE_REFUSED, Language.EN, name="a.txt")
        assert here.channel.made[-1].notice == "file_refused"


async def test_refused_credentials_end_the_run_and_the_request() -> None:
    async with desk(SilentChannel(), run=False) as here, asyncio.TaskGroup() as tasks:
        running = tasks.create_task(ended_by(here, CredentialsError))
        await until(lambda: here.account._run is not None)
        here.channel.troubles = [CredentialsError("revoked")]
        assert await Platform(here).attempt(message("m1", "hi")) == "-"
        await running
        (part,) = await here.store.get(OpenParts(NAME))
        assert part.state is PartState.PENDING


async def ended_by(here: Desk, kind: type[Exception]) -> None:
    with pytest.raises(ExceptionGroup) as ended:
        await here.account.run(here.health)
    assert ended.group_contains(kind)


@pytest.mark.parametrize(("setting", "told"), [("resend", f"{REPEAT_MARK}\necho: hi"), ("hold", "echo: 1")])
async def test_what_a_crash_left_on_its_way_is_marked_or_held(setting: str, told: str) -> None:
    async with homes() as home:
        clock, settings = FakeClock(), {"unknown_outcome": setting}
        spec = {"idempotent_seconds": 0}
        async with desk(SilentChannel(), home=home, clock=clock) as before:
            assert isinstance(await Platform(before).serve(message("m1", "hi")), SentAnswer)
        async with desk(SilentChannel(), home=home, clock=clock, settings=settings, spec=spec) as after:
            shown = await Platform(after).attempt(message("m2", ONE))
            assert told in shown


async def test_a_response_whose_writing_broke_off_is_unknown() -> None:
    async with desk(SilentChannel(), spec={"idempotent_seconds": 0}) as here:
        platform = Platform(here)
        served = await platform.serve(message("m1", "hi"))
        assert isinstance(served, SentAnswer)
        served.written(None)
        await settle()
        await here.clock.advance(2)
        assert await platform.attempt(message("m2", ONE)) == f"{REPEAT_MARK}\necho: hi"


async def test_a_response_that_is_being_made_as_the_time_is_up_is_waited_for() -> None:
    async with desk(SilentChannel()) as here, asyncio.TaskGroup() as tasks:
        platform, gate = Platform(here), asyncio.Event()
        here.channel.troubles = [gate]
        attempt = tasks.create_task(platform.attempt(message("m1", "hi")))
        await until(lambda: len(here.channel.made) == 1)
        await here.clock.advance(30)
        gate.set()
        assert await attempt == "echo: hi"


async def test_a_request_that_is_cancelled_while_its_response_is_made_has_taken_nothing() -> None:
    async with desk(SilentChannel()) as here, asyncio.TaskGroup() as tasks:
        platform, gate, one = Platform(here), asyncio.Event(), message("m1", "hi")
        here.channel.troubles = [gate]
        attempt = tasks.create_task(platform.attempt(one))
        await until(lambda: len(here.channel.made) == 1)
        attempt.cancel()
        await settle()
        gate.set()
        await settle()
        assert await platform.attempt(one) == "echo: hi"


async def test_a_notice_that_cannot_be_made_leaves_the_plain_answer() -> None:
    for trouble in (UnreachableError("down"), Refused("no"), ZeroDivisionError()):
        async with desk(SilentChannel(), script={"turn": Held()}) as here, asyncio.TaskGroup() as tasks:
            platform, one = Platform(here), message("m1", "hi")
            first = tasks.create_task(platform.attempt(one))
            await platform.held()
            await here.clock.advance(11)
            here.channel.troubles = [trouble]
            second = tasks.create_task(platform.attempt(one))
            await until(first.done)
            await here.clock.advance(HOLD)
            assert await second == "duplicate"


# --- the end of a run, and bounds --------------------


@pytest.mark.parametrize(("channel", "expected"), [(SilentChannel, "-"), (RespondingChannel, "accepted")])
async def test_the_end_of_a_run_ends_every_hold_at_once(channel: Any, expected: str) -> None:
    async with desk(channel(), script={"turn": Held()}, run=False) as here, asyncio.TaskGroup() as tasks:
        running = tasks.create_task(here.account.run(here.health))
        await until(lambda: here.account._run is not None)
        platform, run = Platform(here), here.account._run
        holding = tasks.create_task(platform.attempt(message("m1", "hi")))
        await platform.held()
        running.cancel()
        assert await holding == expected
        assert run is not None
        assert run.responses is not None
        assert run.responses._held == {}


async def test_only_so_many_requests_are_held(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(responses, "MOST_HELD", 1)
    monkeypatch.setattr(responses, "MOST_KNOWN", 1)
    async with desk(SilentChannel(), script={"turn": Held()}) as here, asyncio.TaskGroup() as tasks:
        platform = Platform(here)
        first = tasks.create_task(platform.attempt(message("m1", "hi")))
        await platform.held()
        assert await platform.attempt(message("m2", "hi", STRANGER)) == LATER, "its user knows how to get it"
        assert await platform.attempt(message("m2", "hi", STRANGER)) == LATER
        again = tasks.create_task(platform.attempt(message("m1", "hi")))
        await until(first.done)
        assert not again.done(), "a repeat takes the place of what is held for it"
        await here.clock.advance(20)
        assert (await first, await again) == ("-", "-")
        last = tasks.create_task(platform.attempt(message("m3", "hi", "another")))
        await platform.held()
        run = here.account._run
        assert run is not None
        assert run.responses is not None
        assert list(run.responses._known) == ["m3"]
        await here.clock.advance(20)
        assert await last == "-"


async def test_where_answers_are_sent_a_request_too_many_has_its_plain_answer(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(responses, "MOST_HELD", 0)
    async with desk(RespondingChannel(), script={"turn": Held()}) as here:
        assert await Platform(here).attempt(message("m1", "hi")) == "accepted"


@pytest.mark.parametrize(("channel", "expected"), [(SilentChannel, "-"), (RespondingChannel, "accepted")])
async def test_a_request_that_is_claimed_as_the_run_ends_comes_again(channel: Any, expected: str) -> None:
    async with desk(channel(), script={"turn": Held()}) as here:
        run = here.account._run
        assert run is not None
        assert run.responses is not None
        run.responses.close()
        assert await Platform(here).attempt(message("m1", "hi")) == expected


async def test_what_is_over_for_long_is_not_remembered() -> None:
    async with desk(SilentChannel()) as here:
        platform = Platform(here)
        await platform.attempt(message("m1", "hi"))
        await here.clock.advance(responses.KNOWN_SECONDS + 1)
        await platform.attempt(message("m2", "ho"))
        run = here.account._run
        assert run is not None
        assert run.responses is not None
        assert list(run.responses._known) == ["m2"]


async def test_a_push_without_a_message_has_its_plain_answer() -> None:
    async with desk(SilentChannel()) as here:
        assert (await here.push()).body == b""


# --- a channel that sends as well --------------------


async def test_in_time_the_response_is_used_and_past_it_the_answer_is_sent() -> None:
    held = Held()
    async with desk(RespondingChannel(), script={"turn": held}) as here, asyncio.TaskGroup() as tasks:
        platform = Platform(here)
        held.let_go("quick")
        assert await platform.attempt(message("m1", "quick")) == "echo: quick"
        slow = tasks.create_task(platform.attempt(message("m2", "slow")))
        await platform.held()
        await here.clock.advance(HOLD)
        assert await slow == "accepted"
        held.let_go("slow")
        assert await here.answered(1) == ["echo: slow"]
        assert len(here.channel.made) == 1


async def test_of_a_long_answer_the_first_part_rides_and_the_others_are_sent() -> None:
    async with desk(RespondingChannel(), script={"turn": long_answer}) as here:
        assert await Platform(here).attempt(message("m1", "long")) == "a" * 3999 + "\n"
        assert [text[0] for text in await here.answered(2)] == ["b", "c"]


async def test_what_could_not_be_sent_rides_in_the_next_response() -> None:
    async with desk(RespondingChannel()) as here:
        here.channel.outcomes = [UnreachableError("too many this hour", retry_after_seconds=3000)]
        await here.account.post(f"to-{OWNER}", "news", ())
        assert await here.answered(1) == ["news"]
        assert await Platform(here).attempt(message("m1", "hi")) == "news"
        assert await here.answered(2) == ["news", "echo: hi"]


async def test_what_a_response_could_not_take_is_sent() -> None:
    async with desk(RespondingChannel()) as here:
        platform = Platform(here)
        assert await platform.attempt(message("m1", "hi"), gone=True) == "gone"
        assert await here.answered(1) == ["echo: hi"]
        here.channel.troubles = [UnreachableError("the upload failed")]
        assert await platform.attempt(message("m2", "ho")) == "accepted"
        await here.clock.advance(2)
        assert await here.answered(2) == ["echo: hi", "echo: ho"]


async def test_where_answers_are_sent_a_one_is_a_message_like_any_other() -> None:
    async with desk(RespondingChannel(), script={"turn": Held()}) as here, asyncio.TaskGroup() as tasks:
        platform = Platform(here)
        attempts = [tasks.create_task(platform.attempt(message(f"m{n}", ONE))) for n in range(2)]
        await platform.held(2)
        await here.clock.advance(HOLD)
        assert [await one for one in attempts] == ["accepted", "accepted"]


async def test_without_a_hold_the_plain_answer_comes_at_once() -> None:
    class AtOnce(RespondingChannel):
        hold_seconds = 0.0

    async with desk(AtOnce()) as here:
        assert await Platform(here).attempt(message("m1", "hi")) == "accepted"
        assert await here.answered(1) == ["echo: hi"]


async def test_the_response_of_the_very_message_is_preferred() -> None:
    held = Held()
    async with desk(SilentChannel(), script={"turn": held}) as here, asyncio.TaskGroup() as tasks:
        platform = Platform(here)
        first = tasks.create_task(platform.attempt(message("m1", "one")))
        await platform.held()
        second = tasks.create_task(platform.attempt(message("m2", "two")))
        await platform.held(2)
        held.let_go("one")
        held.let_go("two")
        assert (await first, await second) == ("echo: one", "echo: two")


def test_what_a_response_is_remembered_for() -> None:
    known = responses.Known(0.0)
    assert not known.is_fresh(0.0)
    known.answer, known.given_at = Answer(200), 5.0
    assert known.is_fresh(34.9)
    assert not known.is_fresh(35.0)
