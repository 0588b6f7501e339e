"""Summing up: what stands for all that was said in a session, as its agent puts it."""

from bridge.agents.contract import AgentError, Compacts, HistoryEntry, Role
from bridge.agents.estimate import entry_tokens
from bridge.protocol import ours
from bridge.sessions.agents import asked
from bridge.sessions.context import Context
from bridge.sessions.errors import RequestError
from bridge.sessions.history import encode
from bridge.sessions.notes import messages
from bridge.sessions.progress import cut
from bridge.sessions.scope import whole
from bridge.sessions.session import Session
from bridge.store.contract import CompactSession

COMPACT_SECONDS = 300.0
SUMMARY_BYTES = 65_536


async def compact(session: Session, message: ours.SessionCompact) -> None:
    """Answer ``session.compact``; raises as ``summed_up``."""
    context = session.context
    async with session.still():
        before, after = await summed_up(context)

    def told(seq: int) -> ours.SessionCompacted:
        return ours.SessionCompacted(
            request_id=message.request_id,
            session_id=context.session_id,
            seq=seq,
            before_tokens=before,
            after_tokens=after,
        )

    await context.events.send(told, context.services.deadlines.reply)


async def summed_up(context: Context) -> tuple[int, int]:
    """Let the agent sum up the session's history; returns its estimated tokens before and after.

    A summary that is no shorter changes nothing.

    Raises:
        RequestError: ``unsupported``, ``invalid_request``, or the agent's own code.
        StoreError: it could not be stored.
    """
    agents, settings, history = context.services.agents, context.settings, context.history
    before = sum(history.tokens)
    try:
        agent = await agents.started(settings.agent, settings.no_tools)
        if not isinstance(agent, Compacts):
            raise RequestError("unsupported", f"the agent {context.agent_name} cannot sum up what was said")
        if not history.entries:
            return before, before
        summing = agent.compact(context.turn(), history.entries)
        said = await asked(summing, f"agent {context.agent_name}/compact", COMPACT_SECONDS)
    except AgentError as error:
        raise RequestError(error.code, str(error)) from error
    entry = _entry(history.entries, said)
    after = entry_tokens(entry)
    if after >= before:
        return before, before
    await context.services.store.do(CompactSession(context.session_id, encode(entry)))
    history.replace(entry)
    return before, after


def _entry(entries: tuple[HistoryEntry, ...], said: str) -> HistoryEntry:
    """Raises RequestError where nothing was said."""
    summary = cut(whole(said).strip(), SUMMARY_BYTES)
    if not summary:
        raise RequestError("provider_error", "the agent summed it up in no words: nothing was changed")
    covers = messages(entries)
    text = f"{covers} earlier messages, summed up:\n{summary}"
    return HistoryEntry(role=Role.NOTE, text=text, covers=covers)
