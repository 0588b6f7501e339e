"""Results of tools that are more than the model reads at once: each is cut to its share of the room."""

from collections.abc import Sequence

from bridge.agents.contract import AgentError, HistoryEntry, Role
from bridge.agents.estimate import text_bytes

LEAST_BYTES = 512  # less of a longer result, the mark included, would be of no use
TOO_LONG = (
    "the result of a tool does not fit what the model reads at once: give it more (context_tokens of its "
    "profile, or sessions.context_max_tokens), or ask for less at once"
)
_MARK = (
    "\n[Cut here: the last {left} of {size} bytes are left out, as they are more than you can read at once. "
    "The same call gives no more. Ask for less, or for another part.]"
)


def fitted(step: Sequence[HistoryEntry], sizes: Sequence[int], room: int, spare: int) -> list[HistoryEntry]:
    """A ``step`` with the results of its calls in ``room`` tokens: the longest are cut, to equal shares.

    ``sizes`` are the estimates of the entries. Where it has to be cut, ``spare`` tokens stay free.

    Raises:
        AgentError: ``context_limit``: what the step says, or what is left for its results, is too much.
    """
    if sum(sizes) <= room:
        return list(step)
    results = [size for entry, size in zip(step, sizes, strict=True) if entry.role is Role.TOOL]
    if not results:
        raise _too_long()
    share = _share(results, room - spare - (sum(sizes) - sum(results)))
    return [
        _cut(entry, share) if entry.role is Role.TOOL and size > share else entry
        for entry, size in zip(step, sizes, strict=True)
    ]


def _share(sizes: Sequence[int], room: int) -> int:
    """The most that each may have, so that all have ``room``: what the short ones leave is the others'."""
    share = 0
    for count, size in zip(range(len(sizes), 0, -1), sorted(sizes), strict=True):
        share = room // count
        if size > share:
            break
        room -= size
    return share


def _cut(entry: HistoryEntry, share: int) -> HistoryEntry:
    """``entry`` in ``share`` tokens, with a mark that says how much is left out."""
    data = entry.text.encode()
    most = text_bytes(share) - len(entry.name.encode())
    if most < LEAST_BYTES:
        raise _too_long()
    longest_mark = _MARK.format(left=len(data), size=len(data))
    kept = data[: most - len(longest_mark)].decode(errors="ignore")
    mark = _MARK.format(left=len(data) - len(kept.encode()), size=len(data))
    return entry.model_copy(update={"text": kept + mark})


def _too_long() -> AgentError:
    return AgentError("context_limit", TOO_LONG)
