"""A server that is a program of ours: messages are lines on its standard input and output."""

import asyncio
from collections import deque
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager

import anyio
from anyio.streams.memory import MemoryObjectReceiveStream, MemoryObjectSendStream
from mcp.shared.message import SessionMessage
from mcp_types import jsonrpc_message_adapter

from bridge.protocol.frames import LineDecoder, TooLong
from bridge.tools.mcp.access import Access
from bridge.tools.mcp.text import line
from bridge.tools.processes import Process, process_group

MESSAGE_BYTES = 8_388_608
WAITING_BYTES = 4_194_304  # that it may leave unread
GARBAGE_LINES = 200  # since the last message
READ_BYTES = 65_536
LAST_WORDS_SECONDS = 0.5
KEPT_LINES = 5  # of its standard error

Broken = Callable[[str], None]
Item = SessionMessage | Exception


class _Writing:
    """The WriteStream of the session: never waits for a program that does not read."""

    def __init__(self, process: Process, broken: Broken) -> None:
        assert process.stdin is not None  # noqa: S101 - it was started with one
        self._stdin, self._broken = process.stdin, broken

    async def send(self, item: SessionMessage, /) -> None:
        if self._stdin.transport.get_write_buffer_size() > WAITING_BYTES:
            self._broken("it does not read what it is sent")
            raise anyio.BrokenResourceError
        if self._stdin.is_closing():
            raise anyio.ClosedResourceError
        text = item.message.model_dump_json(by_alias=True, exclude_unset=True)
        self._stdin.write(f"{text}\n".encode(errors="replace"))

    async def aclose(self) -> None:
        self._stdin.close()

    async def __aenter__(self) -> "_Writing":
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.aclose()


Streams = tuple[MemoryObjectReceiveStream[Item], _Writing]


@asynccontextmanager
async def program(access: Access, broken: Broken, said: deque[str]) -> AsyncIterator[Streams]:
    """Run it, and end it with all that it has started. ``said`` gets its last lines of standard error.

    ``broken`` is told why, when it is of no use any more.

    Raises:
        StartError: it cannot be started.
    """
    async with process_group(access.command, access.cwd, access.env) as process:
        give, take = anyio.create_memory_object_stream[Item](16)
        async with asyncio.TaskGroup() as tasks:
            listening = tasks.create_task(_listen(process, said))
            reading = tasks.create_task(_read(process, give, broken, listening))
            try:
                yield take, _Writing(process, broken)
            finally:
                reading.cancel()
                listening.cancel()
                give.close()
                take.close()


async def _read(
    process: Process, give: MemoryObjectSendStream[Item], broken: Broken, listening: asyncio.Task[None]
) -> None:
    """Pass its messages on; what is none is skipped, unless there is no end to it."""
    lines, garbage = LineDecoder(MESSAGE_BYTES), 0
    async with give:
        while data := await process.stdout.read(READ_BYTES):
            for each in lines.feed(data):
                if (message := _message(each)) is not None:
                    garbage = 0
                    try:
                        await give.send(message)
                    except anyio.BrokenResourceError:  # nobody listens any more
                        return
                elif (garbage := garbage + 1) > GARBAGE_LINES:
                    broken("it writes to its standard output what is no message of the protocol")
                    return
        code = await process.wait()
        await asyncio.wait([listening], timeout=LAST_WORDS_SECONDS)
        broken(f"its program has ended (exit code {code})")


def _message(data: bytes | TooLong) -> SessionMessage | None:
    if isinstance(data, TooLong) or not data.strip():
        return None
    try:
        return SessionMessage(jsonrpc_message_adapter.validate_json(data, by_name=False))
    except ValueError:
        return None


async def _listen(process: Process, said: deque[str]) -> None:
    assert process.stderr is not None  # noqa: S101 - it was started with one
    lines = LineDecoder(READ_BYTES)
    while data := await process.stderr.read(READ_BYTES):
        for each in lines.feed(data):
            if isinstance(each, bytes) and (told := line(each.decode(errors="replace"))):
                said.append(told)
