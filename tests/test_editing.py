import fcntl
import os
import stat
from pathlib import Path

import pytest

from bridge import editing
from bridge.editing import remove_account, set_keys
from bridge.errors import ConfigError
from bridge.paths import Home, write_private


@pytest.fixture
def home(tmp_path: Path) -> Home:
    home = Home(tmp_path / "home")
    home.private_dir(home.root)
    return home


def test_an_account_s_keys_are_set_and_the_file_stays_private(home: Home) -> None:
    write_private(home.config, b"# mine\n[channels.feishu.main]\napp_id = 'cli_1'\n")
    set_keys(home.config, "feishu", "main", {"owner": "ou_1", "enabled": False})
    text = "# mine\n[channels.feishu.main]\napp_id = 'cli_1'\nowner = \"ou_1\"\nenabled = false\n"
    assert home.config.read_text() == text
    assert stat.S_IMODE(home.config.stat().st_mode) == 0o600
    assert sorted(path.name for path in home.root.iterdir()) == ["config.toml", "state"]


def test_a_file_that_is_not_there_is_made(home: Home) -> None:
    set_keys(home.config, "console", "local", {"enabled": True})
    assert home.config.read_text() == "[channels.console.local]\nenabled = true\n"
    assert stat.S_IMODE(home.config.stat().st_mode) == 0o600


def test_a_file_that_is_not_there_begins_as_it_is_told(home: Home) -> None:
    set_keys(home.config, "console", "local", {"enabled": True}, fresh=lambda: "# begun\n")
    set_keys(home.config, "console", "local", {"enabled": False}, fresh=lambda: "# begun anew\n")
    assert home.config.read_text() == "# begun\n\n[channels.console.local]\nenabled = false\n"


def test_a_linked_file_is_written_through(home: Home, tmp_path: Path) -> None:
    real = tmp_path / "dotfiles.toml"
    write_private(real, b"[channels.a.b]\nx = 1\n")
    home.config.symlink_to(real)
    set_keys(home.config, "a", "b", {"x": 2})
    assert home.config.is_symlink()
    assert real.read_text() == "[channels.a.b]\nx = 2\n"


def test_an_unchanged_file_is_not_written(home: Home) -> None:
    write_private(home.config, b"[channels.a.b]\nx = 1\n")
    before = home.config.stat().st_ino
    set_keys(home.config, "a", "b", {"x": 1})
    remove_account(home.config, "a", "none")
    assert home.config.stat().st_ino == before


def test_an_account_is_removed_and_its_neighbours_stay(home: Home) -> None:
    write_private(home.config, b"[channels.a.b]\nx = 1\n\n# c\n[channels.a.c]\nx = 1\n")
    remove_account(home.config, "a", "b")
    assert home.config.read_text() == "\n# c\n[channels.a.c]\nx = 1\n"


@pytest.mark.parametrize("name", ["", "a.b", "../x", "a b", "ä"])
def test_a_name_that_is_none_leads_nowhere(home: Home, name: str) -> None:
    with pytest.raises(ConfigError, match="letters, digits"):
        set_keys(home.config, "a", name, {})
    with pytest.raises(ConfigError, match="letters, digits"):
        remove_account(home.config, name, "a")
    assert not home.config.exists()


def test_a_table_that_needs_a_person_is_refused_with_what_to_do_and_nothing_changes(home: Home) -> None:
    write_private(home.config, b"channels = 3\n")
    with pytest.raises(ConfigError, match=r"make it a table \[channels.a.b\] of its own"):
        set_keys(home.config, "a", "b", {"x": 1})
    assert home.config.read_bytes() == b"channels = 3\n"


def test_a_file_with_a_number_of_thousands_of_digits_is_refused_and_stays(home: Home) -> None:
    text = f"[channels.a.b]\ny = {'9' * 5000}\n"
    write_private(home.config, text.encode())
    with pytest.raises(ConfigError, match="thousands of digits"):
        set_keys(home.config, "a", "b", {"x": 1})
    assert home.config.read_text() == text


def test_a_ring_of_links_is_refused_and_stays(home: Home) -> None:
    home.config.symlink_to(home.config)
    with pytest.raises(ConfigError, match="is a symbolic link"):
        set_keys(home.config, "a", "b", {"x": 1})
    assert home.config.is_symlink()


def test_a_broken_or_open_file_is_refused(home: Home) -> None:
    write_private(home.config, b"[oops\n")
    with pytest.raises(ConfigError, match="not TOML"):
        set_keys(home.config, "a", "b", {"x": 1})
    home.config.chmod(0o644)
    with pytest.raises(ConfigError, match="chmod 600"):
        set_keys(home.config, "a", "b", {"x": 1})


def test_whoever_edits_at_the_same_time_is_waited_for_and_told_in_the_end(
    home: Home, monkeypatch: pytest.MonkeyPatch
) -> None:
    home.private_dir(home.state)
    other = os.open(home.state / "config.lock", os.O_RDWR | os.O_CREAT, 0o600)
    fcntl.flock(other, fcntl.LOCK_EX)
    monkeypatch.setattr(editing, "LOCK_SECONDS", 0.0)
    with pytest.raises(ConfigError, match="somebody else edits"):
        set_keys(home.config, "a", "b", {"x": 1})
    monkeypatch.setattr(editing, "LOCK_SECONDS", 5.0)
    monkeypatch.setattr(editing, "sleep", lambda _: os.close(other))  # it is done while we wait
    set_keys(home.config, "a", "b", {"x": 1})
    assert "x = 1" in home.config.read_text()


def test_a_lock_left_behind_by_the_dead_blocks_nobody_and_a_link_in_its_place_is_refused(
    home: Home, tmp_path: Path
) -> None:
    home.private_dir(home.state)
    lock = home.state / "config.lock"
    lock.write_text("99999999")
    set_keys(home.config, "a", "b", {"x": 1})
    assert lock.read_text() == "99999999"
    lock.unlink()
    lock.symlink_to(tmp_path / "elsewhere")
    with pytest.raises(ConfigError, match="cannot open"):
        set_keys(home.config, "a", "b", {"x": 2})
