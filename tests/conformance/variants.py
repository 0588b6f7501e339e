"""Our server, broken on purpose: each variant breaks a rule (or some), so that every rule is seen to fail.

Most are made at the two ends of a connection: what is read, and what is sent. The rest change one function.
"""

import contextlib
import importlib
import json
import pkgutil
import sys
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, ExitStack
from typing import Any

from bridge.protocol.frames import LineDecoder, TooLong
from bridge.sessions.errors import RequestError
from bridge.sessions.outbound import Outbound
from bridge.sessions.requests import Requests

Event = dict[str, Any]
Patch = AbstractContextManager[None]

VARIANTS: dict[str, Callable[[], Patch]] = {}
BROKEN_LINE = b"{"


def variant(name: str, make: Callable[[], Patch]) -> None:
    """Let ``make`` make the patch that is the variant ``name``; a new one each time, since it may
    remember."""
    assert name not in VARIANTS, f"{name} is there twice"
    VARIANTS[name] = make


def load() -> dict[str, Callable[[], Patch]]:
    """All variants."""
    package = importlib.import_module("tests.conformance.broken")
    for found in pkgutil.iter_modules(package.__path__):
        importlib.import_module(f"{package.__name__}.{found.name}")
    return VARIANTS


# --- patches ----------------------------------------------------------------------------------------------


@contextlib.contextmanager
def attribute(owner: Any, name: str, value: Any) -> Iterator[None]:
    """``owner.name`` is ``value`` for a while."""
    before = owner.__dict__[name]
    setattr(owner, name, value)
    try:
        yield
    finally:
        setattr(owner, name, before)


@contextlib.contextmanager
def together(*patches: Patch) -> Iterator[None]:
    with ExitStack() as stack:
        for patch in patches:
            stack.enter_context(patch)
        yield


def everywhere(name: str, value: Any) -> Patch:
    """Each module of the session server that has ``name`` has ``value`` instead."""
    modules = [module for key, module in sys.modules.items() if key.startswith("bridge.sessions.")]
    return together(*(attribute(module, name, value) for module in modules if name in module.__dict__))


def wraps(owner: Any, name: str, make: Callable[[Callable[..., Any]], Callable[..., Any]]) -> Patch:
    """The function ``owner.name`` is what ``make`` makes of it."""
    before = owner.__dict__[name]
    return attribute(owner, name, make(before))


def does_nothing(owner: Any, name: str) -> Patch:
    return attribute(owner, name, lambda *_, **__: None)


async def _nothing(*_: Any, **__: Any) -> None:
    return


def awaits_nothing(owner: Any, name: str) -> Patch:
    return attribute(owner, name, _nothing)


def writes(change: Callable[[bytes], bytes]) -> Patch:
    """Each frame that is sent is what ``change`` makes of it."""
    return wraps(Outbound, "append", lambda append: lambda self, frame: append(self, change(frame)))


def sends(change: Callable[[Event], Event | list[Event] | None], *kinds: str) -> Patch:
    """Each event (of ``kinds``, where given) that is sent is what ``change`` makes of it: another, some or
    none."""

    def make(append: Callable[..., None]) -> Callable[..., None]:
        def changed(self: Outbound, frame: bytes) -> None:
            event = json.loads(frame)
            if kinds and event["type"] not in kinds:
                append(self, frame)
                return
            for one in _listed(change(event)):
                append(self, frame_of(one))

        return changed

    return wraps(Outbound, "append", make)


def _listed(found: Event | list[Event] | None) -> list[Event]:
    if found is None:
        return []
    return found if isinstance(found, list) else [found]


def frame_of(event: Event) -> bytes:
    return json.dumps(event, ensure_ascii=False, separators=(",", ":")).encode() + b"\n"


def sets(kind: str, **fields: Any) -> Patch:
    """Events of ``kind`` have these fields; one that is a function makes the value from the old one."""

    def change(event: Event) -> Event:
        for name, value in fields.items():
            event[name] = value(event.get(name)) if callable(value) else value
        return event

    return sends(change, kind)


def loses(kind: str, name: str) -> Patch:
    """Events of ``kind`` lack the field ``name``."""
    return sends(lambda event: {key: value for key, value in event.items() if key != name}, kind)


def reads(change: Callable[[bytes], bytes | None]) -> Patch:
    """Each line that is read is what ``change`` makes of it, or is not read at all."""

    def make(feed: Callable[..., list[bytes | TooLong]]) -> Callable[..., list[bytes | TooLong]]:
        def changed(self: LineDecoder, data: bytes) -> list[bytes | TooLong]:
            lines = [line if isinstance(line, TooLong) else change(line) for line in feed(self, data)]
            return [line for line in lines if line is not None]

        return changed

    return wraps(LineDecoder, "feed", make)


def mends(change: Callable[[Any], Any]) -> Patch:
    """Each line that a lax reader can read is read by one, changed and written anew."""

    def mend(line: bytes) -> bytes:
        try:
            value = json.loads(line)
        except (ValueError, RecursionError):
            return line
        return json.dumps(change(value), ensure_ascii=False).encode(errors="surrogatepass")

    return reads(mend)


def answers(handle: Callable[..., Any]) -> Patch:
    """Each message is answered by ``handle``, a coroutine function of the way that it was answered by before.

    That takes the ``Requests`` and the message; ``handle`` gets these two, too.
    """

    def make(before: Callable[..., Any]) -> Callable[..., Any]:
        async def changed(self: Requests, message: Any) -> None:
            await handle(before, self, message)

        return changed

    return wraps(Requests, "_answer", make)


def refusing(kind: type, code: str, when: Callable[[Requests, Any], bool] = lambda *_: True) -> Patch:
    """Messages of ``kind`` are refused with ``code``."""

    async def handle(before: Callable[..., Any], requests: Requests, message: Any) -> None:
        if isinstance(message, kind) and when(requests, message):
            raise RequestError(code, "no")
        await before(requests, message)

    return answers(handle)
