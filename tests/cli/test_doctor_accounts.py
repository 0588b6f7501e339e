"""The doctor and the platforms: what each says of its account, and what they share told once."""

import asyncio
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from bridge import registry
from bridge.accounts import AccountSetup
from bridge.channel import (
    ChannelCredentials,
    ChannelError,
    ConfigError,
    CredentialsError,
    Fault,
    Http,
    Identity,
    Place,
)
from bridge.channel.http import http_session
from bridge.channel.testing.clock import START, FakeClock
from bridge.channel.testing.fakes import wechat_mp
from bridge.channel.testing.fakes.feishu import FakeFeishu, Refusal
from bridge.channel.testing.fakes.feishu import Fault as Outage
from bridge.cli import doctor_accounts
from bridge.cli.doctor_accounts import Made, ask, clock, made, platforms
from bridge.cli.findings import Finding, Level
from bridge.ids import AccountId
from bridge.paths import Home
from tests.daemons import free_port

HOME = Home(Path("/x"))
SECRET, OTHER = "whsec_" + "QUJD" * 11, "whsec_" + "QUJE" * 11


def feishu(base: str, secret: str = "fake-app-secret", name: str = "main") -> AccountSetup:
    spec = registry.channels().load("feishu")
    settings = spec.settings.model_validate({"app_id": "cli_fake0001", "base": base})
    secrets = {"app_secret": secret, "verification_token": "fake-verification-token"}
    credentials = spec.credentials.model_validate(secrets)
    return AccountSetup(AccountId(f"feishu:{name}"), "feishu", name, spec, settings, credentials, Path("/x"))


def account(channel: str, **settings: Any) -> AccountSetup:
    spec = registry.channels().load(channel)
    secrets = (
        {"secrets": [SECRET], "callback_secrets": [OTHER], "ask_token": "t"} if channel == "webhook" else {}
    )
    credentials: ChannelCredentials = spec.credentials.model_validate(secrets)
    values = spec.settings.model_validate(settings)
    return AccountSetup(AccountId(f"{channel}:a"), channel, "a", spec, values, credentials, Path("/x"))


@asynccontextmanager
async def http(clock_: FakeClock | None = None) -> AsyncIterator[Http]:
    async with http_session() as session:
        yield Http(session, clock=clock_)


async def examined(*accounts: AccountSetup) -> list[Finding]:
    async with http() as client:
        done, findings = made(accounts, client, "")
        return findings + await platforms(done, HOME, client.clock)


def told(found: Sequence[Finding]) -> list[tuple[str, Level]]:
    return [(each.check, each.level) for each in found]


async def test_a_bot_that_its_platform_knows_and_grants_all_is_well() -> None:
    async with FakeFeishu() as fake:
        found = await examined(feishu(fake.base))
    assert told(found) == [
        ("credentials", Level.GOOD),
        ("permissions", Level.GOOD),
        ("clock", Level.GOOD),
    ]
    assert found[0].text == "feishu:main: the platform knows the bot as Turnbridge"


async def test_wrong_credentials_are_a_fault_and_the_cure_is_to_log_in() -> None:
    async with FakeFeishu() as fake:
        found = await examined(feishu(fake.base, "s3cr3t-wrong"))
    (fault,) = [each for each in found if each.level is Level.FAULT]
    assert fault.check == "credentials"
    assert "the app id and its secret do not belong together" in fault.text
    assert "channels login feishu:main --home /x" in fault.cure
    assert "s3cr3t" not in repr(found)


async def test_of_a_platform_that_tells_no_permissions_nothing_is_said_of_them() -> None:
    spec = registry.channels().load("wechat_mp")
    key = wechat_mp.new_key()
    secrets = {"app_secret": "fake-app-secret", "token": "fakeToken0001", "encoding_aes_key": key}
    async with wechat_mp.FakeWechatMp() as fake:
        ids = {"app_id": wechat_mp.APP_ID, "original_id": wechat_mp.ACCOUNT}
        settings = spec.settings.model_validate({**ids, "base": fake.base})
        credentials = spec.credentials.model_validate(secrets)
        one = AccountSetup(
            AccountId("wechat_mp:a"), "wechat_mp", "a", spec, settings, credentials, Path("/x")
        )
        found = await examined(one)
    assert told(found)[0] == ("credentials", Level.GOOD)
    assert "permissions" not in [each.check for each in found]


async def test_a_permission_that_lacks_is_a_fault_and_one_that_nobody_tells_is_none() -> None:
    async with FakeFeishu() as fake:
        fake.interface.scopes["im:resource"] = False
        found = await examined(feishu(fake.base))
        assert ("permissions", Level.FAULT) in told(found)
        fake.next(Refusal(99991672), at="scopes")
        found = await examined(feishu(fake.base))
    assert ("permissions", Level.UNKNOWN) in told(found)


async def test_a_platform_that_refuses_for_another_reason_is_a_fault() -> None:
    async with FakeFeishu() as fake:
        fake.next(Refusal(1234, text="odd"), at="info")
        found = await examined(feishu(fake.base))
    assert told(found)[0] == ("platform", Level.FAULT)
    assert "docs/feishu.md" in found[0].cure


async def test_an_address_that_accounts_share_and_that_is_not_reached_is_told_once() -> None:
    base = f"http://127.0.0.1:{free_port()}"
    found = await examined(feishu(base), feishu(base, name="other"))
    assert told(found) == [("network", Level.FAULT), ("clock", Level.UNKNOWN)]
    assert found[0].text.endswith("(for feishu:main, feishu:other)")


async def test_a_platform_that_is_reached_and_gives_no_answer_is_the_platforms_fault() -> None:
    async with FakeFeishu() as fake:
        fake.next(Outage.DROP, at="token")
        found = await examined(feishu(fake.base))
    assert told(found) == [("platform", Level.FAULT), ("clock", Level.UNKNOWN)]


async def test_where_nobody_can_be_asked_the_addresses_are_looked_at() -> None:
    assert told(await examined(account("console"), account("webhook"))) == [("clock", Level.UNKNOWN)]
    port = free_port()
    hook = {"callback_url": f"http://127.0.0.1:{port}/in", "private_hosts": ("127.0.0.1",)}
    found = await examined(account("webhook", **hook))
    assert told(found) == [("network", Level.FAULT), ("clock", Level.UNKNOWN)]
    async with FakeFeishu() as fake:
        found = await examined(account("webhook", **{**hook, "callback_url": fake.base}))
    assert told(found) == [("network", Level.GOOD), ("clock", Level.UNKNOWN)]


async def test_only_those_that_the_world_comes_to_are_pushed() -> None:
    async with http() as client:
        done, _ = made([account("console"), account("webhook"), feishu("http://127.0.0.1:1")], client, "")
    assert [one.account.channel for one in done if one.is_pushed] == ["webhook", "feishu"]


async def test_an_adapter_gets_its_place_and_one_that_cannot_be_made_is_told() -> None:
    places: list[Place] = []

    def create(settings: object, credentials: object, http: Http, place: Place) -> object:
        places.append(place)
        if len(places) > 1:
            raise ConfigError("its base is no address: correct it")
        return object()

    one = account("webhook")
    odd = replace(one, spec=replace(one.spec, create=create))
    async with http() as client:
        done, findings = made([odd, odd], client, "https://bot.example/")
    assert places[0] == Place("webhook:a", "https://bot.example/channels/webhook/a")
    assert len(done) == 1
    assert [each.text for each in findings] == ["webhook:a: its base is no address: correct it"]


class Platform:
    """An adapter whose probe and diagnosis are as the test says."""

    def __init__(self, answer: Identity | Exception, faults: Sequence[Fault] = ()) -> None:
        self._answer, self._faults = answer, faults

    async def probe(self) -> Identity:
        if isinstance(self._answer, Exception):
            raise self._answer
        return self._answer

    async def diagnose(self) -> Sequence[Fault]:
        return self._faults


async def test_the_adapters_own_words_are_told() -> None:
    found = await ask(
        Made(account("webhook"), Platform(Identity("bot"), [Fault("it is asleep", "wake it")])), FakeClock()
    )
    assert [(each.text, each.cure) for each in found.findings] == [
        ("webhook:a: the platform knows the bot", ""),
        ("webhook:a: it is asleep", "wake it"),
    ]
    assert found.skew_seconds is None


async def test_the_clock_is_compared_with_the_platforms() -> None:
    answer = Platform(Identity("bot", platform_time=START))
    fake = FakeClock()
    fake.jump(90)
    assert (await ask(Made(account("webhook"), answer), fake)).skew_seconds == 90


async def test_a_platform_that_hangs_is_given_up(monkeypatch: pytest.MonkeyPatch) -> None:
    class Hanging(Platform):
        async def probe(self) -> Identity:
            await asyncio.Event().wait()
            raise AssertionError

    monkeypatch.setattr(doctor_accounts, "ASK_SECONDS", 0.01)
    found = await platforms([Made(account("webhook"), Hanging(Identity()))], HOME, FakeClock())
    assert told(found) == [("platform", Level.FAULT), ("clock", Level.UNKNOWN)]


async def test_each_refusal_is_a_fault_of_its_own_kind() -> None:
    for error, check in ((CredentialsError("no"), "credentials"), (ChannelError("odd"), "platform")):
        found = await platforms([Made(account("webhook"), Platform(error))], HOME, FakeClock())
        assert told(found)[0] == (check, Level.FAULT)


@pytest.mark.parametrize(
    ("skew", "level", "words"),
    [
        (3.0, Level.GOOD, "within 30 seconds"),
        (45.0, Level.WARNING, "45 seconds ahead of the platform of b"),
        (-300.0, Level.FAULT, "300 seconds behind the platform of b"),
    ],
)
def test_a_clock_is_judged_by_the_account_that_differs_most(skew: float, level: Level, words: str) -> None:
    found = clock({"a": 1.0, "b": skew, "c": None})
    assert (found.level, words in found.text) == (level, True)


def test_without_any_platforms_time_nothing_is_said_of_the_clock() -> None:
    assert clock({"a": None}).level is Level.UNKNOWN
