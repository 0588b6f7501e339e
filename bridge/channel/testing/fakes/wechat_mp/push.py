"""Pushing to the account's address, and again while it gives no answer: three times, five seconds each."""

import asyncio
import secrets
from collections.abc import Awaitable, Callable, Coroutine
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Any, TypeVar
from urllib.parse import urlencode

import aiohttp

from bridge.channel.testing.fakes.wechat_mp.messages import Fields, write
from bridge.channel.testing.fakes.wechat_mp.replies import MalformedError, Secrets, read_reply
from bridge.channel.testing.fakes.wechat_mp.seal import seal, sign
from bridge.channel.testing.fakes.wechat_mp.world import By, Shown, World

R = TypeVar("R")

ANSWER_SECONDS = 5.0
ATTEMPTS = 3
OUT_OF_ORDER = "该公众号提供的服务出现故障，请稍后再试"
_ANSWER_BYTES = 1_048_576


class Outcome(StrEnum):
    SILENT = "silent"
    REPLY = "reply"
    MALFORMED = "malformed"
    REFUSED = "refused"  # another status than 200
    CUT = "cut"  # no answer in five seconds
    UNREACHED = "unreached"


@dataclass(frozen=True, slots=True)
class Attempt:
    """``status`` 0: none came. ``told`` is the start of the body, or what is wrong with it."""

    outcome: Outcome
    status: int = 0
    told: str = field(default="", repr=False)
    shown: Shown | None = None

    @property
    def is_over(self) -> bool:
        """Whether the platform takes this for an answer."""
        return self.outcome in (Outcome.SILENT, Outcome.REPLY, Outcome.MALFORMED)


@dataclass(slots=True)
class Push:
    """One message on its way."""

    message_id: str
    sender: str
    fields: Fields = field(repr=False)
    attempts: list[Attempt] = field(default_factory=list)
    over: asyncio.Event = field(default_factory=asyncio.Event, repr=False)

    @property
    def acknowledged(self) -> bool:
        return bool(self.attempts) and self.attempts[-1].outcome in (Outcome.SILENT, Outcome.REPLY)


class Pusher:
    """Pushes to ``to`` as the console's ``account`` says; ``told`` is called after each attempt.

    An attempt may take ``answer_seconds``, and the next begins ``again_seconds`` after it at the earliest.
    """

    def __init__(
        self,
        account: Secrets,
        to: str,
        world: World,
        told: Callable[[], Awaitable[None]],
        attempts: int = ATTEMPTS,
        answer_seconds: float = ANSWER_SECONDS,
        again_seconds: float = ANSWER_SECONDS,
    ) -> None:
        self.account = account
        self.to = to
        self.pushes: list[Push] = []
        self._world, self._told = world, told
        self._attempts, self._answer_seconds, self._again_seconds = attempts, answer_seconds, again_seconds

    def request(self, fields: Fields) -> tuple[dict[str, str], bytes]:
        """Query and body of one attempt: each is sealed and signed afresh."""
        account = self.account
        timestamp, nonce = str(self._world.now_seconds()), str(secrets.randbelow(10**9))
        query = {
            "signature": sign(account.token, timestamp, nonce),
            "timestamp": timestamp,
            "nonce": nonce,
            "openid": str(fields.get("FromUserName", "")),
        }
        if account.mode == "plaintext":
            return query, write(account.form, fields)
        sealed = seal(account.encoding_aes_key, account.app_id, write(account.form, fields))
        query |= {"encrypt_type": "aes", "msg_signature": sign(account.token, timestamp, nonce, sealed)}
        outer: Fields = {"ToUserName": fields["ToUserName"], "Encrypt": sealed}
        return query, write(account.form, fields | outer if account.mode == "compat" else outer)

    def check(self, echo: str) -> dict[str, str]:
        """The query by which the console checks the address."""
        timestamp, nonce = str(self._world.now_seconds()), str(secrets.randbelow(10**9))
        signed = sign(self.account.token, timestamp, nonce)
        return {"signature": signed, "timestamp": timestamp, "nonce": nonce, "echostr": echo}

    async def deliver(self, push: Push, session: aiohttp.ClientSession) -> None:
        """All attempts of one push; the chat then shows the answer, or that there is none."""
        self.pushes.append(push)
        try:
            await self._deliver(push, session)
        finally:
            push.over.set()

    async def _deliver(self, push: Push, session: aiohttp.ClientSession) -> None:
        clock = self._world.clock
        for _ in range(self._attempts):
            began = clock.monotonic()
            attempt = await self._attempt(push, session)
            push.attempts.append(attempt)
            if attempt.shown is not None:
                self._world.shown.append(attempt.shown)
            await self._told()
            if attempt.is_over:
                break
            await clock.sleep(self._again_seconds - (clock.monotonic() - began))
        if not push.acknowledged:
            self._world.shown.append(Shown(push.sender, By.NOTICE, "text", OUT_OF_ORDER))
            await self._told()

    async def _attempt(self, push: Push, session: aiohttp.ClientSession) -> Attempt:
        answered = await self._in_time(self._post(push, session))
        return Attempt(Outcome.CUT) if answered is None else answered

    async def _in_time(self, call: Coroutine[Any, Any, R]) -> R | None:
        """What ``call`` gives within the platform's patience, by its clock; None when it is cut off."""
        async with asyncio.TaskGroup() as tasks:
            calling = tasks.create_task(call)
            waiting = tasks.create_task(self._world.clock.sleep(self._answer_seconds))
            await asyncio.wait({calling, waiting}, return_when=asyncio.FIRST_COMPLETED)
            waiting.cancel()
            calling.cancel()
        return None if calling.cancelled() else calling.result()

    async def _post(self, push: Push, session: aiohttp.ClientSession) -> Attempt:
        query, body = self.request(push.fields)
        mime = "application/json" if self.account.form == "json" else "text/xml"
        address = f"{self.to}?{urlencode(query)}"
        try:
            async with session.post(address, data=body, headers={"Content-Type": mime}) as answer:
                raw = await answer.content.read(_ANSWER_BYTES)
                status = answer.status
        except (aiohttp.ClientError, OSError):
            return Attempt(Outcome.UNREACHED)
        told = raw[:200].decode(errors="replace")
        if status != 200:
            return Attempt(Outcome.REFUSED, status, told)
        try:
            shown = read_reply(raw, push.sender, push.message_id, self.account, self._world)
        except MalformedError as error:
            return Attempt(Outcome.MALFORMED, status, str(error))
        return Attempt(Outcome.REPLY if shown else Outcome.SILENT, status, told, shown)
