"""The files that a message brings: inside its JSON, or by an address. Pure."""

import base64
import binascii
import hashlib
import json
from collections.abc import Callable
from typing import Annotated, Final

from pydantic import BaseModel, ConfigDict, Field, model_validator
from yarl import URL

from bridge.channel import FileKind, RemoteFile
from bridge.channel.text import clean
from channels.webhook.settings import is_address

INLINE_BYTES: Final = 262_144  # a file up to here travels inside the JSON
MAX_ATTACHMENTS: Final = 64


class SemanticError(ValueError):
    """The body is an event that cannot be accepted; the text names the field and holds no value."""


class Wire(BaseModel):
    model_config = ConfigDict(extra="ignore", frozen=True, strict=True, hide_input_in_errors=True)


class Attachment(Wire):
    name: Annotated[str, Field(max_length=1024)]
    mime_type: Annotated[str, Field(max_length=256, pattern=r"^[ -~]*$")] | None = None
    size: Annotated[int, Field(ge=0, lt=2**53)] | None = None
    url: Annotated[str, Field(max_length=4096)] | None = None
    content_base64: str | None = None
    sha256: Annotated[str, Field(pattern=r"^[0-9A-Fa-f]{64}$")] | None = None

    @model_validator(mode="after")
    def _has_one_source(self) -> "Attachment":
        if (self.url is None) == (self.content_base64 is None):
            raise ValueError("needs either url or content_base64")
        return self


def remote_file(attachment: Attachment, may_fetch: Callable[[URL], bool]) -> RemoteFile:
    """What ``fetch`` needs later, as JSON: the bytes themselves, or the address and the expected digest.

    Raises:
        SemanticError: the bytes are not those announced, or the address is not one to fetch from.
    """
    sha256 = (attachment.sha256 or "").lower()
    size: int | None
    if attachment.content_base64 is not None:
        size = _checked_content(attachment, sha256)
        key = {"content": attachment.content_base64}
    else:
        address = attachment.url or ""
        if not is_address(address) or not may_fetch(URL(address)):
            raise SemanticError("attachments: the url is no https address on an allowed host")
        size, key = attachment.size, {"url": address, "sha256": sha256}
    mime = attachment.mime_type or ""
    return RemoteFile(json.dumps(key), kind_of(mime), clean(attachment.name), mime, size)


def _checked_content(attachment: Attachment, sha256: str) -> int:
    content = decode_content(attachment.content_base64 or "")
    if len(content) > INLINE_BYTES:
        raise SemanticError(f"attachments: over {INLINE_BYTES} bytes inline; give a url")
    if attachment.size not in (None, len(content)):
        raise SemanticError("attachments: size is not that of the content")
    if sha256 and hashlib.sha256(content).hexdigest() != sha256:
        raise SemanticError("attachments: sha256 is not that of the content")
    return len(content)


def decode_content(text: str) -> bytes:
    """The bytes of strict base64.

    Raises:
        SemanticError: it is none.
    """
    try:
        return base64.b64decode(text, validate=True)
    except (binascii.Error, ValueError):
        raise SemanticError("attachments: content_base64 is not base64") from None


def kind_of(mime: str) -> FileKind:
    family = mime.partition("/")[0].strip().lower()
    return FileKind(family) if family in ("image", "audio", "video") else FileKind.FILE
