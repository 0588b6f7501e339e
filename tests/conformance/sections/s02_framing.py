"""Section 2: lines, their ends and their bounds."""

from tests.conformance.client import PEER, Client, encode
from tests.conformance.faults import check, same
from tests.conformance.rules import Need, rule
from tests.conformance.target import Target

CLIENT_FRAME_BYTES = 1_048_576
PROMPT_BYTES = 262_144


def padded(size: int, request_id: str = "p") -> bytes:
    """An ``initialize`` of exactly ``size`` bytes, most of them under a key that nobody knows."""
    message = {"type": "initialize", "request_id": request_id, "protocol_version": 3, "client": PEER, "x": ""}
    bare = encode(message).encode()
    return bare[:-2] + b"a" * (size - len(bare)) + b'"}'


async def lost(client: Client) -> None:
    """One answer to a line that was too long, and the connection goes on."""
    await client.error("invalid_request")
    await client.initialize()


@rule("2.1-longest-frame", broken_by="short-frames")
async def longest_frame(to: Target) -> None:
    """A line of 1,048,576 bytes, its end not counted, is read."""
    client = await to.connect()
    client.line(padded(CLIENT_FRAME_BYTES))
    same((await client.event("initialized")).get("request_id"), "p", "the request id")


@rule("2.2-too-long", broken_by="long-frames fatal-too-long names-too-long")
async def too_long(to: Target) -> None:
    """A longer line is answered with one ``invalid_request`` without a request id, and reading goes on."""
    client = await to.connect()
    client.line(padded(CLIENT_FRAME_BYTES + 1))
    await lost(client)
    await client.quiet("after a line that was too long")


@rule("2.3-far-too-long", broken_by="says-too-long-twice forgets-dropping")
async def far_too_long(to: Target) -> None:
    """However much longer a line is and in however many pieces it comes, it is answered once."""
    client = await to.connect()
    for _ in range(5):
        client.raw(b"x" * CLIENT_FRAME_BYTES)
        await client.flushed()
        await to.settle()
    client.raw(b'"}\n')
    await lost(client)
    await client.quiet("after a line that was far too long")


@rule("2.4-line-ends", broken_by="counts-line-ends")
async def line_ends(to: Target) -> None:
    """``\\r\\n`` ends a line as well; CRs before the newline, however many, do not count."""
    client = await to.connect()
    client.line(padded(CLIENT_FRAME_BYTES) + b"\r\r\r")
    await client.event("initialized")
    client.line(padded(CLIENT_FRAME_BYTES + 1) + b"\r")
    await client.error("invalid_request")


@rule("2.5-empty-line", broken_by="skips-empty-lines")
async def empty_line(to: Target) -> None:
    """An empty line is no message: ``invalid_json``, also where it is made of CRs."""
    client = await to.client()
    for line in (b"", b"\r", b"\r\r"):
        await client.refused(line)


@rule("2.6-last-line", broken_by="drops-last-line")
async def last_line(to: Target) -> None:
    """A last line that lacks its newline is a frame."""
    client = await to.connect()
    client.raw(padded(200))
    client.half_close()
    await client.event("initialized")
    check(await client.is_closed(), "the server does not end the connection")


@rule("2.7-pieces", broken_by="forgets-pieces")
async def pieces(to: Target) -> None:
    """A line may come in any pieces, also cut inside a character."""
    client = await to.connect()
    message = {"type": "initialize", "request_id": "中", "protocol_version": 3, "client": PEER}
    line = encode(message).encode() + b"\n"
    at = line.index("中".encode()) + 1
    for piece in (line[:3], line[3:at], line[at : at + 1], line[at + 1 : -1], b"\n"):
        client.raw(piece)
        await client.flushed()
        await to.settle()
    same((await client.event("initialized")).get("request_id"), "中", "the request id")


@rule("2.8-dropping-ends", broken_by="forgets-dropping")
async def dropping_ends(to: Target) -> None:
    """A line that is being dropped is dropped up to its newline, also over several reads, and no further."""
    client = await to.connect()
    client.raw(b"x" * (CLIENT_FRAME_BYTES + 1))
    await client.flushed()
    await to.settle()
    client.raw(padded(200) + b"\n")
    await client.error("invalid_request")
    client.line(padded(200))
    await client.event("initialized")


@rule("2.9-prompt", broken_by="short-prompts counts-characters")
async def prompt(to: Target) -> None:
    """A prompt has at most 262,144 bytes of UTF-8."""
    client = await to.session()
    client.ask("session.pause", paused=True)
    await client.event("session.paused")
    request_id = client.ask("turn.start", prompt="é" * (PROMPT_BYTES // 2) + "x")
    await client.error("invalid_request", request_id)
    client.ask("session.pause", paused=False)
    await client.event("session.paused")
    client.ask("turn.start", prompt="é" * (PROMPT_BYTES // 2))
    await client.event("turn.started")


@rule("2.10-server-frame", Need.ECHO, broken_by="huge-frames", settings={"max_server_frame_bytes": 65_536})
async def server_frame(to: Target) -> None:
    """No frame of a session is longer than the session says."""
    client = await to.client()
    started = await client.start()
    same(started.get("max_server_frame_bytes"), 65_536, "the limit")
    await client.turn("long 100000")
    longest = max(map(len, client.lines))
    check(longest <= 65_537, f"a frame has {longest} bytes")
