"""Commands in chats and their answers, which wait for no turn: what the bridge knows in memory is enough."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial

from bridge.channel import Inbound
from bridge.channel.text import clean, defuse_mentions, truncate
from bridge.health import Snapshot
from bridge.ids import ConversationKey
from bridge.relay import payload
from bridge.relay.ahead import Said
from bridge.relay.commands import CommandName, command_of
from bridge.relay.conversation import Now
from bridge.relay.conversations import Conversations
from bridge.relay.room import ClaimRoom
from bridge.relay.texts import Language, Text, duration, language_of, say
from bridge.relay.work import Message, Work
from bridge.store.contract import Effect

SHOWN_BYTES, SHOWN_MESSAGES = 120, 9  # of what waits: together less than any platform takes at once


@dataclass(frozen=True, slots=True)
class _Asked:
    """One command: who sent it is in ``message``, and in which language the answer is."""

    name: CommandName
    message: Inbound
    conversation: ConversationKey
    language: Language

    def say(self, text: Text, **values: object) -> str:
        return say(text, self.language, **values)


class Commands:
    """Answers everybody of their own conversation; of the account it tells the owner alone, in their chat."""

    def __init__(
        self, work: Work, conversations: Conversations, room: ClaimRoom, snapshot: Callable[[], Snapshot]
    ) -> None:
        self._work, self._conversations, self._room, self._snapshot = work, conversations, room, snapshot

    def answer(self, message: Inbound) -> Said | None:
        """The answer to a command, None for an ordinary message."""
        command = command_of(message)
        if command is None:
            return None
        language = language_of(message.text, self._work.language)
        asked = _Asked(command.name, message, payload.conversation_of(message), language)
        match command.name:
            case CommandName.STOP:
                return self._stop(asked)
            case CommandName.NEW:
                return self._new(asked)
            case CommandName.STATUS:
                return Said(self._status(asked))
            case CommandName.QUEUE:
                return Said(_queue(asked, self._conversations.now(asked.conversation)))
            case CommandName.WHOAMI:
                return Said(self._whoami(asked))
            case CommandName.HELP:
                return Said(self._help(asked))
        return None  # approvals are answered by whoever asks for them, before this

    def _stop(self, asked: _Asked) -> Said:
        """The first of what is open is worked on; the others wait."""
        running, count = len(self._conversations.now(asked.conversation).running), self._open(asked)
        waiting = count - max(1, running)
        if not count:
            return Said(asked.say(Text.NOTHING_RUNS))
        text = asked.say(Text.STOPPED_ALL, count=waiting) if waiting > 0 else asked.say(Text.STOPPED)
        return Said(text, partial(self._conversations.stop, asked.conversation), Effect.STOP)

    def _new(self, asked: _Asked) -> Said:
        if self._open(asked):
            return Said(asked.say(Text.NEW_BUSY))
        renew = partial(self._conversations.renew, asked.conversation)
        return Said(asked.say(Text.NEW_SESSION), renew, Effect.FORGET)

    def _open(self, asked: _Asked) -> int:
        """How many of its messages wait or run, with those that are on their way into the queue."""
        return self._room.count(asked.conversation) - self._conversations.now(asked.conversation).ending

    def _status(self, asked: _Asked) -> str:
        approvals = self._work.approvals
        ids = approvals.ids(asked.conversation) if approvals is not None else ""
        own = _own_status(asked, self._conversations.now(asked.conversation), ids)
        if not self._work.policy.is_owner(asked.message):
            return own
        shown = self._snapshot()
        seconds = (self._work.clock.now() - shown.since).total_seconds()
        about = {
            "account": shown.id,
            "state": asked.say(Text(f"state_{shown.state}")),
            "time": _time(asked, seconds),
            "count": self._room.total,
        }
        lines = [asked.say(Text.ACCOUNT, **about)]
        if shown.dead_letters:
            lines.append(asked.say(Text.UNDELIVERED, count=shown.dead_letters))
        if shown.unproven_requests:  # before the one that brought this command, which proved itself
            lines.append(asked.say(Text.UNPROVEN, count=shown.unproven_requests))
        return "\n".join([*lines, own])

    def _whoami(self, asked: _Asked) -> str:
        policy, message, platform = self._work.policy, asked.message, self._work.authority.channel
        if asked.language is Language.ZH:
            platform = self._work.spec.chinese.get(platform, platform)
        who = asked.say(Text.WHOAMI, platform=platform, sender=_shown(message.sender))
        if policy.grants_tools(message):
            may = Text.MAY_TOOLS
        elif policy.is_owner(message):
            may = Text.MAY_OWNER
        elif policy.owner and message.sender == policy.owner:
            may = Text.MAY_HERE
        else:
            may = Text.MAY_ASK
        return f"{who}\n{asked.say(may)}"

    def _help(self, asked: _Asked) -> str:
        lines = [asked.say(Text.HELP)]
        if self._work.policy.is_owner(asked.message):
            lines.append(asked.say(Text.HELP_OWNER))
        if self._work.policy.grants_tools(asked.message):
            lines.append(asked.say(Text.HELP_TOOLS))
        return "\n".join(lines)


def _own_status(asked: _Asked, now: Now, questions: str) -> str:
    if not now.running:
        return asked.say(Text.WAITS, count=len(now.waiting)) if now.waiting else asked.say(Text.NOTHING_RUNS)
    lines = [asked.say(Text.RUNS, time=_time(asked, now.seconds))]
    if questions:
        lines.append(asked.say(Text.WAITS_FOR_YOU, ids=questions))
    if now.waiting:
        lines.append(asked.say(Text.WAITS_TOO, count=len(now.waiting)))
    return "\n".join(lines)


def _queue(asked: _Asked, now: Now) -> str:
    if not now.running and not now.waiting:
        return asked.say(Text.NOTHING_RUNS)
    time = _time(asked, now.seconds)
    lines = [asked.say(Text.QUEUED, time=time, words=_beginning(asked, one)) for one in now.running]
    lines += [f"{place}. {_beginning(asked, one)}" for place, one in enumerate(now.waiting, 1)]
    if (over := len(lines) - SHOWN_MESSAGES) > 0:
        lines[SHOWN_MESSAGES:] = [asked.say(Text.MORE_WAIT, count=over)]
    return "\n".join(lines)


def _beginning(asked: _Asked, message: Message) -> str:
    return _shown(message.inbound.text) or asked.say(Text.FILES, count=len(message.inbound.files))


def _shown(text: str) -> str:
    """The beginning of what somebody else wrote: in one line, and notifying nobody."""
    return truncate(defuse_mentions(" ".join(clean(text).split())), SHOWN_BYTES, "…")


def _time(asked: _Asked, seconds: float) -> str:
    return duration(seconds, asked.language)
