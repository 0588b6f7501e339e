import base64
from pathlib import Path

import pytest
from acp.schema import PromptCapabilities

from bridge.agents.acp.blocks import EMBEDDED_BYTES, PREFACE_BYTES, blocks, preface
from bridge.agents.contract import HistoryEntry, Role, TurnFile
from tests.media.pictures import PNG, picture

ALL = PromptCapabilities(image=True, embedded_context=True)


def file(path: Path, kind: str, mime: str, **more: object) -> TurnFile:
    size = path.stat().st_size if path.exists() else 1
    return TurnFile(kind, path, path.name, mime, **{"size": size, **more})  # type: ignore[arg-type]  # by name


@pytest.fixture
def files(tmp_path: Path) -> list[TurnFile]:
    (tmp_path / "a.png").write_bytes(PNG)
    (tmp_path / "b.txt").write_text("hello")
    (tmp_path / "c.txt").write_bytes(b"\xff")
    (tmp_path / "d.txt").write_text("x" * (EMBEDDED_BYTES + 1))
    mimes = {"png": "image/png", "txt": "text/plain", "pdf": "application/pdf"}
    names = ("a.png", "b.txt", "c.txt", "d.txt", "gone.png", "e.pdf")
    pixels = {"png": (3, 2)}
    return [file(tmp_path / name, "file", mimes[name[-3:]], pixels=pixels.get(name[-3:])) for name in names]


def test_files_go_as_the_agent_takes_them(files: list[TurnFile]) -> None:
    made = blocks("look", files, ALL)
    assert [one.type for one in made] == ["text", "image", "resource", *["resource_link"] * 4]
    assert (base64.b64decode(made[1].data), made[1].mime_type) == (PNG, "image/png")
    assert made[2].resource.text == "hello"
    assert made[-1].uri.endswith("/e.pdf")
    assert {one.type for one in blocks("look", files, PromptCapabilities())[1:]} == {"resource_link"}


def test_case_84_a_picture_goes_as_a_model_takes_it_and_its_link_names_the_file(tmp_path: Path) -> None:
    (tmp_path / "a.gif").write_bytes(picture("GIF", (3, 2), "P"))
    (made,) = blocks("", [file(tmp_path / "a.gif", "image", "image/gif", pixels=(3, 2))], ALL)
    assert (made.type, made.mime_type) == ("image", "image/jpeg")
    assert made.uri.endswith("/a.gif")


def test_a_transcript_is_text_and_a_file_without_a_path_is_left_out(tmp_path: Path) -> None:
    voice = file(tmp_path / "v.amr", "audio", "audio/amr", transcript="good day")
    hidden = TurnFile("file", None, "x", "text/plain", 1)
    made = blocks("", [voice, hidden], ALL)
    assert (made[0].text, [one.type for one in made]) == ("v.amr: good day", ["text", "resource_link"])


def test_of_what_was_said_before_the_newest_fits() -> None:
    assert preface([]) == preface([HistoryEntry(role=Role.TOOL, text="x")]) == ""
    photo = TurnFile("image", None, "a.png", "image/png", 1)
    asked = HistoryEntry(role=Role.USER, text="look", files=(photo,))
    blank = HistoryEntry(role=Role.ASSISTANT, text=" ")
    told = preface([asked, blank, HistoryEntry(role=Role.NOTE, text="n")])
    assert "\nUser: look (a.png)\nNote: n\n" in told
    long = preface([HistoryEntry(role=Role.USER, text=f"{at} " + "é" * 5000) for at in range(20)])
    assert len(long.encode()) < PREFACE_BYTES + 200
    assert "19 é" in long
    assert "\n…\n" in long
    assert "User: 0 " not in long
