"""What counts as a command in a chat: one word behind a slash, in English or Chinese, and nothing else."""

from __future__ import annotations

import unicodedata
from dataclasses import dataclass
from enum import StrEnum

from bridge.channel import Inbound
from bridge.relay.texts import Language

COMMAND_CHARACTERS = 64
"""Longer than any command with its argument: what is longer is not looked at."""

_SLASHES = ("/", "／")
_ENDS = ".!。!"  # what a keyboard adds by itself; a full-width mark is a plain one by then


class CommandName(StrEnum):
    HELP = "help"
    NEW = "new"
    STOP = "stop"
    STATUS = "status"
    QUEUE = "queue"
    APPROVE = "approve"
    DENY = "deny"
    WHOAMI = "whoami"


@dataclass(frozen=True, slots=True)
class Command:
    """``argument`` is what stands behind ``/approve`` and ``/deny``, "" for nothing.

    It is a question's id, the number of one of its options, or both, as they were written.
    """

    name: CommandName
    argument: str = ""

    def shown(self, language: Language) -> str:
        """As its writer would write it."""
        return f"/{IN_CHINESE[self.name] if language is Language.ZH else self.name}"


IN_CHINESE = {
    CommandName.HELP: "帮助",
    CommandName.NEW: "新会话",
    CommandName.STOP: "停止",
    CommandName.STATUS: "状态",
    CommandName.QUEUE: "队列",
    CommandName.APPROVE: "批准",
    CommandName.DENY: "拒绝",
    CommandName.WHOAMI: "我是谁",
}
_NAMES = {name.value: name for name in CommandName} | {word: name for name, word in IN_CHINESE.items()}
_WITH_ID = frozenset({CommandName.APPROVE, CommandName.DENY})


def parse(text: str) -> Command | None:
    """The command that ``text`` is, in any case; None for what is an ordinary message.

    More words than a command takes make it an ordinary message: ``/status of the build?`` is a question.
    """
    if len(text) > COMMAND_CHARACTERS or not text.lstrip().startswith(_SLASHES):
        return None
    word, *more = unicodedata.normalize("NFKC", text).strip().rstrip(_ENDS).split() or [""]
    name = _NAMES.get(word[1:].lower())
    if name is None or not _takes(name, more):
        return None
    return Command(name, " ".join(more))


def _takes(name: CommandName, words: list[str]) -> bool:
    """``/approve`` and ``/deny`` take an id, and an option's number behind it."""
    return len(words) <= (1 if name in _WITH_ID else 0) or (
        name in _WITH_ID and len(words) == 2 and words[1].isdecimal()
    )


def command_of(message: Inbound) -> Command | None:
    """The command that a message is. One with files or a quote says more than a command."""
    return None if message.files or message.reference else parse(message.text)
