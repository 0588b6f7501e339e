"""Variants that take connections, sessions and the socket wrongly."""

import asyncio
import fcntl
import os
import socket
from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace
from typing import Any

from bridge.ids import SessionId
from bridge.protocol import messages, ours
from bridge.sessions import listener, opening, server, stdio
from bridge.sessions.active import ActiveTurn
from bridge.sessions.connection import Connection
from bridge.sessions.context import SessionSettings
from bridge.sessions.contract import Deadlines
from bridge.sessions.errors import RequestError
from bridge.sessions.history import History
from bridge.sessions.live import LiveSessions
from bridge.sessions.opening import Opener
from bridge.sessions.outbound import Numbered, Outbound
from bridge.sessions.requests import FatalError, Requests
from bridge.sessions.server import SessionServer
from bridge.store.contract import LoadSession
from tests.conformance import server as our_server
from tests.conformance.variants import (
    Event,
    Patch,
    answers,
    attribute,
    awaits_nothing,
    does_nothing,
    everywhere,
    refusing,
    sends,
    together,
    variant,
    wraps,
)

# --- the socket -------------------------------------------------------------------------------------------

NO_LOCK = SimpleNamespace(flock=lambda *_: None, LOCK_EX=fcntl.LOCK_EX, LOCK_NB=fcntl.LOCK_NB)


def _unserved() -> Patch:
    return attribute(listener, "_is_served", lambda _: False)


def _taking(path: Path) -> None:
    path.unlink(missing_ok=True)


def _at_the_end(do: Callable[[Path], None]) -> Callable[[], Patch]:
    """When the server ends, ``do`` is done with its socket's path."""

    def make(run: Callable[..., Any]) -> Callable[..., Any]:
        async def changed(self: SessionServer) -> None:
            try:
                await run(self)
            finally:
                do(self._path)

        return changed

    return lambda: wraps(SessionServer, "run", make)


_lingering: list[socket.socket] = []


def _linger(path: Path) -> None:
    while _lingering:
        _lingering.pop().close()
    found = socket.socket(socket.AF_UNIX)
    found.bind(str(path))
    found.listen()
    _lingering.append(found)


variant("open-modes", lambda: does_nothing(Path, "chmod"))
variant("no-lock", lambda: together(attribute(listener, "fcntl", NO_LOCK), _unserved()))
variant("follows-links", lambda: attribute(os, "O_NOFOLLOW", 0))
variant("takes-live-sockets", lambda: together(_unserved(), attribute(listener, "_make_way", _taking)))
variant("takes-files", lambda: attribute(listener, "_make_way", _taking))
variant("keeps-dead-sockets", lambda: does_nothing(listener, "_make_way"))
variant("leaves-socket", lambda: does_nothing(Path, "unlink"))
variant("removes-lock", _at_the_end(lambda path: os.unlink(path.with_name("server.lock"))))
variant("lingers", _at_the_end(_linger))

# --- standard input and output ----------------------------------------------------------------------------


def _noisy(give_out: Callable[..., None]) -> Callable[..., None]:
    def changed(outer: socket.socket, sink: int) -> None:
        os.write(sink, b"{}\n")
        give_out(outer, sink)

    return changed


async def _status(*_: Any) -> ours.DaemonStatus:
    return ours.DaemonStatus(version="0", pid=1, components=())


def _failing_end(serve: Callable[..., Any]) -> Callable[..., Any]:
    async def changed(*arguments: Any) -> None:
        await serve(*arguments)
        raise RuntimeError("the client has gone")

    return changed


variant("noisy-stdio", lambda: wraps(stdio, "_give_out", _noisy))
variant("control-on-stdio", lambda: attribute(stdio.NoDaemon, "handle", _status))
variant("fails-at-the-end", lambda: wraps(stdio, "serve_stdio", _failing_end))

# --- the first message ------------------------------------------------------------------------------------

Before = Callable[..., Any]


async def _needs_none(before: Before, requests: Requests, message: Any) -> None:
    requests.initialized |= not isinstance(message, messages.Initialize)
    await before(requests, message)


async def _closes(before: Before, requests: Requests, message: Any) -> None:
    ready = requests.initialized
    try:
        await before(requests, message)
    except RequestError as error:
        if not ready or isinstance(message, messages.Initialize):
            await requests._refuse(message.request_id, error.code, str(error))
            raise FatalError from error
        raise


async def _any_version(before: Before, requests: Requests, message: Any) -> None:
    known = {"protocol_version": 3} if isinstance(message, messages.Initialize) else {}
    await before(requests, message.model_copy(update=known))


async def _stays(before: Before, requests: Requests, message: Any) -> None:
    try:
        await before(requests, message)
    except FatalError:
        return


async def _again(before: Before, requests: Requests, message: Any) -> None:
    requests.initialized &= not isinstance(message, messages.Initialize)
    await before(requests, message)


async def _version_first(before: Before, requests: Requests, message: Any) -> None:
    requests.initialized &= getattr(message, "protocol_version", 3) == 3
    await before(requests, message)


def _order_before_json() -> Patch:
    ready = False

    def change(event: Event) -> Event:
        nonlocal ready
        ready |= event["type"] == "initialized"
        return event if ready or event["type"] != "error" else {**event, "code": "notinitialized"}

    return sends(change)


def _unique() -> Patch:
    used: set[str] = set()

    async def once(before: Before, requests: Requests, message: Any) -> None:
        if message.request_id in used:
            raise RequestError("invalid_request", "that request id was used")
        used.add(message.request_id)
        await before(requests, message)

    return answers(once)


variant("needs-no-initialize", lambda: answers(_needs_none))
variant("closes-uninitialized", lambda: answers(_closes))
variant("closes-second-initialize", lambda: answers(_closes))
variant("any-version", lambda: answers(_any_version))
variant("stays-after-version", lambda: answers(_stays))
variant("initializes-twice", lambda: answers(_again))
variant("version-before-order", lambda: answers(_version_first))
variant("order-before-json", _order_before_json)
variant("unique-request-ids", _unique)
variant(
    "control-needs-session",
    lambda: refusing(ours.DaemonControl, "session_not_found", lambda requests, _: not requests.session),
)

# --- sessions ---------------------------------------------------------------------------------------------


async def _many(before: Before, requests: Requests, message: Any) -> None:
    if isinstance(message, ours.SessionStart):
        requests.session = None
    await before(requests, message)


async def _one_try(before: Before, requests: Requests, message: Any) -> None:
    try:
        await before(requests, message)
    except RequestError as error:
        if isinstance(message, ours.SessionStart):
            await requests._refuse(message.request_id, error.code, str(error))
            raise FatalError from error
        raise


async def _any_session(before: Before, requests: Requests, message: Any) -> None:
    if requests.session and "session_id" in type(message).model_fields:
        message = message.model_copy(update={"session_id": requests.session.context.session_id})
    await before(requests, message)


def _given(cwd: str) -> Path | None:
    return Path(cwd) if "\0" not in cwd and Path(cwd).is_dir() else None


def _settings(**fields: Any) -> Callable[[], Patch]:
    """A session's settings are these, whatever was asked for."""

    def make(of: Any) -> Any:
        return classmethod(lambda cls, message: of.__func__(cls, message.model_copy(update=fields)))

    return lambda: wraps(SessionSettings, "of", make)


def _tools(change: Callable[[str], str]) -> Callable[[], Patch]:
    def make(tools: Before) -> Before:
        return lambda home, clock, user, no_tools, channel: tools(
            home, clock, user, no_tools, change(channel)
        )

    return lambda: wraps(our_server, "_tools", make)


variant("many-sessions", lambda: answers(_many))
variant("one-try", lambda: answers(_one_try))
variant("any-session", lambda: answers(_any_session))
variant("any-channel", lambda: does_nothing(opening, "_check_channel"))
variant("long-channels", lambda: attribute(opening, "CHANNEL_NAME_BYTES", 33))
variant("any-cwd", lambda: everywhere("resolve_folder", lambda _: Path("/")))
variant("cwd-as-given", lambda: everywhere("resolve_folder", _given))
variant("any-provider", lambda: does_nothing(opening, "_check_overrides"))
variant("tools-for-all", _settings(no_tools=False))
variant("no-tools-for-all", _settings(no_tools=True))
variant("attach-for-all", _tools(lambda channel: channel or "any"))
variant("attach-for-none", _tools(lambda _: ""))
variant(
    "minds-depth",
    lambda: refusing(ours.SessionStart, "invalid_request", lambda _, message: bool(message.delegation_depth)),
)

# --- attaching --------------------------------------------------------------------------------------------


def _attaches_anything(attach: Before) -> Before:
    async def changed(self: Opener, message: messages.SessionAttach) -> Any:
        try:
            return await attach(self, message)
        except RequestError:
            return await self.start(ours.SessionStart(request_id=message.request_id, cwd=message.cwd))

    return changed


def _attaches_anywhere(attach: Before) -> Before:
    async def changed(self: Opener, session_id: SessionId, cwd: Any, message: Any) -> Any:
        stored = await self._services.store.get(LoadSession(session_id))
        return await attach(self, session_id, Path(stored.record.cwd) if stored else cwd, message)

    return changed


def _tells_no_files(replay: Before) -> Before:
    async def changed(self: Opener, session: Any, event: Any) -> None:
        if event.type != "tool.completed":
            await replay(self, session, event)

    return changed


def _sessions(change: Callable[[Any], None], **fields: Any) -> Callable[[], Patch]:
    """Sessions are made with other ``fields``, and changed by ``change``."""

    def make(session: Before) -> Before:
        def changed(self: Opener, record: Any, history: History, last: int) -> Any:
            made = session(self, record, **{"history": history, "last": last, **fields})
            change(made)
            return made

        return changed

    return lambda: wraps(Opener, "_session", make)


def _pause(session: Any) -> None:
    session._paused = True


def _forget(session: Any) -> None:
    session.context.history.clear()


def _unchanged(session: Any) -> None:
    return


async def _none_interrupted(self: Opener, stored: Any) -> list[Any]:
    return []


def _widened() -> Patch:
    def make(decode: Any) -> Any:
        def changed(cls: type[SessionSettings], stored: str) -> SessionSettings:
            found: SessionSettings = decode.__func__(cls, stored)
            return SessionSettings(channel=found.channel)

        return classmethod(changed)

    return wraps(SessionSettings, "decode", make)


variant("attaches-anything", lambda: wraps(Opener, "attach", _attaches_anything))
variant("attaches-in-any-cwd", lambda: wraps(Opener, "_attach", _attaches_anywhere))
variant("attaches-twice", lambda: awaits_nothing(LiveSessions, "hold"))
variant("attach-tells-nothing", lambda: awaits_nothing(Opener, "_replay"))
variant("attach-tells-no-files", lambda: wraps(Opener, "_replay", _tells_no_files))
variant("attach-resets-seq", _sessions(_unchanged, last=0))
variant("attach-forgets", _sessions(_forget))
variant("attach-keeps-pause", _sessions(_pause))
variant("attach-widens", _widened)
variant("crash-forgotten", lambda: attribute(Opener, "_end_interrupted", _none_interrupted))

# --- ends -------------------------------------------------------------------------------------------------


def _stays_after_end(receive: Before) -> Before:
    async def changed(self: Connection) -> bytes:
        data: bytes = await receive(self)
        if not data:
            await asyncio.Event().wait()
        return data

    return changed


def _records_nothing(record: Before) -> Before:
    async def changed(self: ActiveTurn, *arguments: Any) -> None:
        return

    return changed


def _one_by_one(serve: Before) -> Before:
    lock = asyncio.Lock()

    async def changed(*arguments: Any) -> None:
        try:
            await serve(*arguments)
        finally:
            async with lock:
                await asyncio.sleep(0.1)

    return changed


variant("stays-after-end", lambda: wraps(Connection, "_receive", _stays_after_end))
variant("turns-outlive-clients", lambda: does_nothing(Connection, "_hang_up"))
variant("speaks-after-end", lambda: does_nothing(Outbound, "mute"))
variant("stops-unrecorded", lambda: wraps(ActiveTurn, "_record", _records_nothing))
variant("stops-one-by-one", lambda: wraps(server, "serve_client", _one_by_one))

# --- clients that do not read -----------------------------------------------------------------------------


def _dropping(append: Callable[..., None]) -> Callable[..., None]:
    def changed(self: Outbound, frame: bytes) -> None:
        if len(self._frames) < 200:
            append(self, frame)

    return changed


def _impatient(send: Before) -> Before:
    async def changed(self: Numbered, make: Any, seconds: float | None = None) -> None:
        await send(self, make, seconds or 0.05)

    return changed


def _patient(room: Before) -> Before:
    async def changed(self: Outbound, size: int, seconds: float | None) -> None:
        await room(self, size, None)

    return changed


def _one_for_all() -> Patch:
    lock = asyncio.Lock()

    def make(take: Before) -> Before:
        async def changed(self: Connection, *arguments: Any) -> None:
            async with lock:
                await take(self, *arguments)

        return changed

    return together(wraps(Connection, "_take", make), wraps(Outbound, "room", _patient))


def _one_turn_for_all() -> Patch:
    lock = asyncio.Lock()

    def make(carry_out: Before) -> Before:
        async def changed(self: ActiveTurn) -> None:
            async with lock:
                await carry_out(self)

        return changed

    return wraps(ActiveTurn, "carry_out", make)


def _slow_to_stop() -> Patch:
    slow = Deadlines(reply=1.2, turn=1.2, writer=1.2, stop=2.4)
    return attribute(our_server, "DEADLINES", slow)


variant(
    "drops-events",
    lambda: together(wraps(Outbound, "append", _dropping), attribute(Outbound, "has_room", lambda *_: True)),
)
variant("impatient-turns", lambda: wraps(Numbered, "send", _impatient))
variant("patient-replies", lambda: wraps(Outbound, "room", _patient))
variant("one-for-all", _one_for_all)
variant("one-turn-for-all", _one_turn_for_all)
variant("waits-for-readers", _slow_to_stop)
