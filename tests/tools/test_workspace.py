"""What is reached from a workspace, on random trees with links, and while folders are exchanged for links."""

import os
import stat
import threading
from collections import Counter
from collections.abc import Callable
from contextlib import suppress
from itertools import count
from pathlib import Path, PurePosixPath
from tempfile import TemporaryDirectory

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from bridge.tools import workspace as module
from bridge.tools.workspace import (
    CHANGED,
    DAEMONS,
    MOST_LINKS,
    NOT_REGULAR,
    OUTSIDE,
    RefusedError,
    Spot,
    Workspace,
    identity,
    open_regular,
)

SECRET = "secret"
NAMES = ("a", "b", "c")

steps = st.lists(st.sampled_from([*NAMES, "..", "."]), min_size=1, max_size=4).map("/".join)
targets = steps | steps.map(lambda path: f"/ROOT/{path}") | st.sampled_from(["/", "/OUT/a", "/ROOT", ".."])
nodes = st.recursive(
    st.just("file") | targets.map(lambda target: ("link", target)),
    lambda inner: st.dictionaries(st.sampled_from(NAMES), inner, max_size=3),
    max_leaves=8,
)
trees = st.dictionaries(st.sampled_from(NAMES), nodes, max_size=3)


@pytest.fixture
def cwd(tmp_path: Path) -> Path:
    folder = tmp_path / "work"
    folder.mkdir()
    return folder


def grow(folder: Path, tree: dict[str, object], root: Path, out: Path) -> None:
    for name, node in tree.items():
        match node:
            case dict():
                (folder / name).mkdir()
                grow(folder / name, node, root, out)
            case ("link", target):
                real = str(target).replace("/ROOT", str(root)).replace("/OUT", str(out))
                (folder / name).symlink_to(real)
            case _:
                (folder / name).write_text(str(PurePosixPath(folder / name).relative_to(root)))


def read(workspace: Workspace, path: str) -> bytes:
    with workspace.file(path) as opened:
        return os.read(opened, 1000)


@settings(max_examples=200)
@given(trees, steps | targets)
def test_in_any_tree_of_links_what_is_reached_is_what_the_system_reaches_and_inside(
    tree: dict[str, object], path: str
) -> None:
    with TemporaryDirectory() as name:
        root, out = Path(name).resolve() / "ROOT", Path(name).resolve() / "OUT"
        root.mkdir()
        out.mkdir()
        for each in NAMES:
            (out / each).write_text(SECRET)
        grow(root, tree, root, out)
        asked = path.replace("/ROOT", str(root)).replace("/OUT", str(out))
        with Workspace(root) as workspace:
            try:
                found = read(workspace, asked)
            except (RefusedError, OSError):
                found = None
            with suppress(RefusedError, OSError):
                workspace.write(asked, b"written")
            real = Path(os.path.realpath(root / asked))
            if found is not None:
                assert SECRET not in found.decode()
                assert real.is_relative_to(root)
            assert all((out / each).read_text() == SECRET for each in NAMES)
        assert sorted(os.listdir(out)) == sorted(NAMES)
        assert sorted(os.listdir(name)) == ["OUT", "ROOT"]


@settings(max_examples=100)
@given(trees, steps)
def test_what_lies_inside_and_is_a_file_is_reached(tree: dict[str, object], path: str) -> None:
    with TemporaryDirectory() as name:
        root = Path(name).resolve() / "ROOT"
        root.mkdir()
        grow(root, tree, root, root)
        walked, inside = root, True
        for part in path.split("/"):  # step by step, so that no step is outside and back again
            walked = Path(os.path.realpath(walked / part))
            inside = inside and walked.is_relative_to(root)
        whole = not any("link" in str(node) for node in tree.values())
        if inside and whole and walked.is_file() and (root / path).exists():
            with Workspace(root) as workspace:
                assert read(workspace, path) == walked.read_bytes()


@pytest.mark.parametrize("target", ["file", "../work/file", "{root}/file", "{root}/folder/../file", "other"])
def test_links_within_are_followed_also_to_be_written(target: str, cwd: Path) -> None:
    (cwd / "file").write_text("x")
    (cwd / "folder").mkdir()
    (cwd / "other").symlink_to("folder/deep")
    (cwd / "folder" / "deep").symlink_to("../file")
    (cwd / "link").symlink_to(target.format(root=cwd))
    with Workspace(cwd) as workspace:
        if target == "../work/file":  # goes out, and back in again
            with pytest.raises(RefusedError, match=OUTSIDE):
                read(workspace, "link")
            return
        assert read(workspace, "link") == b"x"
        workspace.write("link", b"y")
    assert (cwd / "link").is_symlink()
    assert (cwd / "file").read_text() == "y"


def test_a_path_may_be_given_whole_also_by_another_name_of_the_workspace(cwd: Path) -> None:
    (cwd / "a").write_text("x")
    alias = cwd.parent / "alias"
    alias.symlink_to(cwd)
    with Workspace(cwd) as workspace:
        assert read(workspace, f"{cwd}/a") == read(workspace, f"{alias}/a") == b"x"
        for path in (f"{cwd}x/a", "/", f"{cwd}/../a"):
            with pytest.raises(RefusedError, match=OUTSIDE):
                read(workspace, path)


def test_case_75_names_that_look_like_ways_out_are_names_or_refused(cwd: Path) -> None:
    with Workspace(cwd) as workspace:
        for name in ("C:\\x", "..%2f..%2fescape", "...", "a\\..\\..\\b", "e\u0301", "\u00e9"):
            workspace.write(name, name.encode())
            assert read(workspace, name) == name.encode()
        for path in ("../../escape.txt", "a/../../b", "../work/../b"):
            with pytest.raises(RefusedError, match=OUTSIDE):
                workspace.write(path, b"x")
    assert os.listdir(cwd.parent) == ["work"]
    assert len(os.listdir(cwd)) == 7  # six names, and the folder a of the path that was refused


def test_circles_of_links_end(cwd: Path) -> None:
    (cwd / "a").symlink_to("b")
    (cwd / "b").symlink_to("a")
    for number in range(MOST_LINKS):
        (cwd / f"{number}").symlink_to(f"{number + 1}")
    (cwd / f"{MOST_LINKS}").write_text("x")
    with Workspace(cwd) as workspace:
        with pytest.raises(RefusedError, match="circle"):
            read(workspace, "a")
        assert read(workspace, "0") == b"x"


def test_what_is_no_regular_file_is_neither_read_nor_replaced(cwd: Path) -> None:
    (cwd / "folder").mkdir()
    os.mkfifo(cwd / "pipe")
    with Workspace(cwd) as workspace:
        for path in ("folder", "pipe", ".", ""):
            with pytest.raises(RefusedError, match=NOT_REGULAR):
                read(workspace, path)
            with pytest.raises(RefusedError, match=NOT_REGULAR):
                workspace.write(path, b"x")
        with pytest.raises(OSError, match="directory"), workspace.folder("pipe"):
            pass
        with pytest.raises(FileNotFoundError):
            read(workspace, "none/a")
    assert sorted(os.listdir(cwd)) == ["folder", "pipe"]


def test_what_becomes_a_pipe_between_the_two_looks_is_not_read(
    cwd: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (cwd / "a").write_text("x")
    real = os.open

    def swap(name: str, flags: int, mode: int = 0o777, *, dir_fd: int | None = None) -> int:
        if name == "a":
            (cwd / "a").unlink()
            os.mkfifo(cwd / "a")
        return real(name, flags, mode, dir_fd=dir_fd)

    with Workspace(cwd) as workspace, workspace.spot("a") as spot:
        monkeypatch.setattr(os, "open", swap)
        with pytest.raises(RefusedError, match=NOT_REGULAR):
            open_regular(spot)


def test_what_becomes_a_link_after_it_was_looked_at_is_not_followed(cwd: Path) -> None:
    (cwd.parent / "secret").write_text(SECRET)
    (cwd / "a").write_text("x")
    with Workspace(cwd) as workspace, workspace.spot("a") as spot:
        (cwd / "a").unlink()
        (cwd / "a").symlink_to("../secret")
        with pytest.raises((OSError, RefusedError)):
            open_regular(Spot(spot.folder, "a"))
        with pytest.raises(RefusedError, match=NOT_REGULAR):
            module._replace(spot, b"y", None)
    assert (cwd.parent / "secret").read_text() == SECRET


def test_a_new_file_has_the_usual_mode_and_an_old_one_keeps_its_own(cwd: Path) -> None:
    (cwd / "old").touch()
    (cwd / "old").chmod(0o4740)
    os.link(cwd / "old", cwd / "other")
    before = os.umask(0o027)
    try:
        with Workspace(cwd) as workspace:
            workspace.write("new/deep", b"x")
            workspace.write("old", b"x")
    finally:
        os.umask(before)
    assert stat.S_IMODE((cwd / "new/deep").stat().st_mode) == 0o640
    assert stat.S_IMODE((cwd / "old").stat().st_mode) == 0o740
    assert (cwd / "other").read_bytes() == b""  # the file of its other name is another one now


def test_who_may_give_no_files_away_writes_them_all_the_same(
    cwd: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refused(*_: object) -> None:
        raise PermissionError

    (cwd / "a").write_text("x")
    monkeypatch.setattr(os, "fchown", refused)
    with Workspace(cwd) as workspace:
        workspace.write("a", b"y")
    assert (cwd / "a").read_text() == "y"


def test_a_write_that_fails_leaves_the_old_file_and_nothing_else(
    cwd: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def full(_: int) -> None:
        raise OSError(28, "No space left on device")

    (cwd / "a").write_text("old")
    monkeypatch.setattr(os, "fsync", full)
    with Workspace(cwd) as workspace, pytest.raises(OSError, match="No space"):
        workspace.write("a", b"new")
    assert os.listdir(cwd) == ["a"]
    assert (cwd / "a").read_text() == "old"


def test_a_file_that_is_not_the_one_that_was_seen_stays(cwd: Path) -> None:
    (cwd / "a").write_text("old")
    seen = os.stat(cwd / "a")
    with Workspace(cwd) as workspace:
        workspace.write("a", b"new", seen)
        with pytest.raises(RefusedError, match=CHANGED):
            workspace.write("a", b"newer", seen)
    assert (cwd / "a").read_text() == "new"


@pytest.mark.parametrize(
    "path", ["home", "home/", "home/config", "home/state/x", "link/config", "home/workspace/.."]
)
def test_of_the_daemons_home_only_its_workspace_is_reached(path: str, cwd: Path) -> None:
    home = cwd / "home"
    (home / "workspace").mkdir(parents=True)
    (home / "config").write_text(SECRET)
    (cwd / "link").symlink_to("home")
    with Workspace(cwd, identity(home)) as workspace:
        for reach in reaches(workspace, path):
            with pytest.raises((RefusedError, OSError)) as refusal:
                reach()
            assert str(refusal.value) in (DAEMONS, NOT_REGULAR)
        workspace.write("link/workspace/a", b"x")
        assert read(workspace, "home/workspace/a") == b"x"
    with Workspace(home, identity(home)) as workspace, pytest.raises(RefusedError, match=DAEMONS):
        read(workspace, "config")
    assert identity(cwd / "none") is None


def reaches(workspace: Workspace, path: str) -> list[Callable[[], object]]:
    def listed() -> None:
        with workspace.folder(path):
            pass

    only_folder = path.rstrip("/") in ("home", "home/workspace/..")
    listing: list[Callable[[], object]] = [listed] if only_folder else []
    return [lambda: read(workspace, path), lambda: workspace.write(path, b"x"), *listing]


def test_while_a_folder_is_exchanged_for_a_link_nothing_outside_is_read_written_or_listed(cwd: Path) -> None:
    outside = cwd.parent / "outside"
    outside.mkdir()
    (outside / "file").write_text(SECRET)
    (outside / "secret").touch()
    (cwd / "folder").mkdir()
    (cwd / "folder" / "file").write_text("inside")
    over = threading.Event()

    def swap() -> None:
        for number in count():
            with suppress(OSError):  # a write makes a folder that is missing just then
                (cwd / "folder").rename(cwd / f"aside-{number}")
            with suppress(OSError):
                (cwd / "folder").symlink_to(outside)
            with suppress(OSError):
                (cwd / "folder").unlink()
            with suppress(OSError):
                (cwd / f"aside-{number}").rename(cwd / "folder")
            with suppress(OSError):
                (cwd / "folder" / "file").write_text("inside")
            if over.wait(0.0001):
                return

    tried = Counter[bool]()
    swapping = threading.Thread(target=swap)
    swapping.start()
    try:
        with Workspace(cwd) as workspace:

            def listed() -> None:
                with workspace.folder("folder") as folder:
                    assert "secret" not in os.listdir(folder)

            def told() -> None:
                assert read(workspace, "folder/file") != SECRET.encode()

            rounds = 0
            while rounds < 500 or (not all(tried[each] > 50 for each in (True, False)) and rounds < 50_000):
                rounds += 1
                for reach in (told, listed, lambda: workspace.write("folder/new", b"x")):
                    try:
                        reach()
                        tried[True] += 1
                    except (RefusedError, OSError):
                        tried[False] += 1
    finally:
        over.set()
        swapping.join()
    assert tried[True]
    assert tried[False]
    assert sorted(os.listdir(outside)) == ["file", "secret"]
    assert (outside / "file").read_text() == SECRET


def test_where_a_folder_can_only_be_opened_to_be_read_it_works_the_same(
    cwd: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(module, "_STEP", module.OPEN_FOLDER)
    with Workspace(cwd) as workspace:
        workspace.write("a/b/c", b"x")
        assert read(workspace, "a/b/c") == b"x"
