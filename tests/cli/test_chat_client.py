"""The client of the console's socket: what it says, what it makes of the answers, and of none."""

import json
import socket
import threading
from pathlib import Path

import pytest

from bridge.cli.chat_client import HungUpError, LocalFile, NotReadyError, Part, Progress, ReplyFile, cleaned
from bridge.cli.common import NotRunningError
from bridge.errors import BridgeError
from tests.cli.console import client_of, console_home, fake_console, part, turn


def test_a_message_goes_out_with_its_files_and_a_recall_by_its_id() -> None:
    with console_home() as home, fake_console(home) as fake:
        client = client_of(home, "主")
        assert client.send("m1", "看", [LocalFile(Path("/tmp/图 .png"), 5)]) == "accepted"
        fake.outcome = "busy"
        assert client.send("m2", "hi") == "busy"
        client.recall("m1")
        client.send("m3", "half \udce5")
        assert fake.posted.pop()["text"] == "half ?"
        assert fake.posted == [
            {
                "conversation": "主", "type": "message", "id": "m1", "text": "看",
                "files": [{"path": "/tmp/图 .png", "size": 5}],
            },
            {"conversation": "主", "type": "message", "id": "m2", "text": "hi", "files": []},
            {"conversation": "主", "type": "recall", "id": "m1"},
        ]  # fmt: skip


def test_replies_are_parts_with_texts_and_files() -> None:
    with console_home() as home, fake_console(home) as fake:
        file = {"path": "/o/1-a.png", "name": "a.png", "mime": "image/png", "size": 9}
        fake.reply(part(7, "好", parts=2), part(8, file=file, part=2, parts=2))
        first, second = client_of(home).replies(3, 0)
        assert first == Part(7, "p7", "r7", "m1", "好", "", None, False)
        assert second.file == ReplyFile(Path("/o/1-a.png"), "a.png", "image/png", 9)
        assert second.final
        assert fake.asked == [("replies", {"conversation": "main", "after": "3", "wait": "0.000"})]


def test_a_turn_is_followed() -> None:
    with console_home() as home, fake_console(home) as fake:
        fake.shows("m1", turn(4, "so far", "wait", "1 of 3"))
        assert client_of(home).progress("m1", 3, 0) == Progress(4, "so far", "wait", "1 of 3")
        assert client_of(home).progress("m2", 0, 0).over


def test_nothing_that_is_told_can_play_with_a_terminal() -> None:
    bad = "a\x1b[2J\u202eb\r\nc\td\x07"
    assert cleaned(bad) == "a\ufffd[2J\ufffdb\nc\td\ufffd"
    with console_home() as home, fake_console(home) as fake:
        fake.reply(part(1, bad, notice="x\x1b"))
        fake.shows("m1", turn(1, bad, bad, bad))
        (told,) = client_of(home).replies(0, 0)
        progress = client_of(home).progress("m1", 0, 0)
        for text in (told.text, told.notice, progress.text, progress.tool, progress.progress):
            assert "\x1b" not in text


def test_what_passes_by_itself_is_told_from_what_does_not() -> None:
    with console_home() as home:
        with pytest.raises(NotRunningError, match="start it with: turnbridge run"):
            client_of(home).send("m1", "hi")
        with fake_console(home) as fake:
            for status, kind, text in (
                (503, NotReadyError, "is not ready"),
                (500, NotReadyError, "is not ready"),
                (None, HungUpError, "hung up"),
                (404, BridgeError, "console:local is not served: look at turnbridge status"),
                (413, BridgeError, "the message is too long, over about 1 MiB: send a part"),
                (400, BridgeError, "status 400"),
            ):
                fake.refusals.append(status)
                with pytest.raises(kind, match=text) as error:
                    client_of(home).replies(0, 0)
                assert "\x1b" not in str(error.value)


def test_an_answer_that_is_cut_is_a_hang_up() -> None:
    with console_home() as home, socket.socket(socket.AF_UNIX) as server:
        server.bind(str(home.console_socket))
        server.listen()

        def serve() -> None:
            connection, _ = server.accept()
            with connection:
                connection.recv(65_536)
                connection.sendall(b"HTTP/1.1 200 OK\r\nContent-Length: 99\r\n\r\n" + json.dumps({}).encode())

        thread = threading.Thread(target=serve)
        thread.start()
        with pytest.raises(HungUpError):
            client_of(home).replies(0, 0)
        thread.join()
