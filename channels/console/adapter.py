"""The console's adapter: pushed to and asked over the daemon's own Unix socket."""

from collections.abc import Callable, Sequence
from contextlib import AbstractAsyncContextManager
from typing import Final, TypeVar

from bridge.channel import (
    Answer,
    Ask,
    Claimed,
    Follow,
    Identity,
    Incoming,
    LiveTurn,
    Reading,
    RemoteFile,
    Request,
    WaitingPart,
)
from channels.console import wire
from channels.console.fetching import opened
from channels.console.wire import WrongError, dump

R = TypeVar("R")

ANSWER_BYTES: Final = 4_194_304  # an answer takes no further part past this


class Console:
    """``POST`` a message or a recall; ``GET /replies`` and ``GET /live``, each for one conversation.

    Files go both ways as paths: the client is the same user on the same machine. Asking settles the parts up
    to ``after``, so a file is to be copied before its part is asked past.
    """

    def __init__(self, owner: str) -> None:
        self._owner = owner

    def read(self, request: Request, identity: Identity) -> Reading | Answer:
        if request.method != "POST":
            return _wrong_method("POST")
        try:
            item, id_ = wire.read_item(request.body, self._owner, request.received_at)
        except WrongError as error:
            return _error(str(error))
        return Reading((item,), note=id_)

    def answer(self, reading: Reading, results: Sequence[Claimed]) -> Answer:
        """202, with what became of it; 409 for an id that was seen with another body."""
        status = 409 if results[0] is Claimed.CONFLICT else 202
        return Answer(status, dump({"id": reading.note, "outcome": results[0].value}))

    def ask(self, request: Request) -> Ask | Answer:
        return _asked(request, self._ask)

    async def told(self, ask: Ask, waiting: Sequence[WaitingPart]) -> Answer:
        """What waits, oldest first, up to a few MiB: the rest comes to the next asking."""
        replies: list[bytes] = []
        size = 0
        for each in waiting:
            if size > ANSWER_BYTES:
                break
            replies.append(dump(wire.shown_part(each)))
            size += len(replies[-1])
        return Answer(200, b'{"replies":[' + b",".join(replies) + b"]}")

    def follow(self, request: Request) -> Follow | Answer:
        return _asked(request, self._follow)

    def shown(self, follow: Follow, turn: LiveTurn) -> Answer:
        return Answer(200, dump(wire.shown_turn(turn)))

    def fetch(self, file: RemoteFile, max_bytes: int) -> AbstractAsyncContextManager[Incoming]:
        return opened(file)

    def _ask(self, request: Request) -> Ask:
        return Ask(
            after=wire.number(request.query.get("after", "0"), "after"),
            wait_seconds=wire.seconds(request.query.get("wait", "0")),
            to=wire.name_of(request.query.get("conversation", ""), "conversation"),
        )

    def _follow(self, request: Request) -> Follow:
        return Follow(
            message_id=wire.name_of(request.query.get("message", ""), "message"),
            version=wire.number(request.query.get("version", "0"), "version"),
            wait_seconds=wire.seconds(request.query.get("wait", "0")),
        )


def _asked(request: Request, parse: Callable[[Request], R]) -> R | Answer:
    if request.method != "GET":
        return _wrong_method("GET")
    try:
        return parse(request)
    except WrongError as error:
        return _error(str(error))


def _wrong_method(right: str) -> Answer:
    return Answer(405, dump({"error": f"use {right}"}), headers={"Allow": right})


def _error(text: str) -> Answer:
    return Answer(400, dump({"error": text}))
