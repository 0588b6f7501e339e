"""One account of a real adapter: its platform's fake, the way to it, who writes, and what its status says."""

from __future__ import annotations

import asyncio
import json
from collections import Counter
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass, field, replace
from random import Random
from typing import Any

import aiohttp

from bridge.channel import Answer, Http
from bridge.channel.contract import SentAnswer
from bridge.channel.testing.fakes.feishu import FakeFeishu
from bridge.channel.testing.fakes.wechat_mp import FakeWechatMp
from bridge.channel.testing.kit import KitMessage
from bridge.channel.testing.kits.feishu import FeishuKit
from bridge.channel.testing.kits.plainline import PlainlineKit
from bridge.channel.testing.kits.wechat_mp import WechatMpKit
from bridge.clock import Clock
from bridge.health import Snapshot, State
from bridge.ids import AccountId
from bridge.paths import Home
from bridge.plans import Served
from bridge.relay import contact, silence
from bridge.relay.account import Account
from bridge.relay.setup import Setup
from bridge.store.contract import CountsOf, Store
from bridge.supervisor import Plan, Supervisor
from channels.webhook import callback
from tests.faults.hooks import HookSystem
from tests.faults.wire import KEEPING_CONTACT, Trouble, Wire
from tests.relay.harness import setup_for
from tests.virtual import LoopClock, VirtualLoop

SEEN_SECONDS = {  # after the loss of contact, by which the status tells of it: docs/operating.md
    "feishu": contact.PROBE_SECONDS + contact.PROBE_TIMEOUT_SECONDS,
    "wechat_mp": contact.PROBE_SECONDS + contact.PROBE_TIMEOUT_SECONDS,
    "plainline": silence.RECEIVE_SECONDS,
    "webhook": callback.TIMEOUT_SECONDS,  # of a reply's first try: nothing else shows that it is lost
}
UNAUTHORIZED = {
    "feishu": (400, {"code": 99991663, "msg": "Invalid access token for authorization."}),
    "wechat_mp": (200, {"errcode": 40001, "errmsg": "invalid credential, access_token is invalid"}),
    "plainline": (401, {}),
    "webhook": (401, {}),
}
LOOK_SECONDS = 5.0
AGAIN_SECONDS = 30.0  # between a platform's pushes of what was not taken


def kit_of(channel: str, clock: Clock) -> Any:
    """Its platform's clock is ``clock``, which never jumps."""
    match channel:
        case "feishu":
            feishu = FeishuKit()
            feishu.fake = FakeFeishu(clock=clock)
            return feishu
        case "wechat_mp":
            wechat = WechatMpKit()
            wechat.fake = FakeWechatMp(clock=clock)
            wechat.fake.world.after_writing = (100_000, 10 * 86_400.0)
            return wechat
        case "webhook":
            return HookSystem(clock)
        case _:
            return PlainlineKit()


@dataclass
class Seat:
    channel: str
    kit: Any
    wire: Wire
    clock: LoopClock  # the account's: it may jump
    supervisor: Supervisor
    served: Served
    store: Store
    http: aiohttp.ClientSession
    rng: Random
    said: list[str] = field(default_factory=list)
    taken_at: dict[str, float] = field(default_factory=dict)  # what was pushed, since when it is known

    @property
    def snapshot(self) -> Snapshot:
        (snapshot,) = self.supervisor.snapshots()
        return snapshot

    @property
    def state(self) -> State:
        return self.snapshot.state

    def is_wrong(self, trouble: Trouble, began: float) -> bool:
        """Whether it is shown as connected although ``trouble`` lasts since ``began``, and must be known."""
        if self.state is not State.CONNECTED:
            return False
        known_by = self.clock.monotonic() - SEEN_SECONDS[self.channel] - LOOK_SECONDS
        if self.channel != "webhook":
            return trouble not in KEEPING_CONTACT and began < known_by
        since = max(began, self.wire.through_at)  # a reply that got through is contact, whichever waits
        tried = {text for text, at in self.taken_at.items() if since <= at < known_by}
        return trouble is not Trouble.BUSY and bool(tried & set(self.unanswered()))

    async def say(self, text: str) -> None:
        """A person writes; a platform that pushes does so until the message is taken."""
        self.said.append(text)
        kit = self.kit
        chat = kit.chat(len(self.said) if self.channel == "webhook" else 0)  # whose reply waits for no other
        message = KitMessage(text, kit.person(0), chat, message_id=f"om_{text.replace(' ', '_')}")
        if self.channel == "plainline":
            kit.arrive(message)
            return
        while not await self._taken(message):
            await asyncio.sleep(AGAIN_SECONDS)
        self.taken_at[text] = self.clock.monotonic()

    async def _taken(self, message: KitMessage) -> bool:
        request = replace(self.kit.push(message), received_at=self.clock.now())
        answer = await self.served.handle(request)
        if isinstance(answer, SentAnswer):
            answer.written(False)  # its client was gone: it is sent otherwise
            return True
        return isinstance(answer, Answer) and answer.status in (200, 202)

    async def given_up(self) -> int:
        """How many parts are dead letters: none where the platform knows client ids."""
        return (await self.store.get(CountsOf(self.snapshot.id))).dead

    def reported(self) -> int:
        """How many notices tell of a message that is not answered, such as one that came too late."""
        return sum("echo: " not in one.text for one in self.kit.sent())

    def forget_names(self) -> None:
        """What names stand for is kept for ten seconds, but by a clock that is not the loop's."""
        if isinstance(self.http.connector, aiohttp.TCPConnector):
            self.http.connector.clear_dns_cache()

    def answers(self) -> Counter[str]:
        """How often each message was answered, without such answers as are marked as repeats."""
        return Counter(one.text.removeprefix("echo: ") for one in self.kit.sent() if "echo: " in one.text[:6])

    def unanswered(self) -> list[str]:
        sent = [one.text for one in self.kit.sent()]
        return [text for text in self.said if not any(f"echo: {text}" in one for one in sent)]


@asynccontextmanager
async def seat(
    channel: str,
    home: Home,
    store: Store,
    http: aiohttp.ClientSession,
    loop: VirtualLoop,
    rng: Random,
    **settings: object,
) -> AsyncIterator[Seat]:
    """The account runs, and is left alone, until the block ends."""
    clock, name = LoopClock(loop), AccountId(f"{channel}:main")
    async with kit_of(channel, LoopClock(loop)) as kit, Wire(_port(kit), _unauthorized(channel)) as wire:
        setup = _setup(kit, wire, home, store, Http(http, clock=clock), clock, name, rng, settings)
        served = Served(Account(setup), setup)
        supervisor = Supervisor(clock, rng)
        first = Snapshot(name, channel, "main", State.STARTING, clock.now())
        async with supervisor.running():
            await supervisor.reconcile([Plan(first, 1, lambda: served)])
            yield Seat(channel, kit, wire, clock, supervisor, served, store, http, rng)


def _port(kit: Any) -> int:
    return int(kit.fake.base.rpartition(":")[2])


def _unauthorized(channel: str) -> bytes:
    status, told = UNAUTHORIZED[channel]
    body = json.dumps(told).encode()
    head = f"HTTP/1.1 {status} No\r\nContent-Type: application/json\r\nContent-Length: {len(body)}\r\n"
    return head.encode() + b"Connection: close\r\n\r\n" + body


def _reached(kit: Any, wire: Wire) -> dict[str, object]:
    """The settings that lead to the platform by way of ``wire``."""
    if isinstance(kit, HookSystem):
        return {"callback_url": f"{wire.base}/hook", "private_hosts": [wire.base.partition("//")[2]]}
    return {"base": wire.base}


def _setup(
    kit: Any, wire: Wire, home: Home, store: Any, http: Http, clock: Any, name: AccountId, rng: Random,
    settings: Mapping[str, object],
) -> Setup:  # fmt: skip
    reached = _reached(kit, wire)
    table = {**kit.settings, **reached, "owner": kit.person(0), "senders": "anyone", **settings}
    if "poll_seconds" in table:
        table["poll_seconds"] = 25
    base = setup_for(home, store, clock, kit)
    return replace(
        base,
        name=name,
        spec=kit.spec,
        settings=kit.spec.settings.model_validate(table),
        credentials=kit.spec.credentials.model_validate(kit.credentials),
        http=http,
        rng=rng,
    )
