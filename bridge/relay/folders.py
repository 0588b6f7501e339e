"""The folders in which an owner may have an agent work: the account's own, and what the settings list."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import islice
from pathlib import Path

MOST_LISTED = 20


@dataclass(frozen=True, slots=True)
class Folders:
    """``roots`` and all below them may be chosen, but for hidden folders and the daemon's own ``home``."""

    workspace: Path
    roots: tuple[str, ...] = ()
    home: Path = Path("/nonexistent")

    def find(self, text: str, base: Path) -> Path | None:
        """The real path of the folder ``text``, seen from ``base``; None for one that may not be chosen.

        It need not exist. Blocking.
        """
        try:
            found = (base / Path(text).expanduser()).resolve()
            str(found).encode()
        except (OSError, ValueError, RuntimeError):  # no text, no such user, links in a circle
            return None
        return found if self.allows(found) else None

    def still_allows(self, chosen: str) -> bool:
        """Whether ``chosen``, as ``find`` gave it, leads where it led, and that may be chosen. Blocking."""
        return self.find(chosen, self.workspace) == Path(chosen)

    def allows(self, folder: Path) -> bool:
        """Whether the real path ``folder`` may be chosen. Blocking."""
        for root in self._real_roots():
            if folder.is_relative_to(root):
                hidden = any(part.startswith(".") for part in folder.relative_to(root).parts)
                return not hidden and not self._is_own(folder)
        return False

    def _is_own(self, folder: Path) -> bool:
        """Whether it is the daemon's: in its home, and not in a workspace there."""
        home, workspace = self._real(self.home), self._real(self.workspace)
        inside = workspace.is_relative_to(home) and folder.is_relative_to(workspace)
        return folder.is_relative_to(home) and not inside

    def listed(self, current: Path) -> list[Path]:
        """What can be gone to from ``current``: it, the roots, and the folders right below it. Blocking."""
        below = islice(self._below(current), MOST_LISTED)
        return list(dict.fromkeys([current, *self._real_roots(), *below]))

    def _below(self, current: Path) -> Iterator[Path]:
        try:
            inner = sorted(one for one in current.iterdir() if one.is_dir() and not one.is_symlink())
        except OSError:
            return iter(())
        return (one for one in inner if self.allows(one))

    def _real_roots(self) -> Sequence[Path]:
        return [self._real(root) for root in (self.workspace, *map(Path, self.roots))]

    def _real(self, path: Path) -> Path:
        try:
            return path.expanduser().resolve()
        except (OSError, RuntimeError):
            return path
