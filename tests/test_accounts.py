"""Accounts from settings and credentials: one mistake spoils one account, and no secret gets out."""

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest
from pydantic import SecretStr

from bridge import logs, registry
from bridge.accounts import AccountSetup, BrokenAccount, accounts, unused_credentials
from bridge.channel import ChannelCredentials, ChannelSettings, ChannelSpec, Limit, Unit
from bridge.config import Config, DaemonTable
from bridge.errors import ConfigError, ExhaustedError
from bridge.paths import Home, write_private
from bridge.profiles import Profiles
from tests.scarce import no_descriptors

SECRET = "s3cret-s3cret"


class Settings(ChannelSettings):
    base: str = ""


class Login(ChannelCredentials):
    user: str


class Credentials(ChannelCredentials):
    token: SecretStr
    spare: tuple[SecretStr, ...] = ()
    login: Login | None = None


class Open(ChannelCredentials):
    token: SecretStr = SecretStr("")


def spec(name: str, credentials: type[ChannelCredentials] = Credentials) -> ChannelSpec:
    return ChannelSpec(
        name=name,
        title=lambda settings: name,
        settings=Settings,
        credentials=credentials,
        create=lambda settings, credentials, http, place: object(),
        identity=lambda settings, credentials: (),
        text_limit=Limit(1, Unit.BYTES),
    )


class Channels:
    """A registry of two good channels, one without secrets, and one that cannot be imported."""

    loaded: list[str]

    def __init__(self) -> None:
        self.loaded = []

    def names(self) -> list[str]:
        return ["broken", "open", "pigeon", "raven"]

    def load(self, name: str) -> ChannelSpec:
        self.loaded.append(name)
        if name == "broken":
            raise ConfigError("the channel 'broken' of x cannot be loaded: ImportError")
        return spec(name, Open if name == "open" else Credentials)


@pytest.fixture
def home(tmp_path: Path) -> Home:
    return Home(tmp_path)


def keep(home: Home, account: str, secrets: object) -> Path:
    path = home.credentials("pigeon", account)
    home.private_dir(path.parent)
    write_private(path, secrets if isinstance(secrets, bytes) else json.dumps(secrets).encode())
    return path


def read(
    home: Home, tables: dict[str, dict[str, dict[str, Any]]], environ: Mapping[str, str] | None = None
) -> list[AccountSetup | BrokenAccount]:
    return accounts(Config(channels=tables), home, Channels(), environ or {})


def one(
    home: Home, table: dict[str, Any], environ: Mapping[str, str] | None = None
) -> AccountSetup | BrokenAccount:
    (found,) = read(home, {"pigeon": {"main": table}}, environ)
    return found


def setup(found: AccountSetup | BrokenAccount) -> AccountSetup:
    assert isinstance(found, AccountSetup), found
    return found


def reason(found: AccountSetup | BrokenAccount) -> str:
    assert isinstance(found, BrokenAccount)
    assert SECRET not in str(found)
    return "; ".join(found.reasons)


def test_settings_and_credentials_make_an_account(home: Home) -> None:
    keep(home, "main", {"token": SECRET})
    found = setup(one(home, {"base": "b", "owner": "u1"}))
    assert (found.id, found.channel, found.account) == ("pigeon:main", "pigeon", "main")
    assert found.enabled
    assert isinstance(found.credentials, Credentials)
    assert found.credentials.token.get_secret_value() == SECRET


def test_equal_settings_make_equal_accounts_and_a_new_secret_does_not(home: Home) -> None:
    keep(home, "main", {"token": SECRET})
    channels = Channels()
    spec_of = channels.load("pigeon")
    channels.load = lambda name: spec_of  # type: ignore[method-assign] # the same spec, as importing gives
    config = Config(channels={"pigeon": {"main": {}}})
    before = accounts(config, home, channels, {})
    assert accounts(config, home, channels, {}) == before
    keep(home, "main", {"token": SECRET + "2"})
    assert accounts(config, home, channels, {}) != before


def test_credentials_without_a_table_are_no_account_and_told_as_unused(home: Home) -> None:
    unused = keep(home, "found", {"token": SECRET})
    keep(home, "main", {"token": SECRET}).with_name("not a name.json").write_text("{}")
    home.credentials("pigeon", "x").with_name("notes.txt").write_text("")
    (home.root / "credentials" / "raven").write_text("no folder")
    config = Config(channels={"pigeon": {"main": {}}})
    assert [account.id for account in accounts(config, home, Channels(), {})] == [
        "pigeon:main",
        "raven:discovery-error",
    ]
    (told,) = unused_credentials(config, home, Channels())
    assert told.startswith(f"{unused}: not used: there is no [channels.pigeon.found] in {home.config}")


def test_only_channels_with_accounts_are_imported(home: Home) -> None:
    keep(home, "main", {"token": SECRET})
    channels = Channels()
    accounts(Config(channels={"open": {"main": {}}}), home, channels, {})
    assert channels.loaded == ["open"]


def test_every_secret_that_was_read_stays_out_of_the_logs(home: Home) -> None:
    keep(home, "main", {"token": "tok-4711-a", "spare": ["tok-4711-b"], "login": {"user": "tok-4711-c"}})
    setup(one(home, {}))
    shown = logs.clean("tok-4711-a tok-4711-b tok-4711-c")
    assert shown == f"{logs.HIDDEN} {logs.HIDDEN} tok-4711-c"


def test_a_secret_may_come_from_the_environment(home: Home) -> None:
    table = {"credentials": {"token": {"env": "TOKEN"}}}
    found = setup(one(home, table, {"TOKEN": SECRET}))
    assert found.credentials == Credentials(token=SecretStr(SECRET))


def test_the_environment_goes_before_the_file_key_by_key(home: Home) -> None:
    keep(home, "main", {"token": "from-the-file", "spare": ["kept"]})
    found = setup(one(home, {"credentials": {"token": {"env": "TOKEN"}}}, {"TOKEN": SECRET}))
    assert found.credentials == Credentials(token=SecretStr(SECRET), spare=(SecretStr("kept"),))


def test_a_list_in_the_environment_is_json_and_any_other_text_is_itself(home: Home) -> None:
    table = {"credentials": {"token": {"env": "TOKEN"}, "spare": {"env": "SPARE"}}}
    found = setup(one(home, table, {"TOKEN": "[odd", "SPARE": '["a-one", "b-two"]'}))
    assert found.credentials == Credentials(
        token=SecretStr("[odd"), spare=(SecretStr("a-one"), SecretStr("b-two"))
    )


def test_a_variable_that_is_not_set_is_named(home: Home) -> None:
    told = reason(one(home, {"credentials": {"token": {"env": "TOKEN"}}}))
    assert "channels.pigeon.main.credentials.token: the environment has no TOKEN" in told


@pytest.mark.parametrize("value", [SECRET, {"value": SECRET}, {"env": 1}, {"env": "A", "x": 1}, [SECRET]])
def test_a_secret_in_the_settings_is_refused_with_what_to_do(home: Home, value: object) -> None:
    told = reason(one(home, {"credentials": {"token": value}}))
    assert "channels.pigeon.main.credentials.token: no secret belongs into this file" in told
    assert str(home.credentials("pigeon", "main")) in told


def test_missing_credentials_are_named_by_their_file(home: Home) -> None:
    assert f"{home.credentials('pigeon', 'main')} is missing" in reason(one(home, {}))


def test_an_account_that_needs_no_secret_needs_no_file(home: Home) -> None:
    (found,) = read(home, {"open": {"main": {}}})
    assert setup(found).credentials == Open()


@pytest.mark.parametrize(
    ("secrets", "told"),
    [
        (b"{" + SECRET.encode(), "not JSON"),
        (b"[" * 100_000, "not JSON"),
        ([SECRET], "not a JSON object"),
        ({"token": [SECRET]}, "token: must be a string"),
        ({"token": "x", "tokem": SECRET}, "tokem: no such setting: did you mean token?"),
        ({"spare": []}, "token: missing: set it"),
    ],
)
def test_broken_credentials_are_told_without_their_text(home: Home, secrets: object, told: str) -> None:
    path = keep(home, "main", secrets)
    shown = reason(one(home, {}))
    assert told in shown
    assert str(path) in shown


def test_credentials_that_others_can_read_are_refused(home: Home) -> None:
    keep(home, "main", {"token": SECRET}).chmod(0o640)
    assert "chmod 600" in reason(one(home, {}))


def test_one_broken_account_leaves_the_others_alone(home: Home) -> None:
    keep(home, "good", {"token": SECRET})
    keep(home, "bad", {"token": SECRET})
    found = read(home, {"pigeon": {"good": {}, "bad": {"ownr": "u1"}}})
    bad, good = found
    assert "channels.pigeon.bad.ownr: no such setting: did you mean owner?" in reason(bad)
    assert setup(good).id == "pigeon:good"


def test_all_mistakes_of_one_account_are_told(home: Home) -> None:
    keep(home, "main", {"token": SECRET})
    found = one(home, {"ownr": "u1", "enabled": "yes"})
    assert isinstance(found, BrokenAccount)
    assert len(found.reasons) == 2


def test_mistakes_of_every_kind_are_told_together(home: Home) -> None:
    keep(home, "main", {"tokn": SECRET})
    found = one(home, {"ownr": "u1", "base": 3})
    assert isinstance(found, BrokenAccount)
    assert [line.partition(": ")[2] for line in found.reasons] == [
        'channels.pigeon.main.base: must be a string, as in: base = "…"',
        "channels.pigeon.main.ownr: no such setting: did you mean owner?",
        "token: missing: set it",
        "tokn: no such setting: did you mean token?",
    ]
    found = one(home, {"owner": " u", "workspace": "x", "credentials": 3})
    assert isinstance(found, BrokenAccount)
    assert len(found.reasons) == 3


def test_a_secret_in_the_settings_is_told_where_it_belongs(home: Home) -> None:
    found = one(home, {"token": SECRET, "ownr": "u1"})
    told = reason(found)
    assert "channels.pigeon.main.token: no secret belongs into this file: put it into " in told
    assert "channels.pigeon.main.ownr: no such setting" in told
    assert "token: no such setting" not in told


def test_a_broken_account_that_is_switched_off_is_off(home: Home) -> None:
    assert not one(home, {"ownr": "u1", "enabled": False}).enabled
    assert not one(home, {"workspace": "relative", "enabled": False}).enabled


@pytest.mark.parametrize(
    "table", [{"owner": " u1"}, {"owner": "u1\n"}, {"senders": ["u1", ""]}, {"senders": ["u1 "]}]
)
def test_an_id_is_taken_as_it_stands_so_slips_are_refused(home: Home, table: dict[str, Any]) -> None:
    keep(home, "main", {"token": SECRET})
    (key,) = table
    assert f"channels.pigeon.main.{key}: an id is not empty and no blank is around it" in reason(
        one(home, table)
    )


def test_exact_ids_pass_whatever_they_look_like(home: Home) -> None:
    keep(home, "main", {"token": SECRET})
    found = setup(one(home, {"owner": "Ünï cødé/1", "senders": ["1", "12"]}))
    assert found.settings.owner == "Ünï cødé/1"
    assert found.settings.senders == ("1", "12")


def test_a_workspace_must_be_there(home: Home) -> None:
    keep(home, "main", {"token": SECRET})
    for wrong in ("relative", str(home.root / "none"), f"/{'a' * 300}", "/a\0b"):
        assert "must be an existing directory" in reason(one(home, {"workspace": wrong}))
    assert setup(one(home, {"workspace": str(home.root)})).settings.workspace == str(home.root)


def test_the_daemons_workspace_must_be_there_for_the_accounts_that_use_it(home: Home) -> None:
    keep(home, "main", {"token": SECRET})
    keep(home, "own", {"token": SECRET})
    tables: Any = {"pigeon": {"main": {}, "own": {"workspace": str(home.root)}}}
    for wrong in ("relative", str(home.root / "none")):
        config = Config(channels=tables, daemon=DaemonTable(workspace=wrong))
        main, own = accounts(config, home, Channels(), {})
        assert reason(main).startswith(f"{home.config}: daemon.workspace: must be an existing directory")
        assert setup(own).workspace == home.root
    config = Config(channels=tables, daemon=DaemonTable(workspace="/"))
    assert setup(accounts(config, home, Channels(), {})[0]).workspace == Path("/")
    assert setup(read(home, tables)[0]).workspace == home.root / "workspace"


def test_an_account_name_that_is_no_plain_name_is_shown_harmlessly(home: Home) -> None:
    found = read(home, {"pigeon": {"../x\n": {}}})
    assert [account.id for account in found] == ["pigeon:???x?"]
    assert reason(found[0]).startswith(f"{home.config}: channels.pigeon.???x?: a name has up to 64 letters")


def test_an_account_name_that_is_no_plain_name_takes_no_other_accounts_place(home: Home) -> None:
    keep(home, "a_b", {"token": SECRET})
    found = read(home, {"pigeon": {"a_b": {}, "a b": {}}})
    assert [(account.id, isinstance(account, AccountSetup)) for account in found] == [
        ("pigeon:a?b", False),
        ("pigeon:a_b", True),
    ]


def test_an_account_whose_name_is_too_long_for_a_file_fails_alone(home: Home) -> None:
    keep(home, "a" * 64, {"token": SECRET})
    found = read(home, {"pigeon": {"a" * 64: {}, "a" * 300: {}}})
    assert [(account.id, isinstance(account, AccountSetup)) for account in found] == [
        (f"pigeon:{'a' * 63}?", False),
        (f"pigeon:{'a' * 64}", True),
    ]


@pytest.mark.parametrize("channel", ["pigeon", "open"])
def test_that_the_system_has_no_descriptors_is_no_fault_of_an_account(home: Home, channel: str) -> None:
    keep(home, "main", {"token": SECRET})
    config = Config(channels={channel: {"main": {}}})
    profiles = Profiles(config, home, registry.agents())
    with no_descriptors(), pytest.raises(ExhaustedError):
        accounts(config, home, Channels(), {}, profiles)


def test_an_account_that_names_an_agent_which_is_none_is_broken(home: Home) -> None:
    keep(home, "main", {"token": SECRET})
    (found,) = read(home, {"pigeon": {"main": {"agent": "nobody"}}})
    assert "channels.pigeon.main.agent: there is no agent called 'nobody': there are " in reason(found)


def test_an_unknown_channel_is_told_with_what_is_near_or_installed(home: Home) -> None:
    near, far = read(home, {"pidgeon": {"a": {}}, "zzz": {"b": {}}})
    assert reason(near) == f"{home.config}: channels.pidgeon: no such channel: did you mean pigeon?"
    assert "installed are: broken, open, pigeon, raven" in reason(far)


def test_a_channel_that_cannot_be_loaded_fails_its_own_accounts(home: Home) -> None:
    found = read(home, {"broken": {"a": {}, "b": {}}})
    assert [account.id for account in found] == ["broken:a", "broken:b"]
    assert all("cannot be loaded" in reason(account) for account in found)


def test_a_channel_with_too_many_credentials_fails_alone(home: Home) -> None:
    keep(home, "a0", {"token": SECRET})
    for number in range(1, 129):
        home.credentials("pigeon", f"a{number}").write_text("{}")
    failed, other = read(home, {"open": {"main": {}}})[::-1]
    assert failed.id == "pigeon:discovery-error"
    assert "over 128 accounts" in reason(failed)
    assert setup(other).id == "open:main"


def test_a_credentials_folder_that_cannot_be_listed_fails_its_channel_alone(home: Home) -> None:
    home.private_dir(home.root / "credentials")
    (home.root / "credentials" / "pigeon").write_text("")
    (failed,) = read(home, {})
    assert "cannot be listed" in reason(failed)


def test_credentials_in_the_settings_must_be_a_table(home: Home) -> None:
    assert "credentials: must be a table" in reason(one(home, {"credentials": 3}))
