"""The scan finds what is there, in whatever form, and nothing where it may be."""

import base64
import json
from pathlib import Path
from urllib.parse import quote

import pytest

from tests.security.scan import Evidence, Kind

TEXT = "the owner's 密文 “4711”"


@pytest.mark.parametrize(
    "shown",
    [
        TEXT,
        json.dumps({"a": TEXT}),
        f"https://host/?q={quote(TEXT)}",
        TEXT.encode().hex(),
        repr(TEXT.encode()),
        *[base64.b64encode(b"x" * before + TEXT.encode() + b"behind").decode() for before in range(5)],
    ],
)
def test_a_mark_is_found_in_every_form(shown: str) -> None:
    evidence = Evidence()
    evidence.mark(Kind.TEXT, TEXT)
    evidence.show("log", shown)
    assert len(evidence.leaks()) == 1
    assert evidence.leaks()[0].startswith("what somebody wrote is in log, ")


def test_each_kind_may_be_in_its_own_places_alone(tmp_path: Path) -> None:
    (tmp_path / "credentials").mkdir()
    (tmp_path / "credentials" / "main.json").write_text("secret-4711")
    (tmp_path / "ou_stranger").mkdir()
    evidence = Evidence()
    evidence.mark(Kind.SECRET, "secret-4711")
    evidence.mark(Kind.ID, "ou_stranger")
    evidence.show_files(tmp_path)
    evidence.show("database rows", "ou_stranger")
    assert evidence.leaks() == ["a stranger's id, or a chat's is in names of files, as it is"]
    evidence.show("database rows", "secret-4711")
    assert "a credential is in database rows, as it is" in evidence.leaks()
