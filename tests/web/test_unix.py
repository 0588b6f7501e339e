"""A Unix socket of the same user's alone, and what may lie in its way."""

import os
import socket
import stat
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest

from bridge.errors import ConfigError
from bridge.web.unix import bound


@pytest.fixture
def folder() -> Iterator[Path]:
    with tempfile.TemporaryDirectory(prefix="tb-", dir="/tmp") as short:
        yield Path(short)


def mode(path: Path) -> int:
    return stat.S_IMODE(path.stat().st_mode)


def test_it_is_for_its_owner_alone_and_gone_at_the_end(folder: Path) -> None:
    path, before = folder / "state" / "console.sock", os.umask(0)
    try:
        with bound(path) as server:
            assert (mode(path), mode(path.parent)) == (0o600, 0o700)
            assert server.getsockname() == str(path)
            assert not server.getblocking()
    finally:
        os.umask(before)
    assert not path.exists()


def test_a_socket_that_was_left_behind_is_replaced(folder: Path) -> None:
    path = folder / "console.sock"
    with socket.socket(socket.AF_UNIX) as left:
        left.bind(str(path))
    with bound(path) as server:
        server.listen()
        with socket.socket(socket.AF_UNIX) as caller:
            caller.connect(str(path))


def test_what_is_no_socket_stays_and_is_told(folder: Path) -> None:
    (path := folder / "console.sock").write_text("mine")
    with pytest.raises(ConfigError, match="is no socket: move it away"), bound(path):
        pass
    assert path.read_text() == "mine"


def test_a_place_that_cannot_be_used_is_an_operators_error(folder: Path) -> None:
    (folder / "file").write_text("")
    with pytest.raises(ConfigError, match="cannot serve on"), bound(folder / "file" / "console.sock"):
        pass
    with pytest.raises(ConfigError, match="cannot serve on"), bound(folder / ("x" * 200)):
        pass
