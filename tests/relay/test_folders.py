"""Where an owner may have an agent work: never outside the roots, nor in what is hidden or the daemon's."""

import os
from pathlib import Path

import pytest

from bridge.relay.folders import MOST_LISTED, Folders


@pytest.fixture
def place(tmp_path: Path) -> Path:
    root = tmp_path.resolve()
    for name in ("home/workspace/a", "home/state", "work/b/.git", "work/c", "other"):
        (root / name).mkdir(parents=True)
    (root / "work" / "leads-out").symlink_to(root / "other")
    (root / "work" / "leads-in").symlink_to(root / "work" / "c")
    (root / "work" / "file").touch()
    return root


def folders(place: Path, *roots: str) -> Folders:
    return Folders(place / "home" / "workspace", roots, place / "home")


def test_a_folder_is_found_from_where_one_is_and_by_its_whole_path(place: Path) -> None:
    found = folders(place, str(place / "work"))
    work = place / "work"
    assert found.find("b", work) == work / "b"
    assert found.find(str(work / "c"), place) == work / "c"
    assert found.find("../c", work / "b") == work / "c"
    assert found.find("leads-in", work) == work / "c"
    assert found.find("not-there", work) == work / "not-there"
    assert found.find("a", place / "home" / "workspace") == place / "home" / "workspace" / "a"


@pytest.mark.parametrize(
    "text", ["..", "/", "../other", "leads-out", "b/.git", "\0", "\ud800", "~no-such-user-here/x", "loop/x"]
)
def test_nothing_else_is(place: Path, text: str) -> None:
    (place / "work" / "loop").symlink_to(place / "work" / "loop")
    assert folders(place, str(place / "work")).find(text, place / "work") in (None, place / "work" / "loop/x")
    assert folders(place).find(text, place / "work") is None


def test_the_daemon_s_own_home_is_none_also_where_a_root_is_around_it(place: Path) -> None:
    wide = folders(place, str(place))
    assert wide.find("home/state", place) is None
    assert wide.find("home", place) is None
    assert wide.find("home/workspace/a", place) == place / "home" / "workspace" / "a"
    assert wide.find("other", place) == place / "other"


def test_nor_is_it_where_the_workspace_itself_is_around_it(place: Path) -> None:
    around = Folders(place, (), place / "home")
    assert around.find("home/state", place) is None
    assert around.find("home", place) is None
    assert around.find("work/b", place) == place / "work" / "b"
    assert around.find(".", place) == place


def test_a_root_may_begin_in_the_user_s_home(place: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HOME", str(place))
    assert folders(place, "~/work").find("~/work/b", Path("/")) == place / "work" / "b"
    assert folders(place, "~no-such-user-here/work").find("~/work/b", Path("/")) is None


def test_what_can_be_gone_to_is_listed_with_where_one_is_first(place: Path) -> None:
    work = place / "work"
    assert folders(place, str(work)).listed(work) == [
        work, place / "home" / "workspace", work / "b", work / "c",
    ]  # fmt: skip
    assert folders(place).listed(place / "gone") == [place / "gone", place / "home" / "workspace"]


def test_of_many_the_first_are_listed(place: Path) -> None:
    for number in range(MOST_LISTED + 5):
        os.mkdir(place / "home" / "workspace" / "a" / f"{number:02}")
    assert len(folders(place).listed(place / "home" / "workspace" / "a")) == MOST_LISTED + 2
