"""A scripted endpoint on loopback that speaks the wires of models: the bytes are as the providers send them.

Each request takes the next reply of the script; what a reply does beside its bytes stands in its pieces.
"""

import asyncio
import json
from collections.abc import AsyncIterator, Iterable, Mapping, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from typing import Any

from aiohttp import web

EVENTS = {"content-type": "text/event-stream"}
JSON = {"content-type": "application/json"}


class Stall:
    """Nothing more comes until ``go`` is set, or the other side has gone."""

    def __init__(self) -> None:
        self.reached, self.go = asyncio.Event(), asyncio.Event()


class Cut:
    """The connection breaks off within the answer."""


Piece = bytes | Stall | Cut


@dataclass(frozen=True)
class Reply:
    pieces: Sequence[Piece] = ()
    status: int = 200
    headers: Mapping[str, str] = field(default_factory=lambda: EVENTS)


@dataclass
class Asked:
    """One request, as it came."""

    path: str
    headers: Mapping[str, str]
    body: Any


class ModelServer:
    def __init__(self, replies: Iterable[Reply] = ()) -> None:
        self.script: list[Reply] = list(replies)
        self.asked: list[Asked] = []
        self.models = Reply([b'{"data": [{"id": "small"}, {"id": "large"}]}'], headers=JSON)
        self.gone = 0  # clients that hung up before their answer's end
        self.stalled = 0  # answers that wait
        self.address = ""

    @property
    def last(self) -> Any:
        return self.asked[-1].body

    @asynccontextmanager
    async def serving(self) -> AsyncIterator["ModelServer"]:
        app = web.Application(client_max_size=256 * 1_048_576)
        app.router.add_route("*", "/{path:.*}", self._answer)
        runner = web.AppRunner(app, access_log=None, shutdown_timeout=0.1, handler_cancellation=True)
        await runner.setup()
        try:
            await web.TCPSite(runner, "127.0.0.1", 0).start()
            self.address = f"http://127.0.0.1:{runner.addresses[0][1]}"
            yield self
        finally:
            await runner.cleanup()

    async def _answer(self, request: web.Request) -> web.StreamResponse:
        body = await request.json() if request.method == "POST" else None
        self.asked.append(Asked(request.path_qs, {**request.headers}, body))
        if request.method == "GET":
            return await self._play(request, self.models)
        if not self.script:
            return web.json_response({"error": {"message": "the script is over"}}, status=418)
        return await self._play(request, self.script.pop(0))

    async def _play(self, request: web.Request, reply: Reply) -> web.StreamResponse:
        response = web.StreamResponse(status=reply.status, headers=dict(reply.headers))
        try:
            for at, piece in enumerate(reply.pieces):
                if isinstance(piece, Stall):
                    piece.reached.set()
                    self.stalled += 1
                    try:
                        await piece.go.wait()
                    finally:
                        self.stalled -= 1
                elif isinstance(piece, Cut):
                    assert request.transport is not None
                    request.transport.abort()
                    return response
                else:
                    if not response.prepared:
                        await response.prepare(request)
                    await response.write(piece)
                    await asyncio.sleep(0 if at % 8 else 0.0005)  # so that pieces arrive as such
            if not response.prepared:
                await response.prepare(request)
            await response.write_eof()
        except ConnectionError:
            self.gone += 1
        except asyncio.CancelledError:
            self.gone += 1
            raise
        return response


def event(data: Any, name: str = "") -> bytes:
    head = f"event: {name}\n" if name else ""
    return (
        f"{head}data: {data if isinstance(data, str) else json.dumps(data, ensure_ascii=False)}\n\n".encode()
    )


# --- chat completions


def chunk(delta: Any = None, finish: Any = None, **more: Any) -> bytes:
    choice = {"index": 0, "delta": {} if delta is None else delta, "finish_reason": finish}
    base = {"id": "c1", "object": "chat.completion.chunk", "created": 1767322000, "model": "small"}
    return event({**base, "choices": [choice], **more})


def usage(read: Any = 11, written: Any = 5, **more: Any) -> bytes:
    counts = {"prompt_tokens": read, "completion_tokens": written, "total_tokens": 16, **more}
    return chunk(None, None, choices=[], usage=counts)


DONE = event("[DONE]")


def says(*texts: str, finish: str = "stop") -> Reply:
    """A whole answer, text by text."""
    return Reply(
        [chunk({"role": "assistant", "content": ""}), *map(_said, texts), chunk({}, finish), usage(), DONE]
    )


def _said(text: str) -> bytes:
    return chunk({"content": text})


def call(name: Any, arguments: Any, call_id: Any = "call_1", index: Any = 0) -> bytes:
    return chunk(
        {
            "tool_calls": [
                {
                    "index": index,
                    "id": call_id,
                    "type": "function",
                    "function": {"name": name, "arguments": arguments},
                }
            ]
        }
    )


def calls(*pieces: bytes) -> Reply:
    """An answer that asks for calls."""
    return Reply([*pieces, chunk({}, "tool_calls"), usage(), DONE])


def refuses(status: int, error: Any, **headers: str) -> Reply:
    named = {name.replace("_", "-"): value for name, value in headers.items()}
    return Reply([json.dumps({"error": error}).encode()], status, {**JSON, **named})


# --- Anthropic's messages


def named(kind: str, **fields: Any) -> bytes:
    return event({"type": kind, **fields}, kind)


def started(**more: Any) -> bytes:
    message = {
        "id": "msg_1",
        "type": "message",
        "role": "assistant",
        "model": "small",
        "content": [],
        "stop_reason": None,
        "stop_sequence": None,
        "usage": {"input_tokens": 11, "output_tokens": 1},
        **more,
    }
    return named("message_start", message=message)


def block(index: int, start: Mapping[str, Any], *deltas: Mapping[str, Any]) -> list[bytes]:
    return [
        named("content_block_start", index=index, content_block=start),
        *(named("content_block_delta", index=index, delta=delta) for delta in deltas),
        named("content_block_stop", index=index),
    ]


def ended(reason: str = "end_turn", **more: Any) -> list[bytes]:
    delta = {"stop_reason": reason, "stop_sequence": None}
    fields = {"delta": delta, "usage": {"output_tokens": 5}, **more}
    return [named("message_delta", **fields), named("message_stop")]


def claude_says(*texts: str) -> Reply:
    deltas = [{"type": "text_delta", "text": text} for text in texts]
    return Reply([started(), *block(0, {"type": "text", "text": ""}, *deltas), *ended()])


def claude_calls(name: str, arguments: str, call_id: str = "toolu_1") -> Reply:
    start = {"type": "tool_use", "id": call_id, "name": name, "input": {}}
    pieces = [{"type": "input_json_delta", "partial_json": part} for part in (arguments[:3], arguments[3:])]
    return Reply([started(), *block(0, start, *pieces), *ended("tool_use")])
