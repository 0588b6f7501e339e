"""Packages of instructions, from where they count, and all that can be wrong with them."""

import os
from pathlib import Path

import pytest

from bridge import logs
from bridge.paths import Home
from bridge.tools import skills
from bridge.tools.skills import Found, Origin, Skill, SkillError, body, files, find, known, read


@pytest.fixture
def home(tmp_path: Path) -> Home:
    return Home(tmp_path / "home")


@pytest.fixture
def work(tmp_path: Path) -> Path:
    folder = tmp_path / "work"
    folder.mkdir()
    return folder


def put(folder: Path, name: str, text: str | bytes | None = None, description: str = "What for.") -> Path:
    package = folder / name
    package.mkdir(parents=True)
    text = text if text is not None else f"---\nname: {name}\ndescription: {description}\n---\nDo it.\n"
    (package / "SKILL.md").write_bytes(text if isinstance(text, bytes) else text.encode())
    return package


def reasons(home: Home, work: Path) -> dict[str, str]:
    return {fault.path.name: fault.reason for fault in find(home, work).faults}


def test_skills_come_from_the_home_and_from_the_workspace(home: Home, work: Path) -> None:
    put(home.root / "skills", "write-reports")
    put(work / skills.FOLDER, "build", description="'Of  this'\n  project")
    found = find(home, work)
    assert [(one.name, one.description, one.origin) for one in found.skills] == [
        ("build", "'Of this' project", Origin.WORKSPACE),
        ("write-reports", "What for.", Origin.HOME),
    ] or found.faults
    assert body(find(home, work).skills[-1]) == "Do it."


def test_without_any_there_are_none(home: Home, work: Path) -> None:
    assert find(home, work) == Found((), ())
    (work / ".turnbridge").mkdir()
    (work / skills.FOLDER).write_text("a file")
    assert find(home, work).faults == ()


def test_the_homes_counts_where_both_have_a_name(home: Home, work: Path) -> None:
    put(home.root / "skills", "same")
    put(work / skills.FOLDER, "same")
    assert [one.origin for one in find(home, work).skills] == [Origin.HOME]
    assert reasons(home, work) == {"same": "the home has a skill of this name"}


@pytest.mark.parametrize(
    ("name", "text", "reason"),
    [
        ("Upper", None, "its name is not of small letters, digits and single dashes, at most 64"),
        ("a--b", None, "its name is not of small letters, digits and single dashes, at most 64"),
        ("x\x1b[2J", None, "its name is not of small letters, digits and single dashes, at most 64"),
        ("n" * 65, None, "its name is not of small letters, digits and single dashes, at most 64"),
        (
            "other",
            "---\nname: another\ndescription: x\n---\n",
            "its front matter does not have the folder's name",
        ),
        ("bare", "Do it.", "it does not begin with a front matter, a line ---"),
        ("mute", "---\nname: mute\n---\n", "its front matter has no plain description"),
        ("odd", "---\nname: odd\ndescription: a\u202eb\n---\n", "its front matter has no plain description"),
        (
            "long",
            f"---\nname: long\ndescription: {'x' * 1025}\n---\n",
            "its description is over 1024 characters",
        ),
        ("huge", b"x" * 65_537, "SKILL.md is over 65536 bytes"),
        ("raw", b"---\nname: raw\xff", "SKILL.md is no text"),
        ("nul", b"---\nname: nul\0", "SKILL.md is no text"),
    ],
)
def test_a_package_that_does_not_count_says_why(
    home: Home, work: Path, name: str, text: str | bytes | None, reason: str
) -> None:
    put(work / skills.FOLDER, name, text)
    assert find(home, work).skills == ()
    assert reasons(home, work) == {name: reason}


def test_what_is_no_package_is_told_and_hidden_names_are_not(home: Home, work: Path) -> None:
    folder = home.root / "skills"
    put(folder, ".hidden")
    (folder / "file").write_text("x")
    (folder / "empty").mkdir()
    (folder / "round").symlink_to(folder / "round")
    found = reasons(home, work)
    assert found.keys() == {"file", "empty", "round"}
    assert found["file"] == "it is no folder"
    assert found["empty"].startswith("SKILL.md cannot be read: No such file")
    assert found["round"] == "its folder cannot be read"


def test_only_so_many_count(home: Home, work: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(skills, "MOST_SKILLS", 2)
    for number in range(4):
        put(home.root / "skills", f"s{number}")
    assert [one.name for one in find(home, work).skills] == ["s0", "s1"]
    assert set(reasons(home, work).values()) == {"there are over 2 here"}
    monkeypatch.setattr(skills, "MOST_ENTRIES", 1)
    assert len(find(home, work).skills) == 1


def test_a_folder_that_cannot_be_listed_is_told(
    home: Home, work: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refusing(folder: object) -> None:
        raise PermissionError(13, "Permission denied")

    monkeypatch.setattr(os, "scandir", refusing)
    assert reasons(home, work)["skills"] == "it cannot be listed: Permission denied"


def test_the_operator_may_link_a_package_into_the_home_and_nobody_into_a_workspace(
    home: Home, work: Path, tmp_path: Path
) -> None:
    elsewhere = put(tmp_path / "elsewhere", "linked")
    for folder in (home.root / "skills", work / skills.FOLDER):
        folder.mkdir(parents=True)
        (folder / "linked").symlink_to(elsewhere)
    assert [one.root for one in find(home, work).skills] == [elsewhere]
    (home.root / "skills" / "linked").unlink()
    assert reasons(home, work) == {"linked": "it is reached by a link"}
    (work / skills.FOLDER / "linked").unlink()
    (work / skills.FOLDER).rmdir()
    (work / skills.FOLDER).symlink_to(tmp_path / "elsewhere")
    assert reasons(home, work) == {"linked": "it is reached by a link"}


def test_no_path_and_no_link_leads_out_of_a_package(home: Home, work: Path, tmp_path: Path) -> None:
    (tmp_path / "secret").write_text("s3cret")
    package = put(home.root / "skills", "one")
    (package / "inner").mkdir()
    (package / "inner" / "more.md").write_text("more")
    (package / "link.md").symlink_to(tmp_path / "secret")
    (package / "fine.md").symlink_to("inner/more.md")
    assert read(package, "inner/more.md", 99) == read(package, "fine.md", 99) == "more"
    for path in ("link.md", "../one/../../../secret", str(tmp_path / "secret"), "inner/../../../../secret"):
        with pytest.raises(SkillError, match="that path is outside of the package"):
            read(package, path, 99)
    for path in ("none.md", "a\0b", "inner"):
        with pytest.raises(SkillError):
            read(package, path, 99)
    skill_link = home.root / "skills" / "two"
    skill_link.mkdir()
    (skill_link / "SKILL.md").symlink_to(tmp_path / "secret")
    assert reasons(home, work) == {"two": "that path is outside of the package"}


def test_a_package_s_files_are_listed_without_links_and_what_is_hidden(
    home: Home, monkeypatch: pytest.MonkeyPatch
) -> None:
    package = put(home.root / "skills", "one")
    (package / "b").mkdir()
    (package / ".git").mkdir()
    for name in ("a.md", "b/c.py", ".hidden", ".git/config", "odd\x1bname"):
        (package / name).write_text("x")
    (package / "link").symlink_to("a.md")
    assert files(package) == ["a.md", "b/c.py"]
    monkeypatch.setattr(skills, "MOST_FILES", 1)
    assert files(package) == ["a.md"]


def test_a_fault_is_logged_once_and_without_what_it_says(
    home: Home, work: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    skills._tell.cache_clear()
    logs.configure("info", as_json=True)
    put(work / skills.FOLDER, "good")
    put(work / skills.FOLDER, "bad", "private words")
    for _ in range(3):
        assert [one.name for one in known(home, work)] == ["good"]
    out = "".join(capsys.readouterr())
    assert out.count("skill.skipped") == 1
    assert "private" not in out


def test_instructions_that_broke_since_are_told(home: Home, work: Path) -> None:
    package = put(home.root / "skills", "one")
    (package / "SKILL.md").write_text("broken")
    with pytest.raises(SkillError, match="front matter"):
        body(Skill("one", "x", Origin.HOME, package))
