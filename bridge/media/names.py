"""Names of files that others chose, made harmless for every file system, terminal and reader. Pure."""

import re
import unicodedata
from hashlib import sha256
from typing import Final

from bridge.ids import new_hex

MAX_NAME_BYTES: Final = 96
_PREFIX_DIGITS = 12
_SUFFIX_BYTES = 16  # a longer ending is no extension
_REPLACED = re.compile(r'[\x00-\x1f\x7f-\x9f\u2028\u2029\ud800-\udfff/\\:*?"<>|]')
_RESERVED = re.compile(r"(con|prn|aux|nul|conin\$|conout\$|(com|lpt)[0-9¹²³])[ ]*(\.|\Z)", re.IGNORECASE)

_EMOJI = "\u2190-\u2bff\U0001f000-\U0001faff"
_CURSIVE = (
    "\u0620-\u06d5\u06ee-\u06ff\u0750-\u077f\u0870-\u0887\u08a0-\u08c9\u0900-\u0dff\u1780-\u17d3\u1820-\u18aa"
)
_JOINER = re.compile(
    f"(?<=[{_EMOJI}\ufe0f])\u200d(?=[{_EMOJI}])|(?<=[{_CURSIVE}])[\u200c\u200d](?=[{_CURSIVE}])"
)
_SHOWN_FORMATS = frozenset(
    "\u0600\u0601\u0602\u0603\u0604\u0605\u06dd\u070f\u08e2"
)  # signs over numbers and words, which are seen


def safe_name(name: str, kind: str = "file") -> str:
    """A name of at most 96 bytes of UTF-8 that stays in its directory and shows as what it is.

    It is the last component of ``name`` in Unicode's composed form, without dots at its ends and without
    invisible characters, but for joiners where the script, or an emoji, is made of them; what some system
    forbids becomes ``_``. An empty one becomes ``kind``.
    """
    last = re.split(r"[/\\]", name)[-1]
    composed = unicodedata.normalize("NFC", _visible(last))
    kept = _trimmed(_visible(_shortened(_trimmed(_visible(_REPLACED.sub("_", composed))))))
    if not kept:
        return kind
    return f"_{kept}" if _RESERVED.match(kept) else kept


def _visible(name: str) -> str:
    joined = {found.start() for found in _JOINER.finditer(name)}
    return "".join(
        char
        for at, char in enumerate(name)
        if at in joined or char in _SHOWN_FORMATS or unicodedata.category(char) != "Cf"
    )


def unique_name(name: str) -> str:
    """``name`` made safe, after 12 random hex digits and a dash."""
    return f"{new_hex(_PREFIX_DIGITS)}-{safe_name(name)}"


def prefix_of(key: str) -> str:
    """12 hex digits and a dash: how the name of what a platform keeps under ``key`` begins."""
    return sha256(key.encode("utf-8", "surrogatepass")).hexdigest()[:_PREFIX_DIGITS] + "-"


def _trimmed(name: str) -> str:
    """Without white space at its ends, nor dots, which hide a file or are dropped by some systems."""
    return re.sub(r"\A[\s.]+|[\s.]+\Z", "", name)


def _shortened(name: str) -> str:
    """At most 96 bytes, cut before the extension."""
    if len(name.encode()) <= MAX_NAME_BYTES:
        return name
    stem, dot, suffix = name.rpartition(".")
    if not stem or len(suffix.encode()) > _SUFFIX_BYTES:
        stem, dot, suffix = name, "", ""
    room = MAX_NAME_BYTES - len((dot + suffix).encode())
    return stem.encode()[:room].decode(errors="ignore").rstrip() + dot + suffix
