"""Variants that run turns, their queue and their tools wrongly."""

import asyncio
import os
import stat
from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace
from typing import Any

from bridge.agents.contract import AgentError, TurnFile
from bridge.media import outbox
from bridge.media.outbox import Copied
from bridge.protocol import messages
from bridge.protocol.events import ToolStarted
from bridge.sessions import active, attachments, calls, progress, queue, turns
from bridge.sessions.active import ActiveTurn
from bridge.sessions.approvals import Approvals, Decision
from bridge.sessions.calls import Calls
from bridge.sessions.context import SessionSettings
from bridge.sessions.errors import RequestError
from bridge.sessions.history import History
from bridge.sessions.isolate import Isolated
from bridge.sessions.queue import TurnQueue
from bridge.sessions.requests import Requests
from bridge.sessions.session import Session
from bridge.sessions.turns import TurnRun
from bridge.tools import chat_attach, places
from bridge.tools.chat_attach import ChatAttach
from bridge.tools.contract import ArgumentsError, ToolResult
from bridge.tools.wait import Wait
from tests.conformance.broken.read import _BLANK_OR_NOT
from tests.conformance.variants import (
    Patch,
    attribute,
    awaits_nothing,
    does_nothing,
    everywhere,
    refusing,
    together,
    variant,
    wraps,
)

Before = Callable[..., Any]

# --- turns ------------------------------------------------------------------------------------------------


def _is_blank(_: Any, message: messages.TurnStart) -> bool:
    return not message.prompt.strip()


def _remembering(record: Before) -> Before:
    async def changed(self: ActiveTurn, event: Any, completed: bool, *more: Any) -> None:
        await record(self, event, True, *more)

    return changed


variant("checks-prompt-first", lambda: refusing(messages.TurnStart, "invalid_request", _is_blank))
variant("remembers-failures", lambda: wraps(ActiveTurn, "_record", _remembering))
variant("endless-text", lambda: attribute(turns, "STEP_TEXT_BYTES", 2**23))

# --- what is remembered -----------------------------------------------------------------------------------


def _forgetting(choose: Before) -> Before:
    def changed(entries: Any, sizes: Any, room: int) -> Any:
        keep = max(at for at, entry in enumerate(entries) if entry.role == "user")
        return choose([*entries[:2], *entries[keep:]], [*sizes[:2], *sizes[keep:]], room)

    return changed


def _too_late(choose: Before) -> Before:
    return lambda entries, sizes, room: choose(entries, sizes, max(room, 4000))


variant("forgets-newest", lambda: wraps(turns, "select", _forgetting))
variant("endless-context", lambda: wraps(turns, "select", _too_late))
variant(
    "endless-history",
    lambda: together(everywhere("MOST_ENTRIES", 10**6), everywhere("MOST_BYTES", 10**9)),
)

# --- calls ------------------------------------------------------------------------------------------------


def _starting_bad(read: Before) -> Before:
    def changed(model: Any, raw: Any) -> Any:
        try:
            return read(model, raw)
        except ArgumentsError:
            return model.model_construct(**raw)

    return changed


def _running_denied(approved: Before) -> Before:
    async def changed(self: Calls, *arguments: Any) -> bool:
        await approved(self, *arguments)
        return True

    return changed


def _auto(approved: Before) -> Before:
    async def changed(self: Calls, *arguments: Any) -> bool:
        return self._scope.context.settings.auto_approve or await approved(self, *arguments)

    return changed


def _for_good() -> Patch:
    known: set[str] = set()

    def make(approved: Before) -> Before:
        async def changed(self: Calls, call: Any, proposed: Any) -> bool:
            if call.tool.name in known or await approved(self, call, proposed):
                known.add(call.tool.name)
                return True
            return False

        return changed

    return wraps(Calls, "_is_approved", make)


def _failing(call: Before) -> Before:
    async def changed(self: Calls, *arguments: Any) -> ToolResult:
        result: ToolResult = await call(self, *arguments)
        if not result.success:
            raise AgentError("internal_error", "a tool failed")
        return result

    return changed


def _endless_steps(begin: Before) -> Before:
    async def changed(self: TurnRun, *arguments: Any) -> Any:
        self._steps = 0
        return await begin(self, *arguments)

    return changed


def _stubborn(init: Before) -> Before:
    def changed(self: Isolated, work: Any, name: str, stop_seconds: float) -> None:
        init(self, work, name, 2.0 if name.startswith("turn") else stop_seconds)

    return changed


def _chatty(run: Before) -> Before:
    async def changed(self: Wait, arguments: Any, place: Any) -> ToolResult:
        async def twice(line: str) -> None:
            await place.progress(line)
            await self._clock.sleep(0.1)
            await place.progress(line)

        result: ToolResult = await run(self, arguments, SimpleNamespace(cwd=place.cwd, progress=twice))
        return result

    return changed


def _unknown(judge: Before) -> Before:
    async def changed(self: Calls, proposed: Any) -> ToolResult:
        if proposed.name not in self._scope.context.tools:
            await self._scope.send(ToolStarted, call_id=proposed.call_id, name=proposed.name)
        result: ToolResult = await judge(self, proposed)
        return result

    return changed


variant("starts-unknown-tools", lambda: wraps(Calls, "_judge", _unknown))
variant("many-calls", lambda: attribute(calls, "STEP_CALLS", 33))
variant("few-calls", lambda: attribute(calls, "STEP_CALLS", 31))
variant("long-arguments", lambda: everywhere("ARGUMENT_BYTES", 10**6))
variant("endless-steps", lambda: wraps(TurnRun, "begin", _endless_steps))
variant("waits-for-the-stubborn", lambda: wraps(Isolated, "__init__", _stubborn))
variant("asks-for-all", lambda: attribute(SessionSettings, "policy", lambda *_: "always"))
variant("approves-all", lambda: attribute(calls, "decide", lambda *_: Decision.ALLOW))
variant("starts-bad-calls", lambda: wraps(calls, "read_arguments", _starting_bad))
variant("runs-denied", lambda: wraps(Calls, "_is_approved", _running_denied))
variant("auto-approves", lambda: wraps(Calls, "_is_approved", _auto))
variant("approves-for-good", _for_good)
variant("tools-fail-turns", lambda: wraps(Calls, "call", _failing))
variant(
    "fast-progress", lambda: together(attribute(progress, "PACE_SECONDS", 0.0), wraps(Wait, "run", _chatty))
)

# --- approvals --------------------------------------------------------------------------------------------


def _resolving(resolve: Before) -> Before:
    def changed(self: Approvals, approval_id: str, approved: bool) -> None:
        if approval_id in self._open:
            resolve(self, approval_id, approved)

    return changed


def _shared_approvals() -> Patch:
    everybody: dict[str, Any] = {}

    def init(self: Approvals) -> None:
        self._open = everybody

    return attribute(Approvals, "__init__", init)


def _impatient(ask: Before) -> Before:
    async def changed(self: Approvals, announce: Any, seconds: float) -> bool:
        answer: bool = await ask(self, announce, 0.0001)
        return answer

    return changed


def _endless(ask: Before) -> Before:
    async def changed(self: Approvals, announce: Any, seconds: float) -> bool:
        answer: bool = await ask(self, announce, 0)
        return answer

    return changed


variant("resolves-anything", lambda: wraps(Approvals, "resolve", _resolving))
variant("shared-approvals", _shared_approvals)
variant("impatient-approvals", lambda: wraps(Approvals, "ask", _impatient))
variant("endless-approvals", lambda: wraps(Approvals, "ask", _endless))

# --- the queue --------------------------------------------------------------------------------------------


def _last_first(self: TurnQueue) -> Any:
    return self._entries.pop() if self._entries else None


def _kept(self: TurnQueue) -> Any:
    return self._entries[0] if self._entries else None


def _counting_old(update: Before) -> Before:
    def changed(self: TurnQueue, queue_id: str, revision: int, prompt: str) -> Any:
        self._check_room([*self._entries, self._entries[0].model_copy(update={"prompt": prompt})])
        return update(self, queue_id, revision, prompt)

    return changed


def _unbounded_update(update: Before) -> Before:
    def changed(self: TurnQueue, *arguments: Any) -> Any:
        with does_nothing(TurnQueue, "_check_room"):
            return update(self, *arguments)

    return changed


def _behind(move: Before) -> Before:
    def changed(self: TurnQueue, queue_id: str, revision: int, before: str | None) -> Any:
        entry, at = move(self, queue_id, revision, before)
        if before not in (None, queue_id):
            self._entries[at : at + 2] = self._entries[at : at + 2][::-1]
            at += 1
        return entry, at

    return changed


def _raising(move: Before) -> Before:
    def changed(self: TurnQueue, queue_id: str, revision: int, before: str | None) -> Any:
        entry, at = move(self, queue_id, revision, before)
        return entry.model_copy(update={"revision": revision + 1}), at

    return changed


def _to_unknown(move: Before) -> Before:
    def changed(self: TurnQueue, queue_id: str, revision: int, before: str | None) -> Any:
        known = [entry.queue_id for entry in self._entries]
        return move(self, queue_id, revision, before if before in known else None)

    return changed


def _removing_nothing(self: TurnQueue, queue_id: str, revision: int) -> Any:
    return self._at_revision(self._find(queue_id), revision)


variant("last-first", lambda: attribute(TurnQueue, "take", _last_first))
variant("dequeues-late", lambda: attribute(TurnQueue, "take", _kept))
variant("endless-queue", lambda: does_nothing(TurnQueue, "_check_room"))
variant("short-queue", lambda: attribute(queue, "QUEUE_ITEMS", 63))
variant("counts-prompts-only", lambda: attribute(queue, "write", lambda entry: entry.prompt.encode()))
variant("any-revision", lambda: attribute(TurnQueue, "_at_revision", lambda self, at, _: self._entries[at]))
variant("counts-old-prompts", lambda: wraps(TurnQueue, "update", _counting_old))
variant("updates-over-limit", lambda: wraps(TurnQueue, "update", _unbounded_update))
variant("moves-behind", lambda: wraps(TurnQueue, "move", _behind))
variant("moves-raise-always", lambda: wraps(TurnQueue, "move", _raising))
variant("moves-to-unknown", lambda: wraps(TurnQueue, "move", _to_unknown))
variant("removes-nothing", lambda: attribute(TurnQueue, "remove", _removing_nothing))
variant("clear-keeps-queue", lambda: does_nothing(TurnQueue, "clear"))
variant("conflicts-without-snapshot", lambda: awaits_nothing(Requests, "_after_conflict"))
variant(
    "fails-at-large-snapshots",
    lambda: attribute(Requests, "_after_conflict", lambda _, session, each: session.send_snapshot(each)),
)
variant(
    "queues-blanks",
    lambda: together(everywhere("check_prompt", _BLANK_OR_NOT), does_nothing(attachments, "check")),
)

# --- pause, cancel, clear ---------------------------------------------------------------------------------


def _pausing(after: Callable[[Session], None]) -> Callable[[], Patch]:
    """After a pause, or its end, ``after`` is done with the session."""

    def make(pause: Before) -> Before:
        async def changed(self: Session, message: Any) -> None:
            await pause(self, message)
            after(self)

        return changed

    return lambda: wraps(Session, "pause", make)


def _changes_only(pause: Before) -> Before:
    async def changed(self: Session, message: Any) -> None:
        if message.paused != self._paused:
            await pause(self, message)

    return changed


def _unpause(session: Session) -> None:
    session._paused = False
    session._work.set()


def _cancel(session: Session) -> None:
    if session._active:
        session._active.cancel()


def _drop(session: Session) -> None:
    session._queue.clear()


def _sleeping_on(pause: Before) -> Before:
    async def changed(self: Session, message: Any) -> None:
        work, self._work = self._work, asyncio.Event()
        await pause(self, message)
        self._work = work

    return changed


def _starting(start_turn: Before) -> Before:
    async def changed(self: Session, message: Any) -> None:
        paused, self._paused = self._paused, False
        try:
            await start_turn(self, message)
        finally:
            self._paused = paused

    return changed


def _cancelling(before: Callable[[Session, str], bool]) -> Callable[[], Patch]:
    """``before`` sees each cancel first; True: that is all."""

    def make(active: Before) -> Before:
        def changed(self: Session, turn_id: str) -> Any:
            done = before(self, turn_id)
            return SimpleNamespace(cancel=lambda: None) if done else active(self, turn_id)

        return changed

    return lambda: wraps(Session, "active", make)


def _cancel_any(session: Session, turn_id: str) -> bool:
    _cancel(session)
    return True


def _cancel_waiting(session: Session, turn_id: str) -> bool:
    waiting = [entry for entry in session._queue.entries if entry.queue_id == turn_id]
    for entry in waiting:
        session._queue.remove(turn_id, entry.revision)
    return bool(waiting)


def _drop_too(session: Session, turn_id: str) -> bool:
    _drop(session)
    return False


def _deaf(session: Session, turn_id: str) -> bool:
    return not session.context.events._outbound.has_room(1_000)


def _once(cancel: Before) -> Before:
    def changed(self: ActiveTurn) -> None:
        if self._cancelled:
            raise RequestError("turn_not_found", "once is enough")
        cancel(self)

    return changed


def _clearing_busy(clear: Before) -> Before:
    async def changed(self: Session, message: Any) -> None:
        running, self._active = self._active, None
        try:
            await clear(self, message)
        finally:
            self._active = running

    return changed


def _clearing_pause(clear: Before) -> Before:
    async def changed(self: Session, message: Any) -> None:
        self._paused = False
        await clear(self, message)

    return changed


variant("answers-changes-only", lambda: wraps(Session, "pause", _changes_only))
variant("pause-is-ignored", _pausing(_unpause))
variant("pause-cancels", _pausing(_cancel))
variant("pause-clears", _pausing(_drop))
variant("unpausing-starts-nothing", lambda: wraps(Session, "pause", _sleeping_on))
variant("starts-while-paused", lambda: wraps(Session, "start_turn", _starting))
variant("cancels-anything", _cancelling(_cancel_any))
variant("cancels-waiting", _cancelling(_cancel_waiting))
variant("cancel-drops-queue", _cancelling(_drop_too))
variant("uncancellable-waits", _cancelling(_deaf))
variant("second-cancel-refused", lambda: wraps(ActiveTurn, "cancel", _once))
variant("clears-while-busy", lambda: wraps(Session, "clear", _clearing_busy))
variant("clear-unpauses", lambda: wraps(Session, "clear", _clearing_pause))
variant("clear-remembers", lambda: does_nothing(History, "clear"))

# --- received files ---------------------------------------------------------------------------------------


class _Any:
    def __contains__(self, item: object) -> bool:
        return True


def _checking(accept: Callable[[Any], bool]) -> Callable[[], Patch]:
    """What ``accept`` says yes to is taken as it is."""

    def make(check_one: Before) -> Before:
        def changed(attachment: Any, number: int) -> None:
            if not accept(attachment):
                check_one(attachment, number)

        return changed

    return lambda: wraps(attachments, "_check_one", make)


def _with_real_size(check_one: Before) -> Before:
    def changed(attachment: Any, number: int) -> None:
        size = os.lstat(attachment.path).st_size if os.path.lexists(attachment.path) else 0
        check_one(attachment.model_copy(update={"size": size}), number)

    return changed


def _real_paths(check_one: Before) -> Before:
    def changed(attachment: Any, number: int) -> None:
        if os.path.realpath(attachment.path) != attachment.path:
            raise RequestError("invalid_request", "no links")
        check_one(attachment, number)

    return changed


def _untold(*_: Any, **__: Any) -> TurnFile:
    return TurnFile("file", None, "", "", 0)


def _exists(attachment: Any) -> bool:
    return "\0" not in attachment.path and os.path.lexists(attachment.path)


variant("many-attachments", lambda: attribute(attachments, "TURN_ATTACHMENTS", 17))
variant("few-attachments", lambda: attribute(attachments, "TURN_ATTACHMENTS", 15))
variant("any-kind", lambda: attribute(attachments, "KINDS", _Any()))
variant("few-kinds", lambda: attribute(attachments, "KINDS", attachments.KINDS - {"sticker"}))
variant("relative-paths", _checking(lambda attachment: not attachment.path.startswith("/")))
variant("any-file", _checking(_exists))
variant("no-linked-folders", lambda: wraps(attachments, "_check_one", _real_paths))
variant(
    "judges-first-file", lambda: wraps(attachments, "check", lambda check: lambda found: check(found[:1]))
)
variant("any-size", lambda: wraps(attachments, "_check_one", _with_real_size))
variant("untold-files", lambda: attribute(turns, "describe", _untold))
variant("shows-all", lambda: attribute(attachments, "_shown", lambda text, _: text))

# --- sent files -------------------------------------------------------------------------------------------


def _original(source: Path, *_: Any) -> Copied:
    return Copied(source, source.name, source.stat().st_size)


def _open_copies(copy: Before) -> Before:
    def changed(*arguments: Any) -> Any:
        copied = copy(*arguments)
        copied.path.chmod(0o644)
        return copied

    return changed


def _unlinked(judge: Before) -> Before:
    def changed(found: os.stat_result, most: int) -> Any:
        return judge(SimpleNamespace(st_mode=found.st_mode, st_size=found.st_size, st_nlink=1), most)

    return changed


def _refusing_links(attach: Before) -> Before:
    def changed(self: ChatAttach, arguments: Any, cwd: Path) -> Any:
        if stat.S_ISLNK((cwd / arguments.path).lstat().st_mode):
            return "that is a link"
        return attach(self, arguments, cwd)

    return changed


variant("attaches-originals", lambda: attribute(chat_attach, "copy", _original))
variant("open-copies", lambda: wraps(chat_attach, "copy", _open_copies))
variant("long-captions", lambda: attribute(chat_attach, "CAPTION_BYTES", 10**6))
variant("sends-private-names", lambda: attribute(places, "_is_telling", lambda _: False))
variant("sends-from-anywhere", lambda: attribute(chat_attach, "is_private", lambda *_: False))
variant("sends-anything", lambda: attribute(outbox, "_judge", lambda *_: None))
variant("sends-hard-links", lambda: wraps(outbox, "_judge", _unlinked))
variant("refuses-links", lambda: wraps(ChatAttach, "_attach", _refusing_links))
variant("keeps-copies", lambda: does_nothing(active, "_remove"))
