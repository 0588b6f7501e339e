"""Signing in by a scan, against a platform that speaks the device flow."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from typing import Any

import aiohttp
import pytest

from bridge.channel import ChannelError, Http, Scan, SignedIn
from bridge.channel.http import http_session
from bridge.channel.testing.clock import FakeClock, until
from bridge.channel.testing.fakes.feishu.registration import FakeRegistration
from channels.feishu import signin
from channels.feishu.signin import MOST_CODES, sign_in


@dataclass
class SigningIn:
    """A sign-in under way: the codes that were shown, and how it ended."""

    fake: FakeRegistration
    clock: FakeClock
    scans: list[Scan] = field(default_factory=list)
    end: SignedIn | None = None
    error: str = ""

    async def follow(self, http: Http) -> None:
        try:
            async for step in sign_in({"accounts_base": self.fake.base}, http):
                if isinstance(step, Scan):
                    self.scans.append(step)
                else:
                    self.end = step
        except ChannelError as error:
            self.error = str(error)

    @property
    def is_over(self) -> bool:
        return self.end is not None or bool(self.error)

    def polls(self) -> int:
        return sum(form.get("action") == "poll" for form in self.fake.forms)

    async def pass_seconds(self, seconds: float) -> None:
        """Let a wait between two looks pass, and the next look happen."""
        await until(lambda: bool(self.clock.waits()))
        before = self.polls()
        await self.clock.advance(seconds)
        await until(lambda: self.polls() > before or self.is_over)


@asynccontextmanager
async def signing_in(fake: FakeRegistration | None = None) -> AsyncIterator[SigningIn]:
    async with fake or FakeRegistration() as fake, http_session() as session:
        run = SigningIn(fake, FakeClock())
        async with asyncio.TaskGroup() as tasks:
            task = tasks.create_task(run.follow(Http(session, clock=run.clock)))
            yield run
            task.cancel()


async def test_whoever_scans_is_the_owner_of_a_new_app() -> None:
    async with signing_in() as run:
        await until(lambda: bool(run.clock.waits()))
        assert run.fake.forms[:2] == [
            {"action": "init"},
            {
                "action": "begin",
                "archetype": "PersonalAgent",
                "auth_method": "client_secret",
                "request_user_info": "open_id tenant_brand",
            },
        ]
        (scan,) = run.scans
        assert scan == Scan(f"{run.fake.base}/verify/{run.fake.codes[0].code}", 600)
        assert run.fake.codes[0].code not in repr(scan)
        run.fake.scan("ou_me")
        await run.pass_seconds(5)
        await until(lambda: run.is_over)
    assert run.end is not None
    assert run.end == SignedIn(
        {"app_id": "cli_scanned0001", "owner": "ou_me"}, {"app_secret": "scanned-app-secret"}
    )
    assert "scanned-app-secret" not in repr(run.end)


async def test_an_expired_code_is_renewed_and_in_the_end_it_is_given_up() -> None:
    async with signing_in() as run:
        for _ in range(MOST_CODES):
            await until(lambda: len(run.scans) == len(run.fake.codes) and bool(run.clock.waits()))
            run.fake.expire()
            await run.pass_seconds(5)
        await until(lambda: run.is_over)
    assert len({scan.address for scan in run.scans}) == MOST_CODES
    assert "nobody scanned the code in time" in run.error


async def test_a_code_that_ran_out_by_the_clock_is_renewed_too() -> None:
    async with signing_in(FakeRegistration(expires_in=7)) as run:
        await until(lambda: bool(run.clock.waits()))
        await run.pass_seconds(5)
        await until(lambda: bool(run.clock.waits()))
        await run.clock.advance(5)
        await until(lambda: len(run.scans) == 2)


async def test_opening_the_address_counts_as_scanning() -> None:
    async with signing_in() as run, aiohttp.ClientSession() as browser:
        await until(lambda: bool(run.clock.waits()))
        assert (await browser.get(f"{run.fake.base}/verify/none")).status == 404
        assert (await browser.post(f"{run.fake.base}/oauth/v1/app/registration")).status == 400
        assert (await browser.get(run.scans[0].address)).status == 200
        await run.pass_seconds(5)
        await until(lambda: run.is_over)
    assert run.end is not None
    assert run.end.settings["owner"] == "ou_scanner"


async def test_declining_ends_it() -> None:
    async with signing_in() as run:
        await until(lambda: bool(run.clock.waits()))
        run.fake.decline()
        await run.pass_seconds(5)
        await until(lambda: run.is_over)
    assert "declined" in run.error


async def test_it_looks_less_often_when_it_is_told_to() -> None:
    async with signing_in() as run:
        await until(lambda: bool(run.clock.waits()))
        run.fake.codes[0].error = "slow_down"
        await run.pass_seconds(5)
        await until(lambda: bool(run.clock.waits()))
        assert run.clock.waits() == [10]


@pytest.mark.parametrize("fault", [429, 503, b"no JSON"])
async def test_a_passing_fault_of_a_look_loses_nothing(fault: int | bytes) -> None:
    async with signing_in() as run:
        await until(lambda: bool(run.clock.waits()))
        run.fake.faults.append(fault)
        await run.pass_seconds(5)
        run.fake.scan()
        await run.pass_seconds(5)
        await until(lambda: run.is_over)
    assert run.end is not None


async def test_who_belongs_to_lark_is_asked_for_there(monkeypatch: pytest.MonkeyPatch) -> None:
    async with FakeRegistration(brand="lark") as lark:
        feishu = FakeRegistration(brand="lark")
        feishu.app = {}
        async with signing_in(feishu) as run:
            monkeypatch.setattr(signin, "ACCOUNTS", feishu.base)
            monkeypatch.setattr(signin, "LARK_ACCOUNTS", lark.base)
            await until(lambda: bool(run.clock.waits()))
            lark.codes = feishu.codes
            feishu.scan("ou_lark")
            await run.pass_seconds(5)
            await until(lambda: run.is_over)
    assert run.end is not None
    assert run.end.settings == {
        "app_id": "cli_scanned0001", "owner": "ou_lark", "base": "https://open.larksuite.com",
    }  # fmt: skip
    assert [form["action"] for form in lark.forms] == ["poll"]


@pytest.mark.parametrize(
    ("change", "said"),
    [
        ({"methods": ["private_key_jwt"]}, "offers no sign-in"),
        ({"methods": None}, "offers no sign-in"),
        ({"base": ""}, "no code to scan"),
    ],
)
async def test_a_platform_that_does_not_offer_it_is_told(change: dict[str, Any], said: str) -> None:
    fake = FakeRegistration()
    for key, value in change.items():
        setattr(fake, key, value)
    if "base" in change:
        fake._begin = lambda: {"device_code": "x", "verification_uri_complete": "javascript:x"}  # type: ignore[method-assign] # a platform that answers nonsense
    async with signing_in(fake) as run:
        await until(lambda: run.is_over)
    assert said in run.error


async def test_an_answer_without_an_app_is_an_error() -> None:
    async with signing_in() as run:
        await until(lambda: bool(run.clock.waits()))
        run.fake.app = {"user_info": "odd"}
        run.fake.scan("")
        await run.pass_seconds(5)
        await until(lambda: run.is_over)
    assert "gave no app" in run.error


async def test_an_app_without_a_known_owner_has_none() -> None:
    async with signing_in(FakeRegistration(interval="soon", expires_in=True)) as run:
        await until(lambda: bool(run.clock.waits()))
        assert run.scans[0].good_seconds == 600
        run.fake.scan("")
        await run.pass_seconds(5)
        await until(lambda: run.is_over)
    assert run.end is not None
    assert "owner" not in run.end.settings


async def test_secrets_are_asked_for_over_an_encrypted_way_alone() -> None:
    async with http_session() as session:
        with pytest.raises(ChannelError, match="accounts_base must be an https:// address"):
            async for _ in sign_in({"accounts_base": "http://accounts.example"}, Http(session)):
                pass
