"""What a call gave, for the model."""

import base64
import os
from pathlib import Path

import mcp_types as types
import pytest

from bridge.tools.contract import ToolResult
from bridge.tools.mcp import results
from bridge.tools.mcp.results import in_thread, to_result
from bridge.tools.texts import OUTPUT_BYTES

PNG = b"\x89PNG\r\n\x1a\n"


def said(*texts: str, is_error: bool = False) -> types.CallToolResult:
    return types.CallToolResult(content=[types.TextContent(text=text) for text in texts], is_error=is_error)


def image(data: bytes | str, mime: str = "image/png") -> types.ImageContent:
    return types.ImageContent(
        data=data if isinstance(data, str) else base64.b64encode(data).decode(), mime_type=mime
    )


async def test_texts_are_joined_and_a_failure_is_one(tmp_path: Path) -> None:
    assert await in_thread(said("a", "b"), "s", tmp_path) == ToolResult(True, "a\nb")
    assert to_result(said("no", is_error=True), "s", tmp_path) == ToolResult(False, "no")


def test_a_long_text_is_cut_between_characters(tmp_path: Path) -> None:
    found = to_result(said("ü" * OUTPUT_BYTES), "s", tmp_path)
    assert (found.truncated, found.output) == (True, "ü" * (OUTPUT_BYTES // 2))


def test_structured_content_stands_in_for_a_text_that_is_not_there(tmp_path: Path) -> None:
    both = types.CallToolResult(content=[types.TextContent(text="x")], structured_content={"a": 1})
    assert to_result(both, "s", tmp_path).output == "x"
    alone = types.CallToolResult(content=[], structured_content={"a": "ü"})
    assert to_result(alone, "s", tmp_path).output == '{"a": "ü"}'
    assert to_result(types.CallToolResult(content=[]), "s", tmp_path) == ToolResult(True, "")


def test_what_is_no_text_is_kept_in_the_workspace_and_named(tmp_path: Path) -> None:
    answer = types.CallToolResult(
        content=[image(PNG), types.AudioContent(data=base64.b64encode(b"a").decode(), mime_type="odd\x1b/x")]
    )
    first, second = to_result(answer, "my-server", tmp_path).output.split("\n")
    name = first.rpartition(": ")[2].rstrip("]")
    assert first == f"[a file (image/png, 8 bytes): {name}]"
    assert name.startswith("mcp-files/my-server-")
    assert name.endswith(".png")
    assert (tmp_path / name).read_bytes() == PNG
    assert second.startswith("[a file (odd/x, 1 bytes): mcp-files/my-server-")
    assert second.endswith(".bin]")
    assert to_result(answer, "my-server", tmp_path).output == f"{first}\n{second}"  # the same bytes, one file


def test_resources_are_named_and_their_texts_given(tmp_path: Path) -> None:
    text = types.TextResourceContents(uri="file:///a", text="inside")
    blob = types.BlobResourceContents(uri="file:///b", blob=base64.b64encode(b"b").decode())
    answer = types.CallToolResult(
        content=[
            types.ResourceLink(uri="https://x.example/y", name="why\u202e"),
            types.EmbeddedResource(resource=text),
            types.EmbeddedResource(resource=blob),
        ]
    )
    link, place, inside, kept = to_result(answer, "s", tmp_path).output.split("\n")
    assert (link, place, inside) == ("[why: https://x.example/y]", "[file:///a]", "inside")
    assert kept.startswith("[a file (unknown type, 1 bytes): mcp-files/s-")


def test_what_cannot_be_kept_is_told(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(results, "FILE_BYTES", 4)
    odd = types.CallToolResult(content=[image("no base64!"), image(b"12345")])
    assert to_result(odd, "s", tmp_path).output.split("\n") == [
        "[a file (image/png) that cannot be read]",
        "[a file (image/png) of 5 bytes: too large, left out]",
    ]
    many = types.CallToolResult(content=[image(bytes([n])) for n in range(results.MOST_FILES + 1)])
    assert to_result(many, "s", tmp_path).output.endswith("\n[one more file, left out]")


def test_no_link_leads_a_file_out_of_the_workspace(tmp_path: Path) -> None:
    cwd, outside = tmp_path / "cwd", tmp_path / "outside"
    cwd.mkdir()
    outside.mkdir()
    (cwd / "mcp-files").symlink_to(outside)
    said = to_result(types.CallToolResult(content=[image(PNG)]), "s", cwd).output
    assert said == "[a file (image/png), not kept: That path is outside of the workspace.]"
    assert os.listdir(outside) == []
    gone = to_result(types.CallToolResult(content=[image(PNG)]), "s", tmp_path / "none").output
    assert gone == "[a file (image/png), not kept: No such file or directory]"


def test_bytes_that_are_none_at_all_are_told_and_fail_nothing(tmp_path: Path) -> None:
    answer = types.CallToolResult(content=[image("é"), types.TextContent(text="and this")])
    assert to_result(answer, "s", tmp_path).output == "[a file (image/png) that cannot be read]\nand this"
