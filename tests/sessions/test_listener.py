import errno
import os
import socket
import stat
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest

from bridge.errors import ConfigError, ExhaustedError
from bridge.sessions.listener import listening


@pytest.fixture
def path() -> Iterator[Path]:
    with tempfile.TemporaryDirectory(prefix="tb-") as folder:  # short, as sockets want it
        yield Path(folder) / "state" / "server.sock"


def connect(path: Path) -> None:
    with socket.socket(socket.AF_UNIX) as client:
        client.connect(str(path))


def test_the_folder_the_socket_and_the_lock_are_for_their_owner_alone(path: Path) -> None:
    path.parent.mkdir(mode=0o755)
    with listening(path):
        modes = [
            stat.S_IMODE(one.stat().st_mode) for one in (path.parent, path, path.with_name("server.lock"))
        ]
        assert modes == [0o700, 0o600, 0o600]
        connect(path)


def test_the_socket_is_removed_at_the_end_and_the_lock_file_stays(path: Path) -> None:
    for _ in range(2):
        with listening(path):
            assert path.exists()
        assert not path.exists()
        assert path.with_name("server.lock").exists()


def test_two_servers_of_one_home_are_refused(path: Path) -> None:
    with listening(path):
        with pytest.raises(ConfigError, match="locked"), listening(path):
            pass
        connect(path)  # the first one is unharmed


def test_a_server_that_holds_no_lock_is_noticed_by_its_answer(path: Path) -> None:
    path.parent.mkdir()
    with socket.socket(socket.AF_UNIX) as other:
        other.bind(str(path))
        other.listen()
        with pytest.raises(ConfigError, match="runs already"), listening(path):
            pass
    assert path.exists()


def test_case_81_a_server_that_is_too_busy_to_answer_is_one(
    path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path.parent.mkdir()
    with socket.socket(socket.AF_UNIX) as other, socket.socket(socket.AF_UNIX) as waiting:
        other.bind(str(path))
        other.listen(0)
        waiting.connect(str(path))
        monkeypatch.setattr("bridge.sessions.listener._PROBE_SECONDS", 0.01)
        with pytest.raises(ConfigError, match="runs already"), listening(path):
            pass


def test_a_dead_socket_is_replaced(path: Path) -> None:
    path.parent.mkdir()
    with socket.socket(socket.AF_UNIX) as dead:
        dead.bind(str(path))
    with listening(path):
        connect(path)


def test_what_is_no_socket_is_left_alone(path: Path) -> None:
    path.parent.mkdir()
    path.write_text("precious")
    with pytest.raises(ConfigError, match="no socket"), listening(path):
        pass
    assert path.read_text() == "precious"


def test_a_lock_that_is_a_link_is_refused(path: Path, tmp_path: Path) -> None:
    path.parent.mkdir()
    path.with_name("server.lock").symlink_to(tmp_path / "elsewhere")
    with pytest.raises(ConfigError), listening(path):
        pass
    assert not (tmp_path / "elsewhere").exists()


def test_a_path_that_is_too_long_says_so(path: Path) -> None:
    with pytest.raises(ConfigError, match="cannot serve"), listening(path.with_name("s" * 200)):
        pass


@pytest.mark.parametrize("call", ["os.open", "socket.socket.__init__", "socket.socket.bind"])
def test_a_system_that_lacks_descriptors_is_no_mistake_of_the_settings(
    call: str, path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def scarce(*_: object, **__: object) -> int:
        raise OSError(errno.EMFILE, os.strerror(errno.EMFILE))

    monkeypatch.setattr(call, scarce)
    with pytest.raises(ExhaustedError, match="Too many open files: allow more of them"), listening(path):
        pass


def test_a_lock_that_fails_otherwise_is_closed(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def broken(lock: int, operation: int) -> None:
        raise OSError(95, os.strerror(95))

    before = len(os.listdir("/dev/fd"))
    monkeypatch.setattr("fcntl.flock", broken)
    with pytest.raises(ConfigError), listening(path):
        pass
    assert len(os.listdir("/dev/fd")) == before
