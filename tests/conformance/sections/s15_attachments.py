"""Section 15: the files of a turn."""

import os
from pathlib import Path
from typing import Any

from tests.conformance.client import Client, Event, file_of
from tests.conformance.faults import BrokenError, brief, check, same
from tests.conformance.rules import Need, rule
from tests.conformance.target import Target

TURN_ATTACHMENTS = 16


async def refused(client: Client, *attachments: Event) -> None:
    """Raises BrokenError where a turn with them starts."""
    request_id = client.ask("turn.start", prompt="hello", attachments=list(attachments))
    try:
        await client.error("invalid_request", request_id)
    except BrokenError as broken:
        raise BrokenError(f"{brief(attachments[0])}: {broken}") from None
    await client.quiet("after attachments that were refused")


async def sending(to: Target, **fields: Any) -> tuple[Client, Path]:
    """A client with a session, and a file to send."""
    file = to.workspace / "a.txt"
    file.write_text("12345")
    return await to.session(**fields), file


@rule("15.1-sixteen", broken_by="many-attachments few-attachments")
async def sixteen(to: Target) -> None:
    """A turn takes up to 16 attachments."""
    client, file = await sending(to)
    await refused(client, *[file_of(file)] * (TURN_ATTACHMENTS + 1))
    events = await client.turn("hello", attachments=[file_of(file)] * TURN_ATTACHMENTS)
    same(events[0]["type"], "turn.started", "the answer to 16 attachments")


@rule("15.2-kinds", broken_by="any-kind few-kinds")
async def each_kind(to: Target) -> None:
    """An attachment is an ``image``, ``audio``, ``video``, ``file`` or ``sticker``."""
    client, file = await sending(to)
    for kind in ("", "Image", "document", "file "):
        await refused(client, file_of(file, kind=kind))
    for kind in ("image", "audio", "video", "file", "sticker"):
        events = await client.turn("hello", attachments=[file_of(file, kind=kind)])
        same(events[0]["type"], "turn.started", f"the answer to {kind}")


@rule("15.3-absolute", broken_by="relative-paths")
async def absolute(to: Target) -> None:
    """An attachment's path is absolute."""
    client, file = await sending(to)
    for path in (file.name, f"./{file.name}", "~/a.txt", ""):
        await refused(client, file_of(file, path=path))


@rule("15.4-regular", broken_by="any-file")
async def regular(to: Target) -> None:
    """An attachment is an existing regular file: no folder, no pipe, no link as its last step."""
    client, file = await sending(to)
    link, folder, pipe = (to.workspace / name for name in ("link", "folder", "pipe"))
    link.symlink_to(file)
    folder.mkdir()
    os.mkfifo(pipe)
    for path in (to.workspace / "missing", file / "inside"):
        await refused(client, file_of(file, path=str(path)))
    await refused(client, file_of(file, path=f"{file}\0"))
    for path in (link, folder, pipe, Path("/dev/null")):
        await refused(client, {"kind": "file", "path": str(path), "size": path.lstat().st_size})


@rule("15.5-linked-folders", broken_by="no-linked-folders")
async def linked_folders(to: Target) -> None:
    """A link on the way to the file is followed: only the last step is judged."""
    client, file = await sending(to)
    way = to.workspace / "way"
    way.symlink_to(to.workspace)
    events = await client.turn("hello", attachments=[file_of(way / file.name)])
    same(events[0]["type"], "turn.started", "the answer")


@rule("15.6-all-judged", broken_by="judges-first-file")
async def all_judged(to: Target) -> None:
    """Each attachment is judged, not only the first."""
    client, file = await sending(to)
    good = file_of(file)
    await refused(client, good, good, {**good, "path": "/no/such/file"})


@rule("15.7-size", ours=True, broken_by="any-size")
async def size(to: Target) -> None:
    """The stated size is the file's."""
    client, file = await sending(to)
    for wrong in (0, 4, 6):
        await refused(client, file_of(file, size=wrong))


@rule("15.8-described", Need.ECHO, broken_by="untold-files")
async def described(to: Target) -> None:
    """The agent is told of each file: kind, name, mime, size and transcript."""
    client, file = await sending(to)
    told = {"kind": "audio", "name": "memo.ogg", "mime": "audio/ogg", "transcript": "call home"}
    answer = await client.answer("hello", attachments=[file_of(file, **told)])
    for part in told.values():
        check(part in answer, f"{part} is not in {brief(answer)}")


@rule("15.9-shown-short", Need.ECHO, ours=True, broken_by="shows-all")
async def shown_short(to: Target) -> None:
    """Long names and transcripts are cut for display, at 200 and 4000 characters, controls become blanks."""
    client, file = await sending(to)
    told = {"name": "n\n" + "中" * 300, "transcript": "t\t" + "x" * 5000}
    answer = await client.answer("hello", attachments=[file_of(file, **told)])
    check("n " + "中" * 198 in answer and "中" * 199 not in answer, "the name is not cut at 200 characters")
    check("t " + "x" * 3998 in answer and "x" * 3999 not in answer, "the transcript is not cut at 4000")


@rule("15.10-kept-whole", Need.ECHO, ours=True, broken_by="loses-transcripts")
async def kept_whole(to: Target) -> None:
    """What waits keeps its names and transcripts whole."""
    client, file = await sending(to)
    await client.hold()
    given = file_of(file, name="n" * 300, mime="a/b", transcript="x" * 5000)
    client.ask("turn.start", prompt="hello", attachments=[given])
    entry = (await client.event("queue.enqueued"))["entry"]
    same(entry.get("attachments"), [given], "the attachments")
