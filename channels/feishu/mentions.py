"""Who is mentioned in a message: the bot's own mention goes, others become ``@name``. Pure."""

import re
from collections.abc import Sequence
from dataclasses import dataclass

from bridge.channel.text import defuse_mentions
from channels.feishu.wire import Mention

_EVERYONE = "@_all"
_KEY = re.compile(r"(?P<key>@_(?:all|[a-z]+_[0-9]+))(?P<space> ?)")
_NAME_CHARACTERS = 64
_HOSTILE = re.compile(r"[\s\x00-\x1f\x7f-\x9f\u200b-\u200f\u2028-\u202e\u2060-\u206f\ufeff]+")

_CALL = re.compile(  # what the shared rule leaves: other widths, escapes, spaces, and the keys of mentions
    r"(?:[<＜]|&lt;|&#0*60;|&#x0*3c;)(?=\s{0,8}/?\s{0,8}[aａ][tｔ](?![a-z]))"
    r"|[@＠](?=_(?:all|user_[0-9])|所有人|全体成员|(?:all|everyone|here|channel|room)(?![a-z0-9_]))",
    re.IGNORECASE,
)
_BREAK = "\u200b"  # zero width space


def defused(text: str) -> str:
    """``text`` with nothing in it that calls anybody; to a reader it is the same."""
    return _CALL.sub(lambda found: found.group() + _BREAK, defuse_mentions(text))


@dataclass(frozen=True, slots=True)
class Mentioned:
    """The keys of a message's mentions: those of the bot, and the names that the others stand for."""

    bot: frozenset[str]
    names: dict[str, str]

    def in_text(self, text: str) -> str:
        """``text`` as a person would read it, without the bot's own mention."""
        return self.in_line(text).strip() if self.bot else self.in_line(text)

    def in_line(self, text: str) -> str:
        """The same for a piece of a line, whose spaces stay. One pass: no name is ever read as a key."""
        return _KEY.sub(self._shown, text) if "@_" in text else text

    def _shown(self, found: re.Match[str]) -> str:
        key = found["key"]
        if key in self.bot:
            return ""
        return self.name(key) + found["space"] if key in self.names or key == _EVERYONE else found[0]

    def name(self, key: str, otherwise: str = "") -> str:
        """How the mention ``key`` reads, ``""`` for the bot's own; the text calls it ``otherwise``."""
        if key in self.bot:
            return ""
        if key in (_EVERYONE, "all"):
            return "@everyone"
        return "@" + (self.names.get(key) or plain_name(otherwise) or "someone")


NOBODY = Mentioned(frozenset(), {})


def mentioned(mentions: Sequence[Mention], bot_id: str) -> Mentioned:
    """Sort out ``mentions``; the bot is known by its open_id alone, as anybody may take its name."""
    if not mentions:
        return NOBODY
    own = frozenset(each.key for each in mentions if bot_id and each.open_id == bot_id and each.key)
    return Mentioned(own, {each.key: plain_name(each.name) for each in mentions if each.key not in own})


def plain_name(name: str) -> str:
    """A name that people chose, on one line, without marks that turn or hide text, at most 64 characters."""
    return _HOSTILE.sub(" ", name).strip()[:_NAME_CHARACTERS]
