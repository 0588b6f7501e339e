"""What the owner of one account chooses there: who answers, with which model, in which folder."""

import re
from pathlib import Path
from random import Random

from bridge.relay.choices import IN_CHINESE, ChoiceName
from bridge.relay.texts import Text
from tests.crash.journal import Message
from tests.crash.saying import like, texts_like
from tests.crash.trace import Where

ACCOUNT = "webhook:chooses"
SHARE = 0.45  # of what the owner says there
CODER, SECOND = "coder", "second"
AGENTS, MODELS, FOLDERS = (CODER, SECOND), ("small", "big"), ("one", "two")
FIRST = Where(CODER, "small", "")
LISTS = 0.15  # of all choices: what there is, and nothing is chosen
_WORD = {name.value: word for name, word in IN_CHINESE.items()}
_CHOSEN = {
    ChoiceName.AGENT: Text.AGENT_CHOSEN,
    ChoiceName.MODEL: Text.MODEL_CHOSEN,
    ChoiceName.MODE: Text.MODE_CHOSEN,
    ChoiceName.DIR: Text.FOLDER_CHOSEN,
}
_REFUSED = (Text.CHOICE_NONE, Text.CHOICE_UNKNOWN, Text.CHOICE_PROBLEM, Text.CHOICE_REFUSED)
_ANSWERS = {
    ChoiceName.AGENT: (Text.AGENTS, *_REFUSED),
    ChoiceName.MODEL: (Text.MODELS, *_REFUSED),
    ChoiceName.MODE: (Text.MODES, *_REFUSED),
    ChoiceName.DIR: (Text.FOLDERS, *_REFUSED),
    ChoiceName.COMPACT: (
        Text.COMPACTED, Text.COMPACT_NOTHING, Text.COMPACT_CANNOT, Text.CHOICE_REFUSED
    ),
}  # fmt: skip


def choose(message: Message, work: Path, rng: Random) -> str:
    """Make ``message`` a command: what it says. Folders are below ``work``."""
    names = [*[ChoiceName.AGENT] * 3, *[ChoiceName.MODEL] * 3, *[ChoiceName.COMPACT] * 3]
    name = rng.choice([*names, ChoiceName.DIR, ChoiceName.DIR, ChoiceName.MODE])
    message.command = name.value
    if name is not ChoiceName.COMPACT and rng.random() >= LISTS:
        message.chooses = rng.choice(_offered(name, work))
    word = rng.choice((name.value, name.value.upper(), _WORD[name.value]))
    return f"{rng.choice('/／')}{word} {message.chooses}".strip()


def _offered(name: ChoiceName, work: Path) -> tuple[str, ...]:
    match name:
        case ChoiceName.AGENT:
            return AGENTS
        case ChoiceName.MODEL:
            return MODELS
        case ChoiceName.MODE:
            return ("plan", "ask")
        case _:
            return tuple(str(work / folder) for folder in FOLDERS)


def is_choice(message: Message) -> bool:
    return message.command in _WORD


def is_chosen(message: Message, text: str) -> bool:
    """Whether ``text`` says that what the command names is chosen."""
    name = ChoiceName(message.command)
    return bool(message.chooses and name in _CHOSEN and like(_CHOSEN[name], text) and message.chooses in text)


def is_answer(message: Message, text: str) -> bool:
    return is_chosen(message, text) or texts_like(_ANSWERS[ChoiceName(message.command)], text)


def chosen(message: Message, before: Where) -> Where:
    """How it goes on from ``before`` when the command took effect."""
    match message.chooses and message.command:
        case ChoiceName.AGENT:
            return Where(message.chooses, MODELS[0], before.folder)
        case ChoiceName.MODEL:
            return before._replace(model=message.chooses)
        case ChoiceName.DIR:
            return before._replace(folder=message.chooses)
        case _:
            return before


def seen(where: Where, work: Path) -> Where:
    """Where a turn ran; the account's own folder is ""."""
    within = re.match(re.escape(f"{work}/"), where.folder)
    return where if within else where._replace(folder="")
