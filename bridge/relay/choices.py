"""The commands by which an owner chooses who answers in a chat, and how. For everybody else they are none."""

from __future__ import annotations

import re
import unicodedata
from dataclasses import dataclass
from enum import StrEnum

from bridge.channel import Inbound
from bridge.relay.intake import Policy

CHARACTERS = 1024
"""Longer than any of them with its argument: what is longer is not looked at."""

_FORM = re.compile(r"\s*[/／](\S+)(?:[^\S\n]+(\S[^\n]*?))?\s*")
_ENDS = ".!。！"  # what a keyboard adds by itself
_DEFAULT = ("default", "默认")


class ChoiceName(StrEnum):
    AGENT = "agent"
    MODEL = "model"
    MODE = "mode"
    DIR = "dir"
    COMPACT = "compact"


IN_CHINESE = {
    ChoiceName.AGENT: "智能体",
    ChoiceName.MODEL: "模型",
    ChoiceName.MODE: "模式",
    ChoiceName.DIR: "目录",
    ChoiceName.COMPACT: "压缩",
}
_NAMES = {name.value: name for name in ChoiceName} | {word: name for name, word in IN_CHINESE.items()}


@dataclass(frozen=True, slots=True)
class Command:
    """``argument`` is what stands behind it, "" for nothing: then it lists what there is."""

    name: ChoiceName
    argument: str = ""

    @property
    def wants_default(self) -> bool:
        return self.argument.lower() in _DEFAULT


def parse(text: str) -> Command | None:
    """The command that ``text`` is, in any case; None for what is an ordinary message.

    A folder may have blanks in its name. Anything else is one word: ``/model of a car`` is a message.
    """
    found = _FORM.fullmatch(text) if len(text) <= CHARACTERS else None
    if found is None:
        return None
    word, argument = unicodedata.normalize("NFKC", found[1]).lower(), found[2] or ""
    name = _NAMES.get(word if argument else word.rstrip(_ENDS))
    if name is None or (name is ChoiceName.COMPACT and argument):
        return None
    return Command(name, argument) if name is ChoiceName.DIR or len(argument.split()) <= 1 else None


def choice_in(message: Inbound, policy: Policy) -> Command | None:
    """The command that a message is: the owner's, in a direct chat with tools, and nothing but that."""
    if message.files or message.reference or not policy.grants_tools(message):
        return None
    return parse(message.text)
