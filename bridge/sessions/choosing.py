"""Who answers in a session: what there is to choose from, and whether a choice is one of that."""

import asyncio
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from itertools import islice
from pathlib import Path

from bridge.agents.contract import AgentError, Choices, Chooses
from bridge.protocol import ours
from bridge.sessions.agents import asked
from bridge.sessions.context import Context
from bridge.sessions.errors import RequestError
from bridge.sessions.session import Session

CHOICES_SECONDS = 60.0  # an agent may have to start a program to tell
MOST_NAMES = 1000
_TOLD_NAMES = 20  # in a refusal


@dataclass(frozen=True, slots=True)
class Offer:
    """The session's agent as it is by itself, and what it offers; ``problem`` is why that cannot be told."""

    model: str
    choices: Choices = field(default_factory=Choices)
    problem: AgentError | None = None


async def offered(context: Context) -> Offer:
    """What there is to choose from in the session as it is.

    Raises:
        RequestError: as ``Agents.get``: its agent is not there, not for it, or cannot be used now.
    """
    agents, settings = context.services.agents, context.settings
    agent = await agents.get(settings.agent, settings.no_tools)
    if not isinstance(agent, Chooses):
        return Offer(agent.model, Choices(models={agent.model: agent.model}))
    try:
        await agents.started(settings.agent, settings.no_tools)
        name = f"agent {context.agent_name}/choices"
        return Offer(agent.model, await asked(agent.choices(context.turn()), name, CHOICES_SECONDS))
    except AgentError as error:
        return Offer(agent.model, problem=error)


async def wanted(context: Context, message: ours.SessionConfigure) -> Context:
    """The session as ``message`` wants it. Another agent's models and modes are not this one's.

    Raises:
        RequestError: ``invalid_request``: there is no such folder.
    """
    settings, cwd = context.settings, context.cwd
    if message.agent is not None:
        same = (message.agent or context.services.agents.default) == context.agent_name
        fresh = settings if same else replace(settings, model="", mode="")
        settings = replace(fresh, agent=message.agent)
    if message.model is not None:
        settings = replace(settings, model=message.model)
    if message.mode is not None:
        settings = replace(settings, mode=message.mode)
    if message.cwd is not None:
        cwd = await folder(message.cwd)
    return replace(context, settings=settings, cwd=cwd)


async def judge(after: Context, before: Context | None = None) -> Offer:
    """What there is in the session as it is to be, ``after``; what it was ``before`` is not judged again.

    A new session (no ``before``) is taken at its word where its agent cannot tell: its first turn does.

    Raises:
        RequestError: ``invalid_request``, or the agent's own code: what was chosen is not among that.
    """
    offer, settings = await offered(after), after.settings
    if before is None and offer.problem is not None:
        return offer
    known = before.settings if before is not None and before.agent_name == after.agent_name else None
    if settings.model not in ("", known and known.model, offer.model):
        _check("model", settings.model, offer.choices.models, offer.problem)
    if settings.mode not in ("", known and known.mode):
        _check("mode", settings.mode, offer.choices.modes, offer.problem)
    return offer


def _check(word: str, name: str, names: Mapping[str, str], problem: AgentError | None) -> None:
    if problem is not None:
        raise RequestError(problem.code, str(problem)) from problem
    if name not in names:
        there = ", ".join(islice(names, _TOLD_NAMES)) + (", …" if len(names) > _TOLD_NAMES else "")
        raise RequestError("invalid_request", f"there is no {word} of that name here: {there or 'none'}")


async def configure(session: Session, message: ours.SessionConfigure) -> None:
    """Answer ``session.configure``: a change is in force, and stored, before it is told.

    Raises:
        RequestError: it was refused.
        StoreError: it could not be stored.
    """
    context, given = session.context, (message.agent, message.model, message.mode, message.cwd)
    if all(one is None for one in given):
        offer = await offered(context)
    else:
        async with session.still():
            after = await wanted(context, message)
            offer = await judge(after, context)
            if (after.agent_name, after.cwd) != (context.agent_name, context.cwd):
                await context.leave()
            await context.configure(after.settings, after.cwd)
    await context.events.send(
        lambda seq: _configured(context, offer, message.request_id, seq), context.services.deadlines.reply
    )


def _configured(context: Context, offer: Offer, request_id: str, seq: int) -> ours.SessionConfigured:
    """How the session stands, for its client."""
    settings, agents = context.settings, context.services.agents
    return ours.SessionConfigured(
        request_id=request_id,
        session_id=context.session_id,
        seq=seq,
        agent=context.agent_name,
        model=settings.model or offer.model,
        mode=settings.mode,
        cwd=str(context.cwd),
        agents=tuple(sorted({*agents.names(), context.agent_name})),
        models=_named(offer.choices.models),
        modes=_named(offer.choices.modes),
        chosen=settings.chosen,
        problem=str(offer.problem or ""),
    )


def _named(names: Mapping[str, str]) -> tuple[ours.Named, ...]:
    return tuple(ours.Named(id=one, name=name) for one, name in islice(names.items(), MOST_NAMES))


async def folder(cwd: str) -> Path:
    """The real path of the directory ``cwd``.

    Raises:
        RequestError: ``invalid_request``: it is none.
    """
    found = await asyncio.to_thread(resolve_folder, cwd)
    if found is None:
        raise RequestError("invalid_request", "the cwd is no directory: create it or choose another")
    return found


def resolve_folder(cwd: str) -> Path | None:
    """The real path of the directory ``cwd``, None when it is none; blocking."""
    try:
        found = Path(cwd).resolve(strict=True)
        str(found).encode()  # it is told to the client
        return found if cwd and found.is_dir() else None
    except (OSError, ValueError, RuntimeError):  # ValueError: NUL, no UTF-8; RuntimeError: links in a circle
        return None
