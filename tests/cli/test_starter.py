"""What ``run --init`` writes can be used at once, is private, and is different each time."""

import base64
import json
import os
import stat
from pathlib import Path

from bridge import registry
from bridge.accounts import AccountSetup, accounts
from bridge.cli.starter import FILE_HOST, head, secrets, write
from bridge.config import load
from bridge.paths import Home


def test_what_is_written_is_an_account_that_can_run(tmp_path: Path) -> None:
    home = Home(tmp_path / "new")
    write(home)
    console, account = accounts(load(home.config), home, registry.channels(), {})
    assert isinstance(console, AccountSetup), console
    assert (console.id, console.settings.owner) == ("console:local", "you")
    assert isinstance(account, AccountSetup), account
    assert (account.id, account.settings.owner) == ("webhook:demo", "you")
    assert account.settings.model_dump()["file_hosts"] == (FILE_HOST,)
    assert account.settings.model_dump()["private_hosts"] == (FILE_HOST,)


def test_everything_is_for_its_owner_alone(tmp_path: Path) -> None:
    home = Home(tmp_path / "new")
    old = os.umask(0)
    try:
        write(home)
    finally:
        os.umask(old)
    for path in [home.root, *home.root.rglob("*")]:
        assert stat.S_IMODE(path.stat().st_mode) == (0o700 if path.is_dir() else 0o600), path


def test_secrets_are_strong_and_never_the_same() -> None:
    first, second = secrets(), secrets()
    assert first != second
    (secret,) = json.loads(json.dumps(first))["secrets"]
    assert len(base64.b64decode(secret.removeprefix("whsec_"))) == 32
    assert len(str(first["ask_token"])) >= 43


def test_no_secret_is_in_the_settings(tmp_path: Path) -> None:
    home = Home(tmp_path)
    write(home)
    text = home.config.read_text()
    assert "whsec_" not in text
    assert "token" not in text


def test_secrets_that_are_there_stay(tmp_path: Path) -> None:
    home = Home(tmp_path)
    write(home)
    before = home.credentials("webhook", "demo").read_bytes()
    home.config.unlink()
    write(home)
    assert home.credentials("webhook", "demo").read_bytes() == before


def test_the_commands_in_the_settings_are_for_their_home_whatever_its_name(tmp_path: Path) -> None:
    home = Home(tmp_path / "a b\n[c]")
    write(home)
    lines = home.config.read_text().splitlines()
    assert lines[2].endswith(f"turnbridge config check --home '{tmp_path}/a b [c]'")
    assert lines[3].endswith(f"turnbridge reload --home '{tmp_path}/a b [c]'")
    assert load(home.config).web.port == 8470


def test_the_first_lines_name_only_what_is_there_after_any_way_of_installing(tmp_path: Path) -> None:
    said = head(Home(tmp_path / "new"))
    assert [line.split()[2:4] for line in said.splitlines()[1:]] == [
        ["config", "show"], ["config", "check"], ["reload", "--home"]
    ]  # fmt: skip
    assert "example" not in said
