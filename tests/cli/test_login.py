"""``channels login``: how it is given what it needs, what it asks, and that a running daemon takes it up."""

import asyncio
import getpass
import io
import json
import os
import stat
import sys
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path

import pytest

from bridge import signing
from bridge.channel import UnreachableError
from bridge.channel.testing.fakes.feishu import FakeFeishu
from bridge.channel.testing.fakes.feishu.registration import FakeRegistration
from bridge.cli import qr
from bridge.cli.common import ask_daemon
from bridge.cli.main import main
from bridge.config import load
from bridge.paths import Home, write_private
from bridge.signing import Proof, Signed
from channels.feishu import signin
from tests.cli.socket_daemon import socket_daemon, status
from tests.daemons import daemon, free_port, keep, short_home

FEISHU = {"app_id": "cli_1", "app_secret": "secret-4711", "encrypt_key": "key-0815"}


@dataclass
class Person(io.StringIO):
    """Somebody at a terminal, who types ``answers``; ``None`` ends the input."""

    answers: list[str | None]
    asked: list[str] = field(default_factory=list)
    hidden: list[str] = field(default_factory=list)

    def __post_init__(self) -> None:
        super().__init__()

    def isatty(self) -> bool:
        return True

    def type(self, prompt: str) -> str:
        self.asked.append(prompt)
        answer = self.answers.pop(0) if self.answers else None
        if answer is None:
            raise EOFError
        return answer

    def hide(self, prompt: str) -> str:
        self.hidden.append(prompt)
        return self.type(prompt)


def sits(monkeypatch: pytest.MonkeyPatch, *answers: str | None) -> Person:
    person = Person(list(answers))
    monkeypatch.setattr(sys, "stdin", person)
    monkeypatch.setattr("builtins.input", person.type)
    monkeypatch.setattr(getpass, "getpass", person.hide)
    return person


def pipe(monkeypatch: pytest.MonkeyPatch, text: str = "") -> None:
    monkeypatch.setattr(sys, "stdin", io.StringIO(text))


def lines(**given: str) -> str:
    return "".join(f"{key}={value}\n" for key, value in given.items())


@pytest.fixture
def home() -> Iterator[Home]:
    with short_home("# mine\n") as home:
        home.credentials("webhook", "demo").unlink()
        yield home


def run(home: Home, *args: str) -> int:
    return main(["channels", "login", *args, "--home", str(home.root)])


def saved(home: Home, channel: str = "feishu", account: str = "main") -> dict[str, object]:
    found: dict[str, object] = json.loads(home.credentials(channel, account).read_text())
    return found


# --- given by other programs ----------------------------------------------------------------------


def test_standard_input_has_a_line_for_each_value(
    home: Home, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    pipe(monkeypatch, "# from the console\n\n" + lines(**FEISHU, owner="ou_1"))
    assert run(home, "feishu", "--no-check") == 0
    assert saved(home) == {"app_secret": "secret-4711", "encrypt_key": "key-0815"}
    assert load(home.config).channels["feishu"]["main"] == {"app_id": "cli_1", "owner": "ou_1"}
    assert home.config.read_text().find("# mine\n") >= 0
    said = capsys.readouterr().out
    assert "Have the platform send to: http://127.0.0.1:0/channels/feishu/main" in said
    assert "No daemon runs: it takes effect when it is started" in said
    assert "4711" not in said
    assert "no owner" not in said


def test_the_environment_gives_values_too_and_standard_input_goes_before(
    home: Home, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("TURNBRIDGE_FEISHU_APP_SECRET", "from-outside")
    monkeypatch.setenv("TURNBRIDGE_FEISHU_ENCRYPT_KEY", "key-outside")
    pipe(monkeypatch, lines(app_id="cli_1", encrypt_key="key-0815"))
    assert run(home, "feishu:work", "--no-check") == 0
    assert saved(home, account="work") == {"app_secret": "from-outside", "encrypt_key": "key-0815"}
    assert "pair feishu:work" in capsys.readouterr().out


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("", "app_secret: missing"),
        ("app_secret\n", "line 1 of standard input sets nothing"),
        ("\nsecret-4711=x\n", "line 2 of standard input"),
        (lines(app_id="cli_1", app_secret="secret-4711"), "verification_token or encrypt_key is needed"),
    ],
)
def test_what_is_missing_or_wrong_is_exit_code_2_and_nothing_is_saved(
    home: Home, text: str, said: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    pipe(monkeypatch, text)
    before = home.config.read_bytes()
    assert run(home, "feishu", "--no-check") == 2
    told = capsys.readouterr().err
    assert said in told
    assert "4711" not in told
    assert home.config.read_bytes() == before
    assert not home.credentials("feishu", "main").exists()


def test_secrets_that_are_ours_to_choose_are_made(
    home: Home, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    pipe(monkeypatch)
    assert run(home, "webhook:shop") == 0
    first = saved(home, "webhook", "shop")
    assert first.keys() == {"secrets", "ask_token"}
    assert str(first["ask_token"]) not in capsys.readouterr().out
    pipe(monkeypatch, lines(file_token="x" * 20))
    assert run(home, "webhook:shop") == 0
    assert saved(home, "webhook", "shop") == {**first, "file_token": "x" * 20}


def test_a_damaged_file_of_secrets_is_replaced(
    home: Home, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    pipe(monkeypatch)
    assert run(home, "webhook:shop") == 0
    write_private(home.credentials("webhook", "shop"), b"torn")
    pipe(monkeypatch)
    assert run(home, "webhook:shop") == 0
    assert "not used, and will be replaced" in capsys.readouterr().out
    assert saved(home, "webhook", "shop").keys() == {"secrets", "ask_token"}


def test_an_account_without_secrets_needs_nothing(
    home: Home, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    pipe(monkeypatch)
    assert run(home, "console:local") == 0
    assert "it needs no secrets" in capsys.readouterr().out


def test_another_bot_is_refused(
    home: Home, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    pipe(monkeypatch, lines(**FEISHU))
    assert run(home, "feishu", "--no-check") == 0
    pipe(monkeypatch, lines(**{**FEISHU, "app_id": "cli_2", "app_secret": "another"}))
    assert run(home, "feishu", "--no-check") == 2
    assert "log it out first" in capsys.readouterr().err
    assert saved(home)["app_secret"] == "secret-4711"


# --- typed by a person ----------------------------------------------------------------------------


def test_a_person_is_asked_and_secrets_are_not_shown(home: Home, monkeypatch: pytest.MonkeyPatch) -> None:
    person = sits(monkeypatch, "n", "", "cli_1", " secret-4711 ", "", "key-0815")
    assert run(home, "feishu", "--no-check") == 0
    assert "[Y/n]" in person.asked[0]
    assert person.asked[1:3] == ["app_id (from the app's credentials page): "] * 2
    assert person.hidden == [
        "app_secret (from the app's credentials page): ",
        "verification_token (from its events page; Enter: none): ",
        "encrypt_key (from its events page; Enter: none): ",
    ]
    assert saved(home) == {"app_secret": "secret-4711", "encrypt_key": "key-0815"}


def test_a_person_is_asked_again_for_what_was_wrong_alone(
    home: Home, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    person = sits(monkeypatch, "n", "wrong", "secret-4711", "", "key-0815", "still wrong", "cli_1")
    assert run(home, "feishu", "--no-check") == 0
    assert "app_id: must begin with cli_" in capsys.readouterr().out
    assert person.asked[-2:] == ["app_id (from the app's credentials page): "] * 2
    assert saved(home) == {"app_secret": "secret-4711", "encrypt_key": "key-0815"}


def test_where_one_of_two_is_needed_both_are_asked_for_again(
    home: Home, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    person = sits(monkeypatch, "n", "cli_1", "secret-4711", "", "", "", "key-0815")
    assert run(home, "feishu", "--no-check") == 0
    assert [prompt.partition(" ")[0] for prompt in person.asked[-2:]] == ["verification_token", "encrypt_key"]


def test_a_wrong_value_that_the_environment_gives_is_typed_instead(
    home: Home, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("TURNBRIDGE_FEISHU_APP_ID", "wrong")
    sits(monkeypatch, "secret-4711", "", "key-0815", "cli_1")
    assert run(home, "feishu", "--no-check") == 0
    assert load(home.config).channels["feishu"]["main"]["app_id"] == "cli_1"


def test_a_wrong_secret_is_left_out_by_enter_where_none_is_needed(
    home: Home, monkeypatch: pytest.MonkeyPatch
) -> None:
    sits(monkeypatch, "", "a b", "", "", "")
    assert run(home, "webhook:shop") == 0
    assert saved(home, "webhook", "shop")["ask_token"] not in ("", "a b")


def test_what_no_answer_mends_is_told_at_once_and_nothing_is_saved(
    home: Home, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("TURNBRIDGE_FEISHU_OWNER", "Alice")
    sits(monkeypatch, "cli_1", "secret-4711", "", "key-0815")
    assert run(home, "feishu", "--no-check") == 2
    assert "owner: must be ids" in capsys.readouterr().err
    assert not home.credentials("feishu", "main").exists()


def test_enter_keeps_what_is_saved_or_makes_what_is_ours(home: Home, monkeypatch: pytest.MonkeyPatch) -> None:
    person = sits(monkeypatch, *[""] * 4)
    assert run(home, "webhook:shop") == 0
    assert person.hidden[0] == "secrets (they verify what comes in, whsec_…; Enter: a new one is made): "
    first = saved(home, "webhook", "shop")
    person = sits(monkeypatch, "", "", "token-0001", "")
    assert run(home, "webhook:shop") == 0
    assert person.hidden[0].endswith("Enter: as it is): ")
    assert saved(home, "webhook", "shop") == {**first, "ask_token": "token-0001"}


def test_input_that_ends_signs_nobody_in(
    home: Home, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    sits(monkeypatch, "n", "cli_1", None)
    assert run(home, "feishu") == 2
    assert "nothing was signed in" in capsys.readouterr().err


# --- the platform, a scan, the daemon -------------------------------------------------------------


async def login(home: Home, *args: str) -> int:
    return await asyncio.to_thread(run, home, *args)


async def test_the_platform_is_asked_before_anything_is_saved(
    home: Home, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    async with FakeFeishu() as fake:
        given = {**FEISHU, "app_id": fake.app_id, "base": fake.base}
        pipe(monkeypatch, lines(**given))
        assert await login(home, "feishu") == 1
        assert (
            "nothing was saved: the app id and its secret do not belong together" in capsys.readouterr().err
        )
        assert not home.credentials("feishu", "main").exists()
        pipe(monkeypatch, lines(**{**given, "app_secret": fake.app_secret}))
        assert await login(home, "feishu") == 0
        assert "The platform knows the bot: Turnbridge" in capsys.readouterr().out
        assert saved(home)["app_secret"] == fake.app_secret


async def test_what_the_platform_refuses_is_asked_for_again_and_enter_keeps_the_rest(
    home: Home, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    async with FakeFeishu() as fake:
        monkeypatch.setenv("TURNBRIDGE_FEISHU_BASE", fake.base)
        person = sits(monkeypatch, fake.app_id, "mistyped", "", "key-0815", "", fake.app_secret, "", "")
        assert await login(home, "feishu") == 0
    assert "the app id and its secret do not belong together" in capsys.readouterr().out
    assert person.asked[4:] == [
        f"{key} (from {page}; Enter: as it was typed): "
        for key, page in [
            ("app_id", "the app's credentials page"),
            ("app_secret", "the app's credentials page"),
        ]
    ] + [
        "verification_token (from its events page; Enter: none): ",
        "encrypt_key (from its events page; Enter: as it was typed): ",
    ]
    assert saved(home) == {"app_secret": fake.app_secret, "encrypt_key": "key-0815"}


async def test_a_platform_that_gives_no_answer_is_asked_again_with_what_was_typed(
    home: Home, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    async with FakeFeishu() as fake:
        proofs = iter([UnreachableError("no answer")])

        async def proven(signed: Signed, *, asks: bool) -> Proof:
            if (error := next(proofs, None)) is not None:
                raise error
            return Proof(None, is_pushed=True)

        monkeypatch.setattr(signing, "proven", proven)
        monkeypatch.setenv("TURNBRIDGE_FEISHU_BASE", fake.base)
        person = sits(monkeypatch, fake.app_id, fake.app_secret, "", "key-0815", "")
        assert await login(home, "feishu") == 0
    assert "no answer" in capsys.readouterr().out
    assert "Enter: ask the platform again" in person.asked[-1]
    assert saved(home)["app_secret"] == fake.app_secret


async def test_without_an_answer_a_person_may_save_it_unchecked_or_give_up(
    home: Home, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("TURNBRIDGE_FEISHU_BASE", f"http://127.0.0.1:{free_port()}")
    typed = ["cli_1", "secret-4711", "", "key-0815"]
    sits(monkeypatch, *typed, "no")
    assert await login(home, "feishu") == 1
    assert "nothing was saved" in capsys.readouterr().err
    assert not home.credentials("feishu", "main").exists()
    sits(monkeypatch, *typed, "save")
    assert await login(home, "feishu") == 0
    assert saved(home)["app_secret"] == "secret-4711"


async def test_settings_that_do_not_fit_the_secrets_are_exit_code_2(
    home: Home, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    pipe(monkeypatch, lines(callback_url="https://shop.example/bot", callback_secrets=""))
    assert await login(home, "webhook:shop") == 2
    assert "callback_secrets" in capsys.readouterr().err


def test_what_signs_the_posts_to_a_callback_is_made_when_it_is_needed(
    home: Home, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    pipe(monkeypatch, lines(callback_url="https://shop.example/bot"))
    assert run(home, "webhook:posted") == 0
    assert saved(home, "webhook", "posted").keys() == {"secrets", "callback_secrets"}
    said = capsys.readouterr().out
    assert "Made for it: secrets, callback_secrets" in said
    assert "whsec_" not in said
    pipe(monkeypatch)
    assert run(home, "webhook:asked") == 0
    before = saved(home, "webhook", "asked")
    pipe(monkeypatch, lines(callback_url="https://shop.example/bot"))
    capsys.readouterr()
    assert run(home, "webhook:asked") == 0
    after = saved(home, "webhook", "asked")
    assert after == {**before, "callback_secrets": after["callback_secrets"]}
    assert "Made for it: callback_secrets" in capsys.readouterr().out


async def test_a_scan_makes_the_bot_its_owner_and_asks_for_the_rest(
    home: Home, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    async with FakeRegistration(interval=0.01) as fake:
        monkeypatch.setattr(qr, "show", lambda text: fake.scan("ou_me"))
        write_private(home.config, f'[channels.feishu.main]\naccounts_base = "{fake.base}"\n'.encode())
        person = sits(monkeypatch, "", "key-0815")
        assert await login(home, "feishu", "--scan", "--no-check") == 0
    said = capsys.readouterr().out
    assert f"{fake.base}/verify/" in said
    assert "It is good for 10 minutes" in said
    assert [prompt.partition(" ")[0] for prompt in person.asked] == ["verification_token", "encrypt_key"]
    assert saved(home) == {"app_secret": "scanned-app-secret", "encrypt_key": "key-0815"}
    table = load(home.config).channels["feishu"]["main"]
    assert (table["app_id"], table["owner"]) == ("cli_scanned0001", "ou_me")


async def test_the_platform_that_is_played_here_is_signed_in_by_a_scan(
    home: Home, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    async with FakeFeishu() as fake:
        fake.registration.interval = 0.01
        monkeypatch.setattr(qr, "show", lambda text: fake.registration.scan())
        monkeypatch.setenv("TURNBRIDGE_FEISHU_BASE", fake.base)
        monkeypatch.setenv("TURNBRIDGE_FEISHU_ACCOUNTS_BASE", fake.base)
        pipe(monkeypatch, lines(verification_token=fake.token))
        assert await login(home, "feishu", "--scan") == 0
    assert "The platform knows the bot: Turnbridge" in capsys.readouterr().out
    table = load(home.config).channels["feishu"]["main"]
    assert (table["app_id"], table["owner"], table["base"]) == (fake.app_id, "ou_fake_owner", fake.base)


async def test_whoever_has_given_nothing_is_offered_a_scan(
    home: Home, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    async with FakeRegistration(interval=0.01) as fake:
        monkeypatch.setattr(signin, "ACCOUNTS", fake.base)
        monkeypatch.setattr(qr, "show", lambda text: fake.decline())
        sits(monkeypatch, "y")
        assert await login(home, "feishu") == 1
        assert "declined" in capsys.readouterr().err


async def test_case_88_a_running_daemon_starts_the_new_account_and_the_exit_code_tells(
    home: Home, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    async with daemon(home), FakeFeishu() as fake:
        given = {**FEISHU, "app_id": fake.app_id, "app_secret": fake.app_secret, "base": fake.base}
        pipe(monkeypatch, lines(**given, owner="ou_1"))
        assert await login(home, "feishu") == 0
        assert "feishu:main: connected" in capsys.readouterr().out
        pipe(monkeypatch)
        assert await login(home, "webhook:shop") == 0
        assert "webhook:shop: connected" in capsys.readouterr().out
        pipe(monkeypatch, lines(app_secret="revoked"))
        assert await login(home, "feishu", "--no-check") == 1
        assert "feishu:main: failed: the platform refused the account" in capsys.readouterr().out


async def test_cases_23_and_24_signing_in_touches_no_other_and_needs_no_restart(
    home: Home, monkeypatch: pytest.MonkeyPatch
) -> None:
    keep(home, "demo")
    write_private(home.config, home.config.read_bytes() + b"[channels.webhook.demo]\n")
    async with daemon(home):
        before = await asyncio.to_thread(ask_daemon, home, {"action": "status"})
        pipe(monkeypatch)
        assert await login(home, "webhook:shop") == 0
        pipe(monkeypatch, lines(ask_token="renewed-4711"))
        assert await login(home, "webhook:shop") == 0
        after = await asyncio.to_thread(ask_daemon, home, {"action": "status"})
        assert after["components"][0] == before["components"][0]


async def test_after_a_logout_another_bot_may_have_the_name(
    home: Home, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    async with daemon(home), FakeFeishu() as first, FakeFeishu("cli_fake0002", "second-secret") as second:

        async def sign_in(fake: FakeFeishu) -> int:
            given = {"app_id": fake.app_id, "app_secret": fake.app_secret, "base": fake.base}
            pipe(monkeypatch, lines(**{**FEISHU, **given}))
            return await login(home, "feishu")

        assert await sign_in(first) == 0
        assert await sign_in(second) == 2
        assert "log it out first" in capsys.readouterr().err
        out = ["channels", "logout", "feishu:main", "--home", str(home.root)]
        assert await asyncio.to_thread(main, out) == 0
        assert await sign_in(second) == 0
        assert "feishu:main: connected" in capsys.readouterr().out


def test_all_that_is_written_is_for_its_owner_alone(home: Home, monkeypatch: pytest.MonkeyPatch) -> None:
    pipe(monkeypatch, lines(**FEISHU))
    previous = os.umask(0)
    try:
        assert run(home, "feishu", "--no-check") == 0
    finally:
        os.umask(previous)
    modes = {path.relative_to(home.root): stat.S_IMODE(path.stat().st_mode) for path in home.root.rglob("*")}
    assert {mode for path, mode in modes.items() if (home.root / path).is_dir()} == {0o700}
    assert {mode for path, mode in modes.items() if (home.root / path).is_file()} == {0o600}
    assert {Path("config.toml"), Path("credentials/feishu/main.json"), Path("state/config.lock")} < {*modes}


async def test_an_account_that_is_switched_off_stays_so(
    home: Home, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    write_private(home.config, b"[web]\nport = 0\n[channels.webhook.shop]\nenabled = false\n")
    async with daemon(home):
        pipe(monkeypatch)
        assert await login(home, "webhook:shop") == 0
        assert "webhook:shop: disabled" in capsys.readouterr().out


def test_an_account_that_somebody_removes_meanwhile_is_told(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    pipe(monkeypatch)
    with socket_daemon(status()) as fake:
        assert run(fake.home, "webhook:shop") == 1
    assert "is gone" in capsys.readouterr().err
