"""Files that are served on this machine for a while."""

import socket
import urllib.error
import urllib.request

import pytest

from bridge.cli.file_server import served
from bridge.cli.webhook_client import File
from bridge.errors import BridgeError

PICTURE = File("图.jpg", "image/jpeg", b"x" * 200_000)


def test_a_file_is_there_under_an_address_of_its_own_while_the_block_runs() -> None:
    with served([PICTURE, PICTURE], 0) as (first, second):
        assert first.url != second.url
        with urllib.request.urlopen(first.url, timeout=5) as answer:
            assert answer.read() == PICTURE.data
            assert answer.headers["content-type"] == "image/jpeg"
        with pytest.raises(urllib.error.HTTPError, match="404"):
            urllib.request.urlopen(first.url + "x", timeout=5)
    with pytest.raises(urllib.error.URLError):
        urllib.request.urlopen(first.url, timeout=5)


def test_a_port_that_is_taken_is_told() -> None:
    with (
        socket.create_server(("127.0.0.1", 0)) as taken,
        pytest.raises(BridgeError, match="is taken"),
        served([PICTURE], taken.getsockname()[1]),
    ):
        pass
