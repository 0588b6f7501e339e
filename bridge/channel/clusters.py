"""Where a text may be cut without tearing what a reader sees as one character. Pure.

A small rule of our own in the spirit of Unicode's extended grapheme clusters (UAX 29, read 2026-11-30):
marks, joiners, variation selectors, skin tones and tags stay with what they follow, regional indicators
go in pairs, Hangul jamo and CR LF hold together.
"""

import unicodedata

_JOINER = "\u200d"
_EXTENDING = {_JOINER, *map(chr, range(0x1F3FB, 0x1F400)), *map(chr, range(0xE0020, 0xE0080))}
_MARKS = frozenset({"Mn", "Mc", "Me"})


def inside_clusters(text: str) -> bytearray:
    """For each position of ``text`` and its end, 1 where a cut would tear a cluster, else 0."""
    torn = bytearray(len(text) + 1)
    if text.isascii() and "\r\n" not in text:
        return torn
    flags = 0  # regional indicators in a row before this position
    for at in range(1, len(text)):
        before, after = text[at - 1], text[at]
        flags = flags + 1 if _is_flag(before) else 0
        if before < "\x80" and after < "\x80":
            torn[at] = before == "\r" and after == "\n"
        elif _joins(before, after) or (flags % 2 and _is_flag(after)):
            torn[at] = 1
    return torn


def _joins(before: str, after: str) -> bool:
    if before in "\r\n":
        return False
    if before == _JOINER:
        return not after.isspace()
    return after in _EXTENDING or unicodedata.category(after) in _MARKS or _is_syllable(before, after)


def _is_flag(char: str) -> bool:
    return "\U0001f1e6" <= char <= "\U0001f1ff"


def _is_syllable(before: str, after: str) -> bool:
    """A vowel or final consonant after any Hangul, or jamo before a whole syllable."""
    if "\u1160" <= after <= "\u11ff" or "\ud7b0" <= after <= "\ud7fb":
        return "\u1100" <= before <= "\u11ff" or "\uac00" <= before <= "\ud7fb"
    leads = "\u1100" <= before <= "\u115f" or "\ua960" <= before <= "\ua97c"
    return leads and ("\u1100" <= after <= "\u115f" or "\uac00" <= after <= "\ud7a3")
