"""Skills: packages of instructions, ``<name>/SKILL.md`` with other files beside it, loaded when needed.

They lie in ``<home>/skills``, the operator's, and in ``<workspace>/.turnbridge/skills``. All of it is hostile
until it is read: names are plain, sizes bounded, and no link leads out of a package. All of it blocks.
"""

import os
import re
import stat
from collections.abc import Iterator
from dataclasses import dataclass
from enum import StrEnum
from functools import lru_cache
from pathlib import Path

from bridge.logs import get_logger
from bridge.paths import Home
from bridge.tools.front_matter import FrontMatterError, split
from bridge.tools.workspace import RefusedError, Workspace

FOLDER = Path(".turnbridge") / "skills"  # of a workspace
MAIN = "SKILL.md"
SKILL_BYTES = 65_536
MOST_SKILLS = 64  # of one folder
MOST_ENTRIES = 1000
MOST_FILES = 100  # of a package that are listed
DESCRIPTION_CHARACTERS = 1024
MOST_TOLD = 1000
_NAME = re.compile(r"[a-z0-9]+(-[a-z0-9]+)*")
_NAME_CHARACTERS = 64

log = get_logger(__name__)


class Origin(StrEnum):
    HOME = "home"
    WORKSPACE = "workspace"


@dataclass(frozen=True, slots=True)
class Skill:
    """``root`` is the package's folder, resolved."""

    name: str
    description: str
    origin: Origin
    root: Path


@dataclass(frozen=True, slots=True)
class Fault:
    """Why a package does not count: a fixed sentence."""

    path: Path
    reason: str


@dataclass(frozen=True, slots=True)
class Found:
    """``skills`` by name; the home's counts where the workspace has one of the same name."""

    skills: tuple[Skill, ...]
    faults: tuple[Fault, ...]


class SkillError(Exception):
    """Why a package, or a file of one, cannot be used; the text is for whoever asked."""


def known(home: Home, workspace: Path) -> tuple[Skill, ...]:
    """The skills of a session; what does not count is told to the log, once."""
    found = find(home, workspace)
    for fault in found.faults:
        _tell(fault)
    return found.skills


@lru_cache(MOST_TOLD)  # what was told is not told again
def _tell(fault: Fault) -> None:
    log.warning("skill.skipped", path=str(fault.path), reason=fault.reason)


def find(home: Home, workspace: Path) -> Found:
    """The skills of ``home`` and of ``workspace``, and what does not count and why."""
    skills: dict[str, Skill] = {}
    faults: list[Fault] = []
    for origin, folder in ((Origin.HOME, home.root / "skills"), (Origin.WORKSPACE, workspace / FOLDER)):
        for path, one in _packages(origin, folder, workspace):
            if isinstance(one, SkillError):
                faults.append(Fault(path, str(one)))
            elif one.name in skills:
                faults.append(Fault(path, "the home has a skill of this name"))
            else:
                skills[one.name] = one
    return Found(tuple(skills[name] for name in sorted(skills)), tuple(faults))


def _packages(origin: Origin, folder: Path, workspace: Path) -> Iterator[tuple[Path, Skill | SkillError]]:
    try:
        with os.scandir(folder) as entries:
            names = sorted(name for entry, _ in zip(entries, range(MOST_ENTRIES), strict=False)
                           if not (name := entry.name).startswith("."))  # fmt: skip
    except (FileNotFoundError, NotADirectoryError):
        return
    except OSError as error:
        yield folder, SkillError(f"it cannot be listed: {error.strerror or type(error).__name__}")
        return
    for number, name in enumerate(names):
        path = folder / name
        try:
            if number >= MOST_SKILLS:
                raise SkillError(f"there are over {MOST_SKILLS} here")
            yield path, _package(origin, path, workspace)
        except SkillError as error:
            yield path, error


def _package(origin: Origin, path: Path, workspace: Path) -> Skill:
    """Raises SkillError: it does not count."""
    if not _NAME.fullmatch(path.name) or len(path.name) > _NAME_CHARACTERS:
        raise SkillError("its name is not of small letters, digits and single dashes, at most 64")
    root = _root(origin, path, workspace)
    try:
        fields, _ = split(read(root, MAIN, SKILL_BYTES))
    except FrontMatterError as error:
        raise SkillError(str(error)) from error
    if fields.get("name", "") != path.name:
        raise SkillError("its front matter does not have the folder's name")
    description = " ".join(fields.get("description", "").split())
    if not description or not description.isprintable():
        raise SkillError("its front matter has no plain description")
    if len(description) > DESCRIPTION_CHARACTERS:
        raise SkillError(f"its description is over {DESCRIPTION_CHARACTERS} characters")
    return Skill(path.name, description, origin, root)


def _root(origin: Origin, path: Path, workspace: Path) -> Path:
    """The package's real folder. The operator may have put a link into the home; a workspace has none."""
    try:
        root = path.resolve()
        is_folder = stat.S_ISDIR(root.stat().st_mode)
    except (OSError, RuntimeError) as error:
        raise SkillError("its folder cannot be read") from error
    if not is_folder:
        raise SkillError("it is no folder")
    if origin is Origin.WORKSPACE and root != workspace.resolve() / FOLDER / path.name:
        raise SkillError("it is reached by a link")
    return root


def body(skill: Skill) -> str:
    """The instructions, without the front matter. Raises SkillError."""
    try:
        return split(read(skill.root, MAIN, SKILL_BYTES))[1]
    except FrontMatterError as error:
        raise SkillError(str(error)) from error


def read(root: Path, path: str, most_bytes: int) -> str:
    """The text of a file of the package ``root``.

    Raises:
        SkillError: it is too large, no text, or not there; or ``path`` leads out of the package.
    """
    if path.startswith("/"):
        raise SkillError("that path is outside of the package")
    try:
        with (
            Workspace(root) as package,
            package.file(path) as opened,
            os.fdopen(os.dup(opened), "rb") as file,
        ):
            data = file.read(most_bytes + 1)
    except RefusedError as error:
        raise SkillError(_in_package(str(error))) from error
    except (OSError, ValueError) as error:
        why = error.strerror if isinstance(error, OSError) else ""
        raise SkillError(f"{Path(path).name} cannot be read: {why or 'that is no path'}") from error
    if len(data) > most_bytes:
        raise SkillError(f"{Path(path).name} is over {most_bytes} bytes")
    try:
        text = data.decode()
    except UnicodeDecodeError as error:
        raise SkillError(f"{Path(path).name} is no text") from error
    if "\0" in text:
        raise SkillError(f"{Path(path).name} is no text")
    return text


def _in_package(text: str) -> str:
    return text[:1].lower() + text[1:].replace("workspace", "package").rstrip(".")


def files(root: Path) -> list[str]:
    """The package's other files, by their paths in it; links are left out."""
    found: list[str] = []
    seen = 0
    for folder, folders, names in os.walk(root):
        folders[:] = sorted(name for name in folders if not name.startswith("."))
        seen += len(folders)
        for name in sorted(names):
            seen += 1
            path = Path(folder, name)
            inside = path.relative_to(root).as_posix()
            if inside != MAIN and inside.isprintable() and not name.startswith(".") and not path.is_symlink():
                found.append(inside)
            if seen >= MOST_ENTRIES or len(found) == MOST_FILES:
                return found
    return found
