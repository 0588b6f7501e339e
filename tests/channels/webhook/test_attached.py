import base64
import hashlib
import json
from typing import Any

import pytest

from bridge.channel import FileKind, RemoteFile
from channels.webhook.attached import INLINE_BYTES, Attachment, SemanticError, kind_of, remote_file


def given(fields: dict[str, Any], allowed: bool = True) -> RemoteFile:
    return remote_file(Attachment.model_validate(fields), lambda url: allowed)


def test_inline_files_are_kept_in_their_key() -> None:
    content = b"\x00\xffbytes"
    text = base64.b64encode(content).decode()
    digest = hashlib.sha256(content).hexdigest().upper()
    name = '../测试 "😀"\r\n.png'
    attachment = {"name": name, "mime_type": "image/PNG", "content_base64": text, "size": 7, "sha256": digest}
    file = given(attachment)
    assert json.loads(file.key) == {"content": text}
    assert (file.kind, file.name, file.size) == (FileKind.IMAGE, name, 7)


def test_an_inline_file_may_have_256_kib_and_no_more() -> None:
    for size, accepted in ((INLINE_BYTES, True), (INLINE_BYTES + 1, False)):
        attachment = {
            "name": "a",
            "mime_type": None,
            "content_base64": base64.b64encode(bytes(size)).decode(),
        }
        if accepted:
            assert given(attachment).size == size
        else:
            with pytest.raises(SemanticError, match="give a url"):
                given(attachment)


def test_a_file_by_address_keeps_its_address_and_digest() -> None:
    attachment = {
        "name": "a.mp4",
        "mime_type": "video/mp4",
        "url": "https://f.example/a?b=%2F",
        "sha256": "A" * 64,
    }
    file = given(attachment)
    assert json.loads(file.key) == {"url": "https://f.example/a?b=%2F", "sha256": "a" * 64}
    assert (file.kind, file.size) == (FileKind.VIDEO, None)
    with pytest.raises(SemanticError, match="allowed host"):
        given(attachment, allowed=False)


def test_kinds() -> None:
    found = [kind_of(mime) for mime in ("image/png", " AUDIO/ogg", "video/x", "text/plain", "", "sticker/x")]
    assert found == [
        FileKind.IMAGE,
        FileKind.AUDIO,
        FileKind.VIDEO,
        FileKind.FILE,
        FileKind.FILE,
        FileKind.FILE,
    ]


@pytest.mark.parametrize(
    ("fields", "where"),
    [
        ({}, "either url or content_base64"),
        ({"url": "x", "content_base64": ""}, "either url or content_base64"),
        ({"content_base64": "SECRET!"}, "content_base64 is not base64"),
        ({"content_base64": "QUI"}, "content_base64 is not base64"),
        ({"content_base64": "QUI=", "size": 3}, "size is not"),
        ({"content_base64": "QUI=", "sha256": "0" * 64}, "sha256 is not"),
        ({"url": "file:///etc/passwd"}, "no https address"),
        ({"url": "https://SECRET@x.example/"}, "no https address"),
    ],
)
def test_a_file_that_cannot_be_had_is_refused_without_its_content(fields: dict[str, Any], where: str) -> None:
    with pytest.raises(ValueError, match=where) as failed:
        given({"name": "a", **fields})
    assert "SECRET" not in str(failed.value)
