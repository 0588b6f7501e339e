"""What every chat needs of texts: cutting, shortening and cleaning. Pure."""

import re

from bridge.channel.clusters import inside_clusters
from bridge.channel.split import split_text
from bridge.channel.units import Limit, Render, Unit, measure

__all__ = ["Limit", "Render", "Unit", "clean", "defuse_mentions", "measure", "split_text", "truncate"]

_CLUSTER_REACH = 64  # code points that are searched for the end of a cluster
_DROPPED = re.compile(r"[\x00-\x08\x0b\x0c\x0e-\x1f\x7f]")
_SURROGATE = re.compile(r"[\ud800-\udfff]")
_MENTION = re.compile(
    r"<(?=/?at[\s>/]|@|!(?:channel|here|everyone|subteam)(?![a-z0-9_]))"
    r"|@(?=(?:all|everyone|here|channel|room)(?![a-z0-9_])|所有人|全体成员)",
    re.IGNORECASE,
)
_BREAK = "\u200b"  # zero width space


def truncate(text: str, limit_bytes: int, note: str = "…") -> str:
    """``text`` if it has at most ``limit_bytes`` of UTF-8, else its start with ``note``, together that long.

    What a reader sees as one character stays whole. A note that does not fit is cut itself.
    """
    text = clean(text)
    raw = text.encode()
    if len(raw) <= limit_bytes:
        return text
    ending = note.encode()[: max(limit_bytes, 0)].decode(errors="ignore")
    kept = raw[: max(limit_bytes - len(ending.encode()), 0)].decode(errors="ignore")
    return text[: _cluster_start(text, len(kept))] + ending


def clean(text: str) -> str:
    """``text`` as any JSON, XML or UTF-8 takes it.

    Controls are dropped except tabs and line ends. Halves of surrogate pairs are joined, or become U+FFFD.
    """
    if text.isprintable():
        return text
    if _SURROGATE.search(text):
        text = text.encode("utf-16-le", "surrogatepass").decode("utf-16-le", "replace")
    return _DROPPED.sub("", text)


def defuse_mentions(text: str) -> str:
    """Make of every mention in ``text`` mere text, by a zero width space after its first character.

    Covers ``<at …>``, ``<@…>``, ``<!channel>`` and its kin, ``@all``, ``@everyone``, ``@here`` in any case.
    Do it after everything that removes characters and before splitting: no cut brings a mention back.
    """
    return _MENTION.sub(lambda found: found.group() + _BREAK, text)


def _cluster_start(text: str, at: int) -> int:
    """The last position up to ``at`` that tears no cluster, or ``at`` where a cluster is endless."""
    first = max(at - _CLUSTER_REACH, 0)
    torn = inside_clusters(text[first : at + 1])
    return next((first + back for back in range(at - first, bool(first) - 1, -1) if not torn[back]), at)
