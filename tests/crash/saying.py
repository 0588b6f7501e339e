"""Commands as people write them, and whether what they are told is an answer to it."""

import re
from collections.abc import Iterable
from functools import cache
from random import Random

from bridge.relay.commands import IN_CHINESE, CommandName
from bridge.relay.texts import Language, Text, say

COMMANDS = ("help", "new", "stop", "status", "queue", "whoami")
SAID = "said"  # the reason of what was answered at once
STOP = "stop"
YES, NO, PRESS, DENY = "yes", "no", "press", "deny"
_WORDS = {True: ("yes", "y", "是", "同意"), False: ("no", "n", "不要", "取消")}
_DECIDED = (Text.APPROVAL_GIVEN, Text.APPROVAL_DENIED)
_UNDECIDED = (Text.APPROVAL_STALE, Text.APPROVAL_NONE, Text.APPROVAL_WHICH, Text.APPROVAL_OWNER)
_ANSWERS = {
    "help": (Text.HELP,),
    "new": (Text.NEW_SESSION, Text.NEW_BUSY),
    "stop": (Text.STOPPED, Text.STOPPED_ALL, Text.NOTHING_RUNS),
    "status": (Text.ACCOUNT, Text.RUNS, Text.WAITS, Text.NOTHING_RUNS),
    "queue": (Text.QUEUED, Text.WAITS, Text.NOTHING_RUNS),
    "whoami": (Text.WHOAMI,),
    "approve": (Text.APPROVAL_GIVEN, *_UNDECIDED),
    DENY: (Text.APPROVAL_DENIED, *_UNDECIDED),
    YES: (Text.APPROVAL_GIVEN,),
    NO: (Text.APPROVAL_DENIED,),
    PRESS: (*_DECIDED, *_UNDECIDED),
}
_FIELD = re.compile(r"\\\{\w+\\\}")


def written(command: str, rng: Random, english: bool = False) -> str:
    """``command`` in either language, and in any case."""
    if not english and rng.random() < 0.5:
        return rng.choice(("/", "／")) + IN_CHINESE[CommandName(command)]
    return rng.choice((f"/{command}", f"/{command.upper()}", f" /{command}. "))


def word(approved: bool, rng: Random) -> str:
    return rng.choice(_WORDS[approved])


def is_answer(command: str, text: str) -> bool:
    """Whether ``text`` is what ``command`` may be told, in either language."""
    if command == "queue" and text.startswith("1. "):
        return True  # what waits, while nothing runs
    return texts_like(_ANSWERS[command], text)


def texts_like(texts: Iterable[Text], text: str) -> bool:
    return any(like(one, text) for one in texts)


def like(one: Text, text: str) -> bool:
    """Whether ``text`` begins as ``one`` does, in either language."""
    return any(_like(one, language).match(text) for language in Language)


def decided(text: str) -> tuple[str, bool] | None:
    """The question that ``text`` says is answered by that, and how; None where it says no such thing."""
    for one in _DECIDED:
        for language in Language:
            if found := _like(one, language).match(text):
                return found[1], one is Text.APPROVAL_GIVEN
    return None


def asked(text: str) -> str:
    """The id of the question that ``text`` is, "" for anything else."""
    found = next(filter(None, (_like(Text.APPROVAL, language).match(text) for language in Language)), None)
    return found[1] if found else ""


@cache
def _like(text: Text, language: Language) -> re.Pattern[str]:
    """The first line of a text of ours, whatever stands in it for its fields."""
    line = re.escape(_template(text, language).partition("\n")[0]).replace("messages", "messages?")
    return re.compile(_FIELD.sub("(.*?)", line))


def _template(text: Text, language: Language) -> str:
    """With its fields as they are written."""
    fields: dict[str, object] = {}
    while True:
        try:
            return say(text, language, **fields)
        except KeyError as missing:
            fields[missing.args[0]] = f"{{{missing.args[0]}}}"
