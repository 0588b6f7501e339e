from pathlib import Path

import pytest

from bridge.agents.echo_files import make
from bridge.protocol.shared import Attachment
from bridge.sessions.attachments import check, describe
from bridge.sessions.errors import RequestError

PNG = make("a.png", "3x2")


@pytest.fixture
def file(tmp_path: Path) -> Path:
    path = tmp_path / "a.png"
    path.write_bytes(PNG)
    return path


def attachment(path: Path | str, **fields: object) -> Attachment:
    given: dict[str, object] = {"kind": "image", "path": str(path), "size": len(PNG), **fields}
    return Attachment.model_validate(given)


def test_sixteen_good_files_pass(file: Path) -> None:
    check((attachment(file),) * 16)
    for kind in ("audio", "video", "file", "sticker"):
        check((attachment(file, kind=kind),))


def refused(*attachments: Attachment) -> str:
    with pytest.raises(RequestError) as error:
        check(attachments)
    assert error.value.code == "invalid_request"
    return str(error.value)


def test_seventeen_are_too_many(file: Path) -> None:
    assert "16" in refused(*(attachment(file),) * 17)


def test_a_file_must_be_what_it_is_said_to_be(file: Path, tmp_path: Path) -> None:
    link = tmp_path / "link"
    link.symlink_to(file)
    assert "kind" in refused(attachment(file, kind="Image"))
    assert "absolute" in refused(attachment("a.png"))
    assert "not exist" in refused(attachment(tmp_path / "none"))
    assert "not exist" in refused(attachment("/a\0b"))
    assert "regular" in refused(attachment(link))
    assert "regular" in refused(attachment(tmp_path))
    assert "size" in refused(attachment(file, size=1))


def test_the_refusal_names_the_number_and_not_the_path(file: Path, tmp_path: Path) -> None:
    text = refused(attachment(file), attachment(tmp_path / "secret-name"))
    assert "attachment 2" in text
    assert "secret" not in text


def test_the_agent_is_told_of_a_file_without_controls_and_bounded(file: Path) -> None:
    given = attachment(file, name="n\n" * 300, mime="image/\tpng", transcript="t\x1b" * 9000)
    shown = describe(given, with_path=True)
    assert (shown.path, shown.kind, shown.size, shown.pixels) == (file, "image", len(PNG), (3, 2))
    assert shown.name == "n " * 100
    assert shown.mime == "image/ png"
    assert shown.transcript == "t " * 2000


def test_a_path_is_hidden_where_the_session_has_no_tools(file: Path) -> None:
    shown = describe(attachment(file), with_path=False)
    assert shown.path is None
    assert (shown.pixels, shown.picture) == ((3, 2), file)
    assert shown.transcript == ""
    other = describe(attachment(file, kind="file"), with_path=True)
    assert (other.pixels, other.picture) == (None, None)
