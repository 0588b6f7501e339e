"""What bit other bridges to Official Accounts in public, each with its report: the input, and what is right.

A whole daemon stands before the fake platform, and both share one clock, which only the test moves.
"""

import json
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import TypeVar

import pytest

from bridge.channel import Answer, Delivered, Refused
from bridge.channel.testing.clock import FakeClock, until
from bridge.channel.testing.fakes.wechat_mp import ACCOUNT, OWNER, By, FakeWechatMp, Outcome, Push, Refusal
from bridge.channel.testing.fakes.wechat_mp.messages import write
from bridge.daemon import StoreWrap
from bridge.errors import StoreError
from bridge.paths import Home, write_private
from bridge.store.contract import Claim, Step, Store
from channels.wechat_mp import SPEC, OfficialAccountWithService
from channels.wechat_mp.requests import read_request
from tests.channels.wechat_mp.support import (
    SECURE,
    at,
    client,
    credentials,
    message,
    part,
    request,
    settings,
    signed,
)
from tests.daemons import daemon, short_home
from tests.store.around import Around

R = TypeVar("R")
HOLD, PATIENCE = 4.5, 5.0


class Live:
    """A daemon whose account is ``fake``'s."""

    def __init__(self, fake: FakeWechatMp, clock: FakeClock) -> None:
        self.fake, self.clock = fake, clock

    async def ask(self, seconds: float) -> Push:
        """What takes the agent ``seconds`` is asked: it has begun, and the request is held for the answer."""
        push = self.fake.say(f"slow {seconds}")
        await self.waits(seconds)
        await self.held()
        return push

    async def held(self) -> None:
        await self.waits(HOLD)

    async def waits(self, seconds: float) -> None:
        """Somebody waits so long from now."""
        await until(lambda: any(abs(wait - seconds) < 0.001 for wait in self.clock.waits()))

    async def cut(self, push: Push, count: int) -> None:
        """The platform's patience ends for the ``count``-th time, and it comes again."""
        await self.clock.advance(PATIENCE)
        await until(lambda: len(push.attempts) == count)
        await self.held()

    @property
    def texts(self) -> list[str]:
        return [shown.text for shown in self.fake.sent]

    async def shown(self, count: int = 1) -> list[str]:
        await until(lambda: len(self.fake.sent) >= count)
        return self.texts


@asynccontextmanager
async def live(*, service: bool, store_wrap: StoreWrap | None = None) -> AsyncIterator[Live]:
    clock = FakeClock()
    async with FakeWechatMp(clock=clock) as fake:
        fake.interface.service = service
        with short_home("") as home:
            _write(home, fake, service)
            async with daemon(home, clock, store_wrap) as running:
                fake.pusher.to = f"{running.address}/channels/wechat_mp/main"
                await until(lambda: "GET /cgi-bin/getcallbackip" in fake.requests)
                yield Live(fake, clock)


def _write(home: Home, fake: FakeWechatMp, service: bool) -> None:
    table = {
        "app_id": fake.account.app_id, "original_id": ACCOUNT, "base": fake.base, "owner": OWNER,
        "customer_service": service,
    }  # fmt: skip
    rows = "\n".join(f"{key} = {json.dumps(value)}" for key, value in table.items())
    write_private(home.config, f"[web]\nport = 0\n[channels.wechat_mp.main]\n{rows}\n".encode())
    path = home.credentials("wechat_mp", "main")
    home.private_dir(path.parent)
    known = fake.account
    secrets = {"app_secret": fake.app_secret, "token": known.token}
    write_private(path, json.dumps(secrets | {"encoding_aes_key": known.encoding_aes_key}).encode())


async def over(push: Push) -> None:
    await until(push.over.is_set)


def outcomes(push: Push) -> list[Outcome]:
    return [attempt.outcome for attempt in push.attempts]


async def test_a_slow_turn_runs_once_and_nobody_sees_a_failure_werobot_480_486_801_case_31() -> None:
    async with live(service=True) as here:
        push = await here.ask(20)
        await here.clock.advance(HOLD)
        await over(push)
        assert outcomes(push) == [Outcome.SILENT]
        again = here.fake.repeat(push)  # it comes again all the same
        await here.held()
        await here.clock.advance(HOLD)
        await over(again)
        await here.clock.advance(20)
        assert await here.shown() == ["That took 20 seconds."]
        assert [shown.by for shown in here.fake.world.shown] == [By.SERVICE]


async def test_without_customer_service_a_late_answer_is_fetched_by_writing_again_cowagent_1310() -> None:
    async with live(service=False) as here:
        push = await here.ask(20)
        await here.cut(push, 1)
        await here.cut(push, 2)
        await here.clock.advance(HOLD)
        await over(push)
        assert outcomes(push) == [Outcome.CUT, Outcome.CUT, Outcome.REPLY]
        assert here.texts == ["I am still working on this. Send 1 to get the answer."]
        await here.clock.advance(10)
        asking = here.fake.say("1")
        await over(asking)
        assert (await here.shown(2))[1:] == ["That took 20 seconds."]
        assert {shown.by for shown in here.fake.world.shown} == {By.REPLY}


async def test_the_third_attempt_brings_an_answer_of_up_to_14_seconds_bot_on_anything_170_225() -> None:
    async with live(service=False) as here:
        push = await here.ask(12)
        await here.cut(push, 1)
        await here.cut(push, 2)
        await here.clock.advance(3)
        await over(push)
        assert outcomes(push) == [Outcome.CUT, Outcome.CUT, Outcome.REPLY]
        assert here.texts == ["That took 12 seconds."]


async def test_what_was_said_in_the_response_is_not_sent_once_more_cowagent_2481() -> None:
    async with live(service=True) as here:
        push = here.fake.say("hello")
        await over(push)
        await here.clock.advance(60)
        assert here.texts == ["You said: hello"]
        assert "POST /cgi-bin/message/custom/send" not in here.fake.requests


def test_plaintext_is_no_way_around_the_seal_dify_wechat_plugin_35() -> None:
    refused = read_request(request(write("xml", message()), signed()), SECURE)
    assert isinstance(refused, Answer)
    assert refused.status == 403


@pytest.mark.parametrize("code", [-1, 40001, 40003, 45002, 45009, 45011, 45015, 45047, 48001, 99999])
async def test_a_send_that_failed_is_never_reported_as_delivered_qq_maid_bot_253(code: int) -> None:
    async with FakeWechatMp(clock=FakeClock()) as fake, client() as http:
        fake.say("hi")
        adapter = at(fake, http)
        assert isinstance(adapter, OfficialAccountWithService)
        fake.next(Refusal(code), Refusal(code))
        try:
            outcome = await adapter.send(part())
        except Exception:  # noqa: BLE001 - an error is no report of success
            return
        assert isinstance(outcome, Refused)


async def test_sender_and_recipient_of_a_reply_are_swapped_itchatmp_61() -> None:
    async with live(service=False) as here:
        push = here.fake.say("hello", sender=OWNER)
        await over(push)
        (shown,) = here.fake.world.shown  # the platform shows no other
        assert (shown.to, shown.text, shown.answers) == (OWNER, "You said: hello", push.message_id)


@pytest.mark.parametrize("service", [True, False])
async def test_silence_is_said_so_that_the_platform_does_not_come_again_co_wechat_6(service: bool) -> None:
    async with live(service=service) as here:
        for push in (here.fake.happen("VIEW"), here.fake.say("hi", sender="oStranger")):
            await over(push)
            assert outcomes(push) == [Outcome.SILENT]
        assert here.fake.world.shown == []


async def test_a_part_with_all_its_notes_has_at_most_2048_bytes_observer_77() -> None:
    async with FakeWechatMp() as fake, client() as http:
        fake.say("hi")
        adapter = SPEC.create(
            settings(fake), credentials(fake), http, here := at(fake, http)._contents._place
        )
        assert isinstance(adapter, OfficialAccountWithService)
        text = "界" * ((SPEC.text_limit.size + 150) // 3)
        assert await adapter.send(part(text)) == Delivered()
        assert len(fake.sent[0].text.encode()) in range(2040, 2049)
        assert here.address


class FailsOnce(Around):
    """A store whose first claim fails."""

    def __init__(self, store: Store) -> None:
        super().__init__(store)
        self._failed = False

    async def do(self, step: Step[R]) -> R:
        if isinstance(step, Claim) and step.messages and not self._failed:
            self._failed = True
            raise StoreError("the disk is full")
        return await self._store.do(step)


async def test_case_34_nothing_is_acknowledged_before_it_is_stored() -> None:
    async with live(service=True, store_wrap=FailsOnce) as here:
        push = here.fake.say("hello")
        await until(lambda: bool(push.attempts))
        assert (push.attempts[0].outcome, push.attempts[0].status) == (Outcome.REFUSED, 503)
        await here.clock.advance(PATIENCE)
        await over(push)
        assert here.texts == ["You said: hello"]


async def test_case_9_a_message_to_another_account_starts_nothing() -> None:
    async with live(service=True) as here:
        fields = {**message(), "ToUserName": "gh_another"}
        push = here.fake.repeat(Push("1", OWNER, fields))
        await until(lambda: bool(push.attempts))
        assert (push.attempts[0].outcome, push.attempts[0].status) == (Outcome.REFUSED, 403)
        assert here.texts == []


async def test_a_sixth_message_is_kept_and_goes_with_the_next_reply() -> None:
    async with live(service=True) as here:
        owner = here.fake.world.follower(OWNER)
        push = await here.ask(6)
        await here.clock.advance(HOLD)
        await over(push)
        owner.allowances.clear()
        await here.clock.advance(2)
        await until(lambda: here.fake.requests.count("POST /cgi-bin/message/custom/send") == 1)
        assert here.texts == []
        nxt = here.fake.say("hello")
        await over(nxt)
        (text,) = here.texts
        assert "That took 6 seconds." in text
        assert text.endswith("You said: hello")
