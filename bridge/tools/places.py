"""Where tools may reach: the workspace, and what never leaves this machine."""

import os
from collections.abc import Collection, Sequence
from pathlib import Path

from bridge.paths import Home
from bridge.tools.workspace import identity

_UNDER_USER = tuple(
    Path(place)
    for place in (
        ".ssh .gnupg .aws .azure .kube .docker .netrc .git-credentials .npmrc .pypirc .cargo/credentials "
        ".cargo/credentials.toml .config/gh .config/gcloud .config/hub .config/google-chrome "
        ".config/chromium .mozilla .password-store .local/share/keyrings .codex .claude "
        ".claude.json .gemini .config/opencode .local/share/opencode .grok .scv"
    ).split(" ")
)
_ON_SYSTEM = tuple(
    Path(place)
    for place in "/etc/shadow /etc/gshadow /etc/ssh /etc/sudoers /etc/sudoers.d /root /proc /sys /dev".split()
)
_WORDS = ("credential", "private_key")
_ENDS = (".pem", ".key", ".p12", ".pfx", ".kdbx")
_STARTS = ("id_rsa", "id_ecdsa", "id_ed25519", "id_dsa", ".env.")


def is_private(path: Path, home: Home, user: Path, received: Collection[Path] = ()) -> bool:
    """Whether the file ``path`` must not be sent to a chat. Paths are resolved; ``user`` is the user's home.

    Of the daemon's own home only its workspace may be sent, and of all media those that the chat itself has
    ``received``.
    """
    if any(_is_telling(part.lower()) for part in path.parts):
        return True
    if _is_below(path, [user / place for place in _UNDER_USER]):
        return True
    root = home.root.resolve()
    if path.is_relative_to(root):  # judged by its own rules, also where the home lies in /root
        return is_own(path, home) and not (path in received and _is_received(path, home))
    return _is_below(path, [place.resolve() for place in _ON_SYSTEM])


def _is_below(path: Path, places: Sequence[Path]) -> bool:
    """By name, or by what it is: some file systems know a folder by other spellings, too."""
    if any(path.is_relative_to(place) for place in places):
        return True
    known = {identity(place) for place in places} - {None}
    return any(identity(folder) in known for folder in (path, *path.parents))


def is_own(path: Path, home: Home) -> bool:
    """Whether the resolved ``path`` belongs to the daemon: in its home and not in the workspace there."""
    root = home.root.resolve()
    return path.is_relative_to(root) and not path.is_relative_to(root / "workspace")


def _is_received(path: Path, home: Home) -> bool:
    outbox = home.outbox.resolve()
    return path.is_relative_to(outbox.parent) and not path.is_relative_to(outbox)


def _is_telling(part: str) -> bool:
    return (
        part == ".env"
        or part.startswith(_STARTS)
        or part.endswith(_ENDS)
        or any(word in part for word in _WORDS)
    )


def shown(path: str | Path) -> str:
    """A path as text that UTF-8 can hold, whatever bytes the file system has."""
    return os.fsencode(path).decode(errors="replace")
