import errno
import os
import stat
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from bridge import paths
from bridge.errors import ConfigError, ExhaustedError
from bridge.paths import Home, plain_name, read_private, unserved, write_private
from tests.scarce import no_descriptors


def mode(path: Path) -> int:
    return stat.S_IMODE(path.stat().st_mode)


@pytest.fixture
def home(tmp_path: Path) -> Home:
    return Home(tmp_path / "home")


def test_the_option_wins_over_the_environment_and_that_over_the_default(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv("HOME", "/home/ada")
    monkeypatch.delenv("TURNBRIDGE_HOME", raising=False)
    assert Home.resolve().root == Path("/home/ada/.turnbridge")
    monkeypatch.setenv("TURNBRIDGE_HOME", "~/elsewhere")
    assert Home.resolve().root == Path("/home/ada/elsewhere")
    assert Home.resolve("/srv/t").root == Path("/srv/t")
    assert Home.resolve("run").root == Path.cwd() / "run"


def test_a_user_without_a_home_directory_is_told_what_to_give() -> None:
    with pytest.raises(ConfigError, match="--home"):
        Home.resolve("~no-such-user-here/x")


def test_everything_lies_where_the_operators_look_for_it() -> None:
    home = Home(Path("/h"))
    assert [str(path) for path in (home.config, home.socket, home.console_socket)] == [
        "/h/config.toml",
        "/h/state/server.sock",
        "/h/state/console.sock",
    ]
    assert [str(path) for path in (home.db, home.daemon_lock, home.outbox)] == [
        "/h/state/turnbridge.db",
        "/h/state/daemon.lock",
        "/h/state/media/outbox",
    ]
    assert str(home.credentials("feishu", "main")) == "/h/credentials/feishu/main.json"
    assert str(home.inbox("feishu", "main", "0123abcd")) == "/h/state/media/feishu/main/0123abcd"


def test_a_socket_path_over_the_limit_is_an_error_of_configuration() -> None:
    fits = Home(Path("/" + "h" * (100 - len("//state/server.sock"))))
    assert len(str(fits.socket)) == 100
    with pytest.raises(ConfigError, match="shorter --home"):
        _ = Home(Path(f"{fits.root}h")).socket


@pytest.mark.parametrize("name", ["", ".", "..", "a/b", "a\x00", "ä", "a b", "a\n", "a.json", "a" * 65])
def test_a_name_that_is_no_plain_name_makes_no_path(name: str) -> None:
    home = Home(Path("/h"))
    with pytest.raises(ConfigError):
        home.credentials("feishu", name)
    with pytest.raises(ConfigError):
        home.credentials(name, "main")
    with pytest.raises(ConfigError):
        home.inbox("feishu", "main", name)


@given(st.text())
def test_whatever_passes_as_a_plain_name_is_one_part_of_a_path(name: str) -> None:
    try:
        plain_name(name)
    except ConfigError:
        return
    assert Path("/h", name).parent == Path("/h")


def test_directories_from_the_home_down_are_closed_to_others(home: Home) -> None:
    home.root.mkdir(mode=0o755)
    made = home.private_dir(home.inbox("feishu", "main", "ab"))
    for path in (home.root, home.state, home.state / "media" / "feishu" / "main", made):
        assert mode(path) == 0o700
    assert home.private_dir(made) == made
    assert home.private_dir(home.root) == home.root


def test_a_directory_that_stood_open_is_closed(home: Home) -> None:
    home.private_dir(home.state).chmod(0o755)
    home.private_dir(home.outbox)
    assert mode(home.state) == 0o700


@pytest.mark.parametrize("path", ["..", "state/../../x", "/elsewhere"])
def test_a_directory_outside_the_home_is_refused(home: Home, path: str) -> None:
    with pytest.raises(ConfigError, match="not inside"):
        home.private_dir(home.root / path)


def test_a_link_on_the_way_is_refused_but_the_home_may_be_one(tmp_path: Path) -> None:
    real = tmp_path / "real"
    real.mkdir()
    (tmp_path / "link").symlink_to(real)
    home = Home(tmp_path / "link")
    assert mode(home.private_dir(home.state)) == 0o700
    (real / "credentials").symlink_to(tmp_path)
    with pytest.raises(ConfigError, match="cannot make"):
        home.private_dir(home.root / "credentials")


def test_a_file_is_written_whole_and_for_its_owner_alone(tmp_path: Path) -> None:
    path = tmp_path / "token.json"
    write_private(path, b"one")
    write_private(path, b"two")
    assert (read_private(path), mode(path)) == (b"two", 0o600)
    assert [found.name for found in tmp_path.iterdir()] == ["token.json"]


def test_a_failed_write_leaves_the_old_file_and_nothing_else(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "token.json"
    write_private(path, b"one")

    def full(_: int) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(os, "fsync", full)
    with pytest.raises(ConfigError, match="No space left"):
        write_private(path, b"two")
    assert path.read_bytes() == b"one"
    assert [found.name for found in tmp_path.iterdir()] == ["token.json"]


def test_what_a_killed_writer_left_goes_with_a_later_write_and_what_is_being_written_stays(
    tmp_path: Path,
) -> None:
    path, old, new, other = (
        tmp_path / name
        for name in ("token.json", ".token.json.0a1b2c3d", ".token.json.4e5f6a7b", ".token.json.mine")
    )
    for each in (old, new, other):
        write_private(each, b"secret")
    for each in (old, other):
        os.utime(each, (1, 1))
    write_private(path, b"x")
    assert {found.name for found in tmp_path.iterdir()} == {path.name, new.name, other.name}


def test_writing_into_a_directory_that_is_missing_says_why(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match="No such file"):
        write_private(tmp_path / "none" / "x", b"")


def test_the_file_and_its_directory_are_synced_in_that_order_around_the_rename(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    seen: list[str] = []
    path = tmp_path / "token.json"

    def fsync(handle: int) -> None:
        kind = "directory" if stat.S_ISDIR(os.fstat(handle).st_mode) else "file"
        seen.append(f"{kind}, {'renamed' if path.exists() else 'not renamed'}")

    monkeypatch.setattr(os, "fsync", fsync)
    write_private(path, b"x")
    assert seen == ["file, not renamed", "directory, renamed"]


def test_a_missing_file_a_link_a_directory_and_a_pipe_are_no_private_files(tmp_path: Path) -> None:
    (tmp_path / "file").write_bytes(b"x")
    (tmp_path / "file").chmod(0o600)
    (tmp_path / "link").symlink_to(tmp_path / "file")
    (tmp_path / "folder").mkdir(mode=0o700)
    os.mkfifo(tmp_path / "pipe", 0o600)
    reasons = {"none": "missing", "link": "symbolic link", "folder": "no regular", "pipe": "no regular"}
    for name, reason in reasons.items():
        with pytest.raises(ConfigError, match=reason):
            read_private(tmp_path / name)
    with pytest.raises(ConfigError, match="Not a directory"):
        read_private(tmp_path / "file" / "x")


def test_a_file_that_cannot_even_be_looked_at_is_told(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match="File name too long"):
        read_private(tmp_path / ("a" * 300))


def test_that_the_system_has_no_descriptors_is_no_fault_of_a_file(tmp_path: Path) -> None:
    write_private(tmp_path / "file", b"x")
    with no_descriptors(), pytest.raises(ExhaustedError, match="Too many open files"):
        read_private(tmp_path / "file")


@pytest.mark.parametrize("bits", [0o640, 0o620, 0o610, 0o604, 0o602, 0o601])
def test_any_right_of_others_closes_a_file_to_us(tmp_path: Path, bits: int) -> None:
    path = tmp_path / "token.json"
    write_private(path, b"x")
    path.chmod(bits)
    with pytest.raises(ConfigError, match="chmod 600"):
        read_private(path)


def test_a_file_over_the_limit_is_not_read(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(paths, "PRIVATE_FILE_BYTES", 4)
    write_private(tmp_path / "fits", b"1234")
    write_private(tmp_path / "over", b"12345")
    assert read_private(tmp_path / "fits") == b"1234"
    with pytest.raises(ConfigError, match="over 4 bytes"):
        read_private(tmp_path / "over")


def test_a_private_file_of_another_user_is_refused_also_to_root(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "main.json"
    write_private(path, b"{}")
    assert read_private(path) == b"{}"
    monkeypatch.setattr(os, "geteuid", lambda: path.stat().st_uid + 1)
    with pytest.raises(ConfigError, match=r"main\.json belongs to another user: run chown \d+ on it"):
        read_private(path)


def test_a_socket_without_descriptors_is_told_how_to_allow_more_and_any_other_its_own_cure() -> None:
    for number in (errno.EMFILE, errno.ENFILE):
        lacking = unserved(OSError(number, "x"), "cannot listen", "stop the other")
        assert isinstance(lacking, ExhaustedError)
        assert str(lacking).startswith("cannot listen: allow more of them")
    taken = OSError(errno.EADDRINUSE, "x")
    for cure, text in (("stop the other", "cannot listen: stop the other"), ("", "cannot listen")):
        told = unserved(taken, "cannot listen", cure)
        assert isinstance(told, ConfigError)
        assert str(told) == text
