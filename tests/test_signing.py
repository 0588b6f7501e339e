"""Signing an account in: all mistakes at once, the platform asked, another bot refused, and then saved."""

import asyncio
import json
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from pydantic import SecretStr

from bridge import signing
from bridge.accounts import AccountSetup, accounts
from bridge.channel import ChannelError, CredentialsError, Scan
from bridge.channel.testing.fakes.feishu import FakeFeishu, Fault
from bridge.channel.testing.fakes.feishu.registration import FakeRegistration
from bridge.config import load
from bridge.errors import ConfigError
from bridge.paths import Home, write_private
from bridge.registry import channels
from bridge.signing import (
    Draft,
    Wanted,
    draft_of,
    proven,
    refuse_another_bot,
    route_of,
    save_signed,
    scanned,
    with_given,
)
from bridge.store.contract import Bind
from bridge.store.sqlite import open_store
from tests.store.values import claim

CREDENTIALS_PAGE, EVENTS_PAGE = "from the app's credentials page", "from its events page"
GIVEN = {"app_id": "cli_1", "app_secret": "secret-4711", "encrypt_key": "key-0815"}


@pytest.fixture
def home(tmp_path: Path) -> Home:
    home = Home(tmp_path / "home")
    home.private_dir(home.root)
    return home


def draft(home: Home, channel: str = "feishu", account: str = "main", **environ: str) -> Draft:
    return draft_of(home, channel, account, environ)


def sign_in(home: Home, given: Mapping[str, str] = GIVEN, **place: str) -> signing.Signed:
    signed = with_given(draft(home, **place), given)
    refuse_another_bot(signed)
    save_signed(signed)
    return signed


def setup_of(home: Home, id_: str, **environ: str) -> AccountSetup:
    found = {one.id: one for one in accounts(load(home.config), home, channels(), environ)}
    setup = found[id_]  # type: ignore[index] # an id is a str
    assert isinstance(setup, AccountSetup), setup
    return setup


def test_a_new_account_is_saved_and_complete(home: Home) -> None:
    sign_in(home, {**GIVEN, "owner": "ou_1", "media.keep_days": "3"})
    setup = setup_of(home, "feishu:main")
    assert setup.settings.owner == "ou_1"
    assert setup.settings.media.keep_days == 3
    assert json.loads(home.credentials("feishu", "main").read_text()) == {
        "app_secret": "secret-4711",
        "encrypt_key": "key-0815",
    }
    assert "4711" not in home.config.read_text()


def test_a_channel_without_secrets_has_a_table_and_no_file(home: Home) -> None:
    sign_in(home, {}, channel="console", account="local")
    assert home.config.read_text() == "[channels.console.local]\nenabled = true\n"
    assert not (home.root / "credentials").exists()


def test_what_is_wanted_is_what_is_missing_and_every_secret(home: Home) -> None:
    assert draft(home).wanted() == [
        Wanted("app_id", CREDENTIALS_PAGE, False, True),
        Wanted("app_secret", CREDENTIALS_PAGE, True, True),
        Wanted("verification_token", EVENTS_PAGE, True, False),
        Wanted("encrypt_key", EVENTS_PAGE, True, False),
    ]
    sign_in(home)
    assert draft(home).wanted() == [
        Wanted("app_secret", CREDENTIALS_PAGE, True, True, True),
        Wanted("verification_token", EVENTS_PAGE, True, False),
        Wanted("encrypt_key", EVENTS_PAGE, True, False, True),
    ]
    assert "4711" not in repr(draft(home))


def test_all_mistakes_are_told_at_once_and_no_value_is_shown(home: Home) -> None:
    given = {"app_id": "wrong-4711", "verification_token": "hidden-0815"}
    with pytest.raises(ConfigError) as caught:
        with_given(draft(home), given)
    said = str(caught.value)
    assert "app_id: must begin with cli_" in said
    assert "app_secret: missing" in said
    assert "4711" not in said
    assert "0815" not in said


@pytest.mark.parametrize(
    ("given", "said"),
    [
        ({"ownr": "x"}, "did you mean owner"),
        ({"owner": "Alice"}, "must be ids"),
        ({"workspace": "nowhere"}, "existing directory"),
    ],
)
def test_settings_are_checked_as_those_of_the_file_are(home: Home, given: dict[str, str], said: str) -> None:
    with pytest.raises(ConfigError, match=said):
        with_given(draft(home), {**GIVEN, **given})


def test_a_renewed_secret_replaces_the_old_and_keeps_the_rest(home: Home) -> None:
    sign_in(home)
    write_private(home.config, b"# mine\n" + home.config.read_bytes())
    before = home.config.read_bytes()
    sign_in(home, {"app_secret": "secret-0000"})
    assert home.config.read_bytes() == before
    assert json.loads(home.credentials("feishu", "main").read_text()) == {
        "app_secret": "secret-0000",
        "encrypt_key": "key-0815",
    }


def test_secrets_of_the_environment_stay_there(home: Home) -> None:
    table = '[channels.feishu.main]\napp_id = "cli_1"\n[channels.feishu.main.credentials]\n'
    write_private(home.config, f'{table}app_secret = {{ env = "S" }}\n'.encode())
    now = draft(home, S="from-outside")
    assert [wanted.key for wanted in now.wanted()] == ["verification_token", "encrypt_key"]
    signed = with_given(now, {"encrypt_key": "key-0815"})
    refuse_another_bot(signed)
    save_signed(signed)
    assert json.loads(home.credentials("feishu", "main").read_text()) == {"encrypt_key": "key-0815"}
    setup_of(home, "feishu:main", S="from-outside")


@pytest.mark.parametrize("damage", ["torn", "link", "mode"])
def test_secrets_that_cannot_be_used_are_told_and_replaced(home: Home, tmp_path: Path, damage: str) -> None:
    sign_in(home)
    path = home.credentials("feishu", "main")
    match damage:
        case "torn":
            write_private(path, b'{"app_sec')
        case "link":
            path.rename(tmp_path / "elsewhere")
            path.symlink_to(tmp_path / "elsewhere")
        case _:
            path.chmod(0o644)
    now = draft(home)
    assert str(path) in now.damage
    assert now.saved == {}
    sign_in(home)
    assert draft(home).damage == ""
    setup_of(home, "feishu:main")


# --- another bot ----------------------------------------------------------------------------------


def test_another_bot_is_refused_while_the_secrets_of_the_first_are_there(home: Home) -> None:
    sign_in(home)
    before = home.config.read_bytes(), home.credentials("feishu", "main").read_bytes()
    with pytest.raises(ConfigError, match="log it out first"):
        sign_in(home, {**GIVEN, "app_id": "cli_2"})
    assert (home.config.read_bytes(), home.credentials("feishu", "main").read_bytes()) == before


async def test_another_bot_is_refused_while_stored_messages_are_the_first_s(home: Home) -> None:
    home.private_dir(home.state)
    async with open_store(home.db) as store:
        await store.do(Bind(draft(home).id, "the first one's"))
        await store.do(claim(account=draft(home).id))
    with pytest.raises(ConfigError, match="log it out first"):
        sign_in(home)
    assert not home.config.exists()


def test_what_was_never_whole_binds_nobody(home: Home) -> None:
    sign_in(home)
    write_private(home.credentials("feishu", "main"), b'{"app_secret": "x"}')
    sign_in(home, {**GIVEN, "app_id": "cli_2"})


# --- asking the platform --------------------------------------------------------------------------


async def test_the_platform_is_asked_who_the_bot_is(home: Home) -> None:
    async with FakeFeishu() as fake:
        given = {**GIVEN, "app_id": fake.app_id, "app_secret": fake.app_secret, "base": fake.base}
        signed = with_given(draft(home), given)
        proof = await proven(signed)
        assert proof.identity is not None
        assert (proof.identity.name, proof.is_pushed) == ("Turnbridge", True)
        with pytest.raises(CredentialsError):
            await proven(with_given(draft(home), {**given, "app_secret": "another"}))
        before = len(fake.requests)
        assert (await proven(signed, asks=False)).identity is None
        assert len(fake.requests) == before


async def test_a_platform_that_is_silent_is_not_waited_for_long(
    home: Home, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(signing, "CHECK_SECONDS", 0.05)
    async with FakeFeishu() as fake:
        fake.next(Fault.STALL, at="token")
        given = {**GIVEN, "app_id": fake.app_id, "base": fake.base}
        with pytest.raises(ChannelError, match="in time"):
            await proven(with_given(draft(home), given))


async def test_where_nobody_can_be_asked_nothing_is_proven(home: Home) -> None:
    now = draft(home, "webhook", "shop")
    proof = await proven(with_given(now, now.spec.fresh({})))
    assert (proof.identity, proof.is_pushed) == (None, True)


def test_the_route_is_as_the_world_sees_it(home: Home) -> None:
    signed = with_given(draft(home), GIVEN)
    assert route_of(signed) == "http://127.0.0.1:8470/channels/feishu/main"
    write_private(home.config, b'[web]\npublic_url = "https://bot.example/"\n')
    assert route_of(with_given(draft(home), GIVEN)) == "https://bot.example/channels/feishu/main"


# --- by a scan ------------------------------------------------------------------------------------


async def test_a_scan_gives_the_app_and_its_owner(home: Home) -> None:
    async with FakeRegistration(interval=0.01) as fake:
        shown: list[Scan] = []

        def show(scan: Scan) -> None:
            shown.append(scan)
            fake.scan("ou_me")

        given = await scanned(draft(home), show, {"accounts_base": fake.base})
    assert given == {"app_id": "cli_scanned0001", "owner": "ou_me", "app_secret": "scanned-app-secret"}
    assert [scan.address for scan in shown] == [f"{fake.base}/verify/{fake.codes[0].code}"]
    later = draft(home)  # whatever ended the command then
    assert later.saved == {"app_secret": "scanned-app-secret"}
    assert later.table == {"app_id": "cli_scanned0001", "owner": "ou_me"}
    signed = with_given(later, {"encrypt_key": "key-0815"})
    refuse_another_bot(signed)
    save_signed(signed)
    setup_of(home, "feishu:main")


async def test_nobody_scans_for_an_account_that_is_somebody_s(home: Home) -> None:
    sign_in(home)
    async with FakeRegistration() as fake:
        with pytest.raises(ConfigError, match="log it out first"):
            await scanned(draft(home), lambda scan: None, {"accounts_base": fake.base})
        assert fake.forms == []


async def test_a_channel_without_a_scan_says_so(home: Home) -> None:
    with pytest.raises(ConfigError, match="cannot be signed in by a scan"):
        await scanned(draft(home, "webhook"), lambda scan: None, {})


async def test_an_adapter_that_just_ends_signed_nobody_in(home: Home) -> None:
    async def nothing(settings: Any, http: Any) -> Any:
        await asyncio.sleep(0)
        for _ in ():
            yield _

    now = draft(home)
    with pytest.raises(ChannelError, match="ended the sign-in"):
        await scanned(replace(now, spec=replace(now.spec, sign_in=nothing)), lambda scan: None, {})


def test_secrets_given_are_in_no_repr(home: Home) -> None:
    signed = with_given(draft(home), GIVEN)
    assert "4711" not in repr(signed)
    assert isinstance(signed.credentials.app_secret, SecretStr)  # type: ignore[attr-defined] # Feishu's own
    assert signed.draft.is_on
