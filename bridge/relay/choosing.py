"""Choosing in a chat who answers there: an ordered step of the conversation, and no turn.

What was chosen is stored before the answer is; a crash in between has the command done once more.
"""

from __future__ import annotations

import asyncio
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path

from bridge.channel.text import clean, defuse_mentions, truncate
from bridge.errors import SessionError
from bridge.ids import ConversationKey
from bridge.protocol import ours
from bridge.relay.chat_session import ChatSession
from bridge.relay.choices import ChoiceName, Command
from bridge.relay.session import RefusedError, Session
from bridge.relay.texts import Language, Text, say
from bridge.relay.work import Work
from bridge.store.contract import Choose, Chosen

MOST_LINES = 30
NAME_BYTES, PROBLEM_BYTES = 160, 600
_HEADS = {
    ChoiceName.AGENT: Text.AGENTS,
    ChoiceName.MODEL: Text.MODELS,
    ChoiceName.MODE: Text.MODES,
    ChoiceName.DIR: Text.FOLDERS,
}
_CHOSEN = {
    ChoiceName.AGENT: Text.AGENT_CHOSEN,
    ChoiceName.MODEL: Text.MODEL_CHOSEN,
    ChoiceName.MODE: Text.MODE_CHOSEN,
}


class Choosing:
    """Does the commands of one conversation, whose session is ``chat``."""

    def __init__(self, key: ConversationKey, work: Work, chat: ChatSession) -> None:
        self._key, self._work, self._chat = key, work, chat
        self._authority = work.authority_of(True)

    async def answer(self, command: Command, language: Language) -> str:
        """What the command is answered, once it is done.

        Raises:
            SessionError: the session broke, or could not be opened.
        """
        session = await self._chat.ready_to_choose(self._authority)
        try:
            match command.name:
                case ChoiceName.COMPACT:
                    return await _compact(session, language)
                case ChoiceName.DIR:
                    return await self._dir(session, command, language)
            return await self._choose(session, command, language)
        except RefusedError as error:
            return say(Text.CHOICE_REFUSED, language, problem=_shown(error.why, PROBLEM_BYTES))

    async def _choose(self, session: Session, command: Command, language: Language) -> str:
        told = await session.configure()
        names = _names(told, command.name)
        if not command.argument:
            return _list(told, command.name, names, language)
        name = "" if command.wants_default else pick(command.argument, names)
        if name is None:
            return f"{say(Text.CHOICE_UNKNOWN, language)}\n{_list(told, command.name, names, language)}"
        told = await self._set(session, command.name, name, told)
        values = {"agent": told.agent, "model": told.model, "mode": told.mode or "–"}
        lines = [say(_CHOSEN[command.name], language, **{key: _shown(one) for key, one in values.items()})]
        return "\n".join([*lines, *_problem(told, language)])

    async def _set(
        self, session: Session, what: ChoiceName, name: str, told: ours.SessionConfigured
    ) -> ours.SessionConfigured:
        """Choose ``name``, "" for what is set, and remember it. A model and a mode are their agent's."""
        before = await self._chat.chosen()
        match what:
            case ChoiceName.AGENT:
                chosen = Chosen(agent=name, cwd=before.cwd)
                told = await session.configure(agent=name or self._authority.agent, model="", mode="")
            case ChoiceName.MODEL:
                chosen = replace(before, agent=told.agent, model=name)
                told = await session.configure(agent=told.agent, model=name)
            case _:
                chosen = replace(before, agent=told.agent, mode=name)
                told = await session.configure(agent=told.agent, mode=name)
        await self._keep(chosen)
        return told

    async def _dir(self, session: Session, command: Command, language: Language) -> str:
        folders, told = self._work.folders, await session.configure()
        current = Path(told.cwd)
        there = await asyncio.to_thread(folders.listed, current)
        names = {str(one): str(one) for one in there}
        listed = _list(told, ChoiceName.DIR, names, language)
        if not command.argument:
            return listed
        if command.wants_default:
            found: Path | None = folders.workspace
        else:
            text = pick(command.argument, names) or command.argument
            found = await asyncio.to_thread(folders.find, text, current)
        if found is None or not await asyncio.to_thread(found.is_dir):
            return f"{say(Text.FOLDER_UNKNOWN, language)}\n{listed}"
        before = await self._chat.chosen()
        await self._keep(replace(before, cwd="" if command.wants_default else str(found)))
        await self._chat.ready(self._authority)
        return say(Text.FOLDER_CHOSEN, language, folder=_shown(str(found)))

    async def _keep(self, chosen: Chosen) -> None:
        await self._work.store.do(Choose(self._work.account, self._key, chosen))


async def _compact(session: Session, language: Language) -> str:
    try:
        told = await session.compact()
    except SessionError as error:
        if error.code != "unsupported":
            raise
        return say(Text.COMPACT_CANNOT, language)
    if told.after_tokens >= told.before_tokens:
        return say(Text.COMPACT_NOTHING, language)
    return say(Text.COMPACTED, language, before=told.before_tokens, after=told.after_tokens)


def pick(argument: str, names: Mapping[str, str]) -> str | None:
    """The one of ``names`` that is meant: by its id, by what people read, or by its number in the list."""
    if argument in names:
        return argument
    low = argument.casefold()
    alike = [one for one, name in names.items() if low in (one.casefold(), name.casefold())]
    if len(alike) == 1:
        return alike[0]
    if argument.isdecimal() and len(argument) <= 4 and 1 <= int(argument) <= len(names):
        return list(names)[int(argument) - 1]
    return None


def _names(told: ours.SessionConfigured, what: ChoiceName) -> dict[str, str]:
    match what:
        case ChoiceName.AGENT:
            return {name: name for name in told.agents}
        case ChoiceName.MODEL:
            return {one.id: one.name for one in told.models}
        case _:
            return {one.id: one.name for one in told.modes}


def _list(
    told: ours.SessionConfigured, what: ChoiceName, names: Mapping[str, str], language: Language
) -> str:
    """All there is, by number; the current one is marked. Of many the first."""
    current = {"agent": told.agent, "model": told.model, "mode": told.mode, "dir": told.cwd}[what]
    if not names and not told.problem:
        return say(Text.CHOICE_NONE, language, agent=_shown(told.agent))
    lines = [say(_HEADS[what], language, agent=_shown(told.agent), current=_shown(current) or "–")]
    for number, (one, name) in enumerate(names.items(), 1):
        if number > MOST_LINES:
            lines.append(say(Text.MORE_WAIT, language, count=len(names) - MOST_LINES))
            break
        label = _shown(one) if name == one else f"{_shown(one)} ({_shown(name)})"
        lines.append(f"{number}. {label}{' ←' if one == current else ''}")
    return "\n".join([*lines, *_problem(told, language)])


def _problem(told: ours.SessionConfigured, language: Language) -> Sequence[str]:
    if not told.problem:
        return ()
    return (say(Text.CHOICE_PROBLEM, language, problem=_shown(told.problem, PROBLEM_BYTES)),)


def _shown(text: str, most_bytes: int = NAME_BYTES) -> str:
    """What somebody else named: in one line, and notifying nobody."""
    return truncate(defuse_mentions(" ".join(clean(text).split())), most_bytes, "…")
