"""Pictures as a model takes them: the newest eight, by their bytes, read anew."""

from pathlib import Path

import pytest

from bridge.agents.contract import HistoryEntry, Role, TurnFile
from bridge.agents.echo_files import make
from bridge.agents.llm import pictures
from bridge.agents.llm.pictures import (
    GONE,
    MOST,
    NOT_SHOWN,
    OTHER_KIND,
    Picture,
    shown,
)
from bridge.media.images import image_size
from tests.media.pictures import picture

PNG = make("a.png", "3x2")


def entry(*paths: Path, pixels: tuple[int, int] | None = (3, 2)) -> HistoryEntry:
    files = [
        TurnFile("image", None, path.name, "image/png", 1, pixels=pixels, picture=path) for path in paths
    ]
    return HistoryEntry(role=Role.USER, text="", files=tuple(files))


def test_a_picture_s_kind_is_what_its_bytes_say(tmp_path: Path) -> None:
    path = tmp_path / "a.txt"
    for data, mime in ((PNG, "image/png"), (picture("JPEG"), "image/jpeg")):
        path.write_bytes(data)
        assert shown([entry(path)], {}) == {path: Picture(data, mime)}


def test_field_case_84_what_a_model_does_not_take_is_made_what_it_takes(tmp_path: Path) -> None:
    path = tmp_path / "a.png"
    path.write_bytes(picture("PNG", (400, 200)))
    found = shown([entry(path)], {}, 256)[path]
    assert isinstance(found, Picture)
    assert (found.mime, image_size(found.data)) == ("image/jpeg", (256, 128))


@pytest.mark.parametrize("data", [b"", b"\x89", b"<html>", b"RIFF....WAVE", b"\x00\x00\x00\x18ftypheic"])
def test_field_case_83_what_is_no_picture_is_not_shown_as_one(tmp_path: Path, data: bytes) -> None:
    path = tmp_path / "a.png"
    path.write_bytes(data)
    assert shown([entry(path)], {}) == {path: OTHER_KIND}


def test_field_case_84_a_picture_that_is_broken_is_not_shown(tmp_path: Path) -> None:
    broken = tmp_path / "broken.png"
    broken.write_bytes(PNG)
    assert shown([entry(broken, pixels=None)], {}) == {broken: OTHER_KIND}


def test_a_file_that_is_gone_or_became_something_else_is_said_to_be_gone(tmp_path: Path) -> None:
    link, folder, nowhere = tmp_path / "link", tmp_path / "folder", tmp_path / "nowhere"
    (tmp_path / "a.png").write_bytes(PNG)
    link.symlink_to(tmp_path / "a.png")
    folder.mkdir()
    odd = Path("/nul\0")
    found = shown([entry(link, folder, nowhere, odd)], {})
    assert found == dict.fromkeys([link, folder, nowhere, odd], GONE)


def test_the_newest_eight_are_shown(tmp_path: Path) -> None:
    paths = [tmp_path / f"{at}.png" for at in range(MOST + 2)]
    for path in paths:
        path.write_bytes(PNG)
    gone = tmp_path / "gone.png"
    found = shown([entry(*paths[:2]), entry(gone, *paths[2:]), entry(paths[-1])], {})
    assert [path for path in paths if found[path] == NOT_SHOWN] == paths[:2]
    assert found[gone] == NOT_SHOWN
    assert sum(isinstance(one, Picture) for one in found.values()) == MOST


def test_a_picture_of_this_turn_is_not_read_again(tmp_path: Path) -> None:
    path = tmp_path / "a.png"
    known: pictures.Shown = {path: Picture(b"known", "image/png")}
    assert shown([entry(path)], known) == known


def test_other_files_are_none_of_them() -> None:
    file = TurnFile("file", Path("/a"), "a", "", 1)
    assert shown([HistoryEntry(role=Role.USER, text="", files=(file,))], {}) == {}
