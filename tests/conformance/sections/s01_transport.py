"""Section 1: how bytes travel, and how a server takes and leaves its socket."""

import fcntl
import os
import socket
import stat
from pathlib import Path

from tests.conformance.client import encode, kinds
from tests.conformance.faults import check, same
from tests.conformance.rules import Need, rule
from tests.conformance.target import Target


@rule("1.1-one-object-per-line", broken_by="crlf-out glued-out")
async def one_object_per_line(to: Target) -> None:
    """Each answer is one JSON object on a line of its own, ended by a single newline."""
    client = await to.session()
    await client.turn()
    for line in client.lines:
        check(line.endswith(b"}\n") and line.startswith(b"{"), f"a line is no bare object: {line[-20:]!r}")


@rule("1.2-utf8", broken_by="latin-out")
async def utf8(to: Target) -> None:
    """Text is UTF-8 in both directions."""
    client = await to.client()
    said = "é 中文 \U0001f600 \u0000".replace("\u0000", "\ufeff")
    client.say("turn.cancel", request_id=said, session_id="s", turn_id="t")
    event = await client.event("error")
    same(event.get("request_id"), said, "what comes back")
    check(said.encode() in client.lines[-1], "the text does not come back as UTF-8")


@rule("1.3-modes", Need.FILES, broken_by="open-modes")
async def modes(to: Target) -> None:
    """The socket is for its user alone, mode 0600, and so is its directory, mode 0700."""
    await to.client()
    same(stat.S_IMODE(to.socket.stat().st_mode), 0o600, "the socket's mode")
    same(stat.S_IMODE(to.socket.parent.stat().st_mode), 0o700, "the directory's mode")


@rule("1.4-lock", Need.FILES, broken_by="no-lock")
async def lock(to: Target) -> None:
    """Who serves holds an exclusive lock on ``server.lock`` beside the socket, a file of mode 0600."""
    path = to.socket.with_name("server.lock")
    same(stat.S_IMODE(path.stat().st_mode), 0o600, "the lock file's mode")
    check(is_locked(path), "nobody holds the lock")


def is_locked(path: Path) -> bool:
    with path.open("rb") as file:
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            return True
        return False


@rule("1.5-one-server", Need.STARTS, broken_by="no-lock")
async def one_server(to: Target) -> None:
    """A second server on the same socket does not start, and the first one goes on."""
    check(not await to.starts(), "a second server started beside the first")
    await (await to.client()).quiet("beside a second server")


@rule("1.6-lock-is-no-link", Need.STARTS, broken_by="follows-links")
async def lock_is_no_link(to: Target) -> None:
    """The lock file is never opened through a symbolic link."""

    def prepare(path: Path) -> None:
        path.parent.mkdir(mode=0o700)
        elsewhere = path.parent.parent / "elsewhere"
        elsewhere.touch(mode=0o600)
        path.with_name("server.lock").symlink_to(elsewhere)

    check(not await to.starts(prepare), "a server locked what a link leads to")


@rule("1.7-live-socket", Need.STARTS, broken_by="takes-live-sockets")
async def live_socket(to: Target) -> None:
    """Where somebody already answers on the socket, no server starts."""
    with socket.socket(socket.AF_UNIX) as other:

        def prepare(path: Path) -> None:
            path.parent.mkdir(mode=0o700)
            other.bind(str(path))
            other.listen()

        check(not await to.starts(prepare), "a server took a socket on which another answers")


@rule("1.8-no-socket", Need.STARTS, broken_by="takes-files")
async def no_socket(to: Target) -> None:
    """What lies at the socket's path and is no socket is not touched: the server does not start."""
    seen = []

    def prepare(path: Path) -> None:
        path.parent.mkdir(mode=0o700)
        path.write_text("precious")
        seen.append(path)

    check(not await to.starts(prepare), "a server started in the place of a file")
    check(seen[0].is_file() and seen[0].read_text() == "precious", "the file is gone")


@rule("1.9-dead-socket", Need.STARTS, broken_by="keeps-dead-sockets")
async def dead_socket(to: Target) -> None:
    """A socket that nobody serves any more is replaced."""

    def prepare(path: Path) -> None:
        path.parent.mkdir(mode=0o755)
        with socket.socket(socket.AF_UNIX) as dead:
            dead.bind(str(path))
        os.chmod(path.parent, 0o755)

    check(await to.starts(prepare), "a server does not start over a dead socket")


@rule("1.10-clean-stop", Need.STARTS, Need.FILES, broken_by="leaves-socket removes-lock")
async def clean_stop(to: Target) -> None:
    """A server that stops removes its socket and gives the lock back; the lock file stays."""
    path, lock_file = to.socket, to.socket.with_name("server.lock")
    client = await to.client()
    await to.stop()
    check(await client.is_closed(), "the connection outlives the server")
    check(not os.path.lexists(path), "the socket's file is still there")
    check(lock_file.exists() and not is_locked(lock_file), "the lock file is gone, or still locked")


@rule("1.11-stdio", Need.STDIO, broken_by="noisy-stdio")
async def stdio(to: Target) -> None:
    """Over standard input and output the protocol is the same, and nothing but frames is written there."""
    client = await to.session()
    events = await client.turn()
    check("turn.started" in kinds(events), "no turn runs")
    for line in client.lines:
        check(line.startswith(b'{"type":'), f"that is no frame: {line[:40]!r}")


@rule("1.12-many-messages", broken_by="one-line-a-read")
async def many_messages(to: Target) -> None:
    """Messages that come at once are answered one by one, in their order."""
    client = await to.client()
    ids = [f"m{n}" for n in range(100)]
    asked = [{"type": "turn.cancel", "request_id": one, "session_id": "s", "turn_id": "t"} for one in ids]
    client.raw(b"".join(encode(message).encode() + b"\n" for message in asked))
    same([(await client.event("error")).get("request_id") for _ in ids], ids, "the order of the answers")
