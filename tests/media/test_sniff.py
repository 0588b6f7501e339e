"""What a file is."""

import os
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from bridge.channel.contract import FileKind
from bridge.media import sniff as sniffing
from bridge.media.sniff import UNKNOWN, by_bytes, by_name, kind_of, sniff, sniff_file
from tests.media.pictures import HEIC, HTML, PDF, PNG, picture


@pytest.mark.parametrize(
    ("head", "declared", "name", "mime"),
    [
        (PNG, "", "", "image/png"),
        (PNG, "image/jpeg", "x.jpg", "image/png"),
        (PNG, "application/pdf", "x.pdf", "image/png"),
        (HTML, "image/png", "x.png", "text/html"),
        (HTML, "", "x.png", "text/html"),
        (b"", "image/png", "x.png", UNKNOWN),
        (b"", "", "x.pdf", "application/pdf"),
        (b"x", "image/png", "x.png", UNKNOWN),
        (b"", "text/plain", "x.txt", "text/plain"),
        (PDF, "", "x", "application/pdf"),
        (PDF, "Application/X-Thing; a=b", "x", "application/x-thing"),
        (PDF, "application/octet-stream", "x.txt", "application/pdf"),
        (PDF, "file/*", "", "application/pdf"),
        (PDF, "nonsense", "", "application/pdf"),
        (HEIC, "", "", "image/heic"),
        (b"# title\n", "", "readme.MD", "text/markdown"),
        (b"a,b\n1,2\n", "", "x.csv", "text/csv"),
        (b"hello there\n", "", "x.png", "text/plain"),
        (b"\x02#!SILK_V3", "audio/silk", "", "audio/silk"),
        (b"#!SILK_V3", "", "", "audio/silk"),
        (picture("JPEG"), "image/*", "", "image/jpeg"),
    ],
)
def test_declared_then_bytes_then_name_but_images_by_their_bytes(
    head: bytes, declared: str, name: str, mime: str
) -> None:
    assert sniff(head, declared, name) == mime


@given(st.binary(max_size=64), st.text(max_size=20), st.text(max_size=20))
def test_any_file_has_a_type(head: bytes, declared: str, name: str) -> None:
    assert "/" in sniff(head, declared, name)
    assert "/" in sniff(head, declared, "x." + name)


def test_a_file_is_read_from_its_start(tmp_path: Path) -> None:
    (tmp_path / "x").write_bytes(PNG + b"\0" * 100_000)
    assert sniff_file(tmp_path / "x", "", "") == "image/png"


def test_trouble_in_the_library_makes_an_unknown_type(monkeypatch: pytest.MonkeyPatch) -> None:
    import magic  # after pylibmagic, or it finds another library

    class Broken:
        def from_buffer(self, _head: bytes) -> str:
            raise magic.MagicException("broken")

    monkeypatch.setattr(sniffing, "_magic", Broken())
    assert by_bytes(PNG) == UNKNOWN


def test_several_threads_may_ask_at_once() -> None:
    with ThreadPoolExecutor(8) as pool:
        found = list(pool.map(by_bytes, [PNG, HTML, PDF] * 40))
    assert found == ["image/png", "text/html", "application/pdf"] * 40


def test_names_are_judged_by_their_extension() -> None:
    assert by_name("a.tar.PDF") == by_name("a.\0pdf") == "application/pdf"
    assert by_name("a") == by_name(".png") == ""


@pytest.mark.parametrize(
    ("mime", "kind"),
    [
        ("image/png", FileKind.IMAGE),
        ("image/svg+xml", FileKind.FILE),
        ("audio/ogg", FileKind.AUDIO),
        ("video/mp4", FileKind.VIDEO),
        ("text/html", FileKind.FILE),
        ("", FileKind.FILE),
    ],
)
def test_a_type_is_of_a_kind(mime: str, kind: FileKind) -> None:
    assert kind_of(mime) is kind


@pytest.mark.parametrize("before", ["", "/opt/lib"])
def test_child_processes_get_the_environment_as_it_was(before: str) -> None:
    clean = {key: value for key, value in os.environ.items() if not key.endswith("LIBRARY_PATH")}
    given_in = clean | ({"LIBRARY_PATH": before} if before else {})
    show = "import os, bridge.media.sniff; print(os.environ.get('LIBRARY_PATH'), os.environ.get('MAGIC'))"
    shown = subprocess.check_output([sys.executable, "-c", show], env=given_in, text=True)
    assert shown.split() == [before or "None", "None"]
    sniffing._tidy_environment()


@pytest.mark.parametrize(
    ("value", "left"), [("/from/a/wheel:/opt/lib:/b", "/opt/lib:/b"), ("/from/a/wheel", None)]
)
def test_only_what_the_library_put_into_the_environment_is_taken_out(
    value: str, left: str | None, monkeypatch: pytest.MonkeyPatch
) -> None:
    import pylibmagic

    for key in pylibmagic.keys:
        monkeypatch.setenv(key, value)
    monkeypatch.setenv("MAGIC", "/from/a/wheel")
    sniffing._tidy_environment()
    assert {os.environ.get(key) for key in pylibmagic.keys} == {left}
    assert "MAGIC" not in os.environ
