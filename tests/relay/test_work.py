from dataclasses import replace
from datetime import timedelta
from typing import Any, cast

from bridge.channel.testing.clock import FakeClock
from bridge.clock import unix_ms
from bridge.config import LimitsTable
from bridge.ids import ConversationKey, MessageId, SessionId
from bridge.relay.contact import PlatformClock
from bridge.relay.session import Authority
from bridge.relay.work import Work
from bridge.store.contract import MessageState, OpenMessage
from tests.relay.harness import Logs, message


def work(clock: FakeClock) -> Work:
    nothing: Any = None
    return Work(
        account=nothing, channel=nothing, spec=nothing, policy=nothing, authority=nothing, language="auto",
        limits=LimitsTable(stale_seconds=3600), caps=nothing, media=nothing, outbox_folder=nothing,
        server=nothing, store=nothing, clock=clock, slots=nothing, deliver=nothing, release=nothing,
        platform=PlatformClock(clock, Logs()), live=None, log=cast(Any, None),
    )  # fmt: skip


def test_the_owner_with_tools_has_an_agent_and_everybody_else_another() -> None:
    base = Authority(False, "Test", "/w", asks=True)
    given = replace(work(FakeClock()), authority=base, agent="coder", guest_agent="talker")
    assert given.authority_of(True) == replace(base, tools=True, agent="coder")
    assert given.authority_of(False) == replace(base, asks=False, agent="talker")


def stored(state: MessageState, received_ms: int) -> OpenMessage:
    return OpenMessage(MessageId("m1"), state, ConversationKey("c"), "", SessionId("s"), received_ms, 7)


def test_a_message_that_waited_too_long_is_only_reported() -> None:
    clock = FakeClock()
    now_ms = unix_ms(clock.now())
    new = work(clock).claimed(MessageId("m1"), message("m1"), now_ms, now_ms)
    assert (new.missed, new.revision, new.state) == (False, 0, MessageState.CLAIMED)
    old = work(clock).claimed(MessageId("m1"), message("m1"), now_ms - 3_700_000, now_ms)
    assert old.missed


def test_its_age_is_the_platform_s_where_that_told_it() -> None:
    clock = FakeClock()
    one, now_ms = work(clock), unix_ms(clock.now())
    sent = clock.now() - timedelta(hours=2)
    assert one.age_seconds(sent, now_ms, now_ms) == 7200
    one.platform.learn(clock.now() - timedelta(hours=1))
    assert one.age_seconds(sent, now_ms, now_ms) == 3600
    assert one.age_seconds(None, now_ms - 5000, now_ms) == 5


def test_a_stored_message_goes_on_as_it_was_left() -> None:
    clock = FakeClock()
    now_ms = unix_ms(clock.now())
    waiting = work(clock).taken_up(stored(MessageState.CLAIMED, now_ms), message("m1"))
    assert (waiting.state, waiting.session_id, waiting.revision) == (MessageState.CLAIMED, "", 7)
    running = work(clock).taken_up(stored(MessageState.RUNNING, now_ms - 10**9), message("m1"))
    assert (running.state, running.session_id, running.missed) == (MessageState.RUNNING, "s", False)
    assert replace(running, missed=True).missed
