"""Section 16: the files that an agent sends to a chat. All of it is shown by the echo agent's ``attach``."""

import json
import os
import re
import stat
from pathlib import Path
from typing import Any

from tests.conformance.client import Client, Event, one
from tests.conformance.faults import BrokenError, check, same
from tests.conformance.rules import Need, rule
from tests.conformance.target import Target

MOST_BYTES = 26_214_400


async def chat(to: Target) -> Client:
    return await to.session(channel="Slack")


async def attach(client: Client, path: str | Path, caption: str = "") -> Event:
    """The tool's report on ``path``."""
    events = await client.turn(f'attach "{path}" {caption}'.rstrip())
    same(one(events, "tool.proposed").get("name"), "chat_attach", "the tool")
    return one(events, "tool.completed")


async def attached(client: Client, path: str | Path, caption: str = "") -> dict[str, Any]:
    report = await attach(client, path, caption)
    check(report.get("success") is True, f"{path} was not attached: {report['output']}")
    found: dict[str, Any] = json.loads(report["output"])["attached"]
    return found


async def refuses(to: Target, client: Client, *paths: str | Path) -> None:
    for path in paths:
        report = await attach(client, path)
        if report.get("success") is not False:
            raise BrokenError(f"{path} was attached")
    same(copies(to), [], "the copies of what was refused")


def copies(to: Target) -> list[Path]:
    outbox = to.home / "state" / "media" / "outbox"
    return sorted(outbox.iterdir()) if outbox.exists() else []


@rule("16.1-report", Need.ECHO, broken_by="bare-reports")
async def report(to: Target) -> None:
    """``chat_attach`` reports JSON: what is attached, with path, name and size, and a note."""
    client = await chat(to)
    (to.workspace / "a.txt").write_text("12345")
    found = await attach(client, "a.txt", "a  caption")
    output = json.loads(found["output"])
    check(isinstance(output.get("note"), str), "there is no note")
    file = output["attached"]
    same(
        [file.get(name) for name in ("name", "size", "caption")],
        ["a.txt", 5, "a caption"],
        "name, size, caption",
    )
    same(Path(file["path"]).read_text(), "12345", "what the copy holds")


@rule("16.2-copy", Need.ECHO, Need.HOME, broken_by="attaches-originals open-copies")
async def copy(to: Target) -> None:
    """What is attached is a copy in the outbox, mode 0600 in a folder of mode 0700, ``<12 hex>-<name>``."""
    client = await chat(to)
    (to.workspace / "a.txt").write_text("1")
    path = Path((await attached(client, to.workspace / "a.txt"))["path"])
    same(copies(to), [path], "the copies in the outbox")
    check(re.fullmatch(r"[0-9a-f]{12}-a\.txt", path.name), f"the copy is called {path.name}")
    same(stat.S_IMODE(path.stat().st_mode), 0o600, "the copy's mode")
    same(stat.S_IMODE(path.parent.stat().st_mode), 0o700, "the outbox's mode")


@rule("16.3-caption", Need.ECHO, broken_by="long-captions")
async def caption(to: Target) -> None:
    """A caption has at most 1024 bytes; a longer one is refused."""
    client = await chat(to)
    (to.workspace / "a.txt").write_text("1")
    same((await attached(client, "a.txt", "é" * 512)).get("caption"), "é" * 512, "the caption")
    same(
        (await attach(client, "a.txt", "é" * 512 + "x")).get("success"), False, "success with a long caption"
    )


@rule("16.4-telling-names", Need.ECHO, Need.HOME, broken_by="sends-private-names")
async def telling_names(to: Target) -> None:
    """Files whose path names a secret are refused, in any case: keys, ``.env``, credentials."""
    client = await chat(to)
    names = (
        ".env .env.local .ENV my_Credentials.txt PRIVATE_KEY a.pem a.KEY a.p12 a.pfx a.kdbx id_rsa "
        "id_rsa.pub ID_ed25519 id_ecdsa id_dsa .env.d/a.txt credentials/a.txt"
    ).split()
    for name in names:
        path = to.workspace / name
        path.parent.mkdir(exist_ok=True)
        path.write_text("x")
    await refuses(to, client, *names)


@rule("16.5-private-places", Need.ECHO, Need.HOME, broken_by="sends-from-anywhere")
async def private_places(to: Target) -> None:
    """Credential places under the user's home are refused, also behind a link."""
    client = await chat(to)
    places = ".ssh .gnupg .aws .azure .kube .docker .config/gh .config/gcloud .mozilla .password-store .codex"
    for place in [*places.split(), ".claude", ".config/chromium", ".local/share/keyrings"]:
        (to.user / place).mkdir(parents=True, exist_ok=True)
        (to.user / place / "a.txt").write_text("x")
        await refuses(to, client, to.user / place / "a.txt")
    for name in (".netrc", ".git-credentials", ".npmrc", ".pypirc", ".claude.json"):
        (to.user / name).write_text("x")
        await refuses(to, client, to.user / name)
    (to.workspace / "link").symlink_to(to.user / ".ssh" / "a.txt")
    (to.workspace / "way").symlink_to(to.user / ".aws")
    await refuses(to, client, "link", "way/a.txt")


@rule("16.6-system-places", Need.ECHO, Need.HOME, broken_by="sends-from-anywhere")
async def system_places(to: Target) -> None:
    """The system's secrets and its special folders are refused."""
    client = await chat(to)
    places = "/etc/shadow /etc/sudoers /etc/ssh/ssh_config /proc/self/status /proc/version /dev/zero"
    await refuses(to, client, *places.split())


@rule("16.7-home", Need.ECHO, Need.HOME, broken_by="sends-from-anywhere")
async def home(to: Target) -> None:
    """The server's own home is refused, but for media that the session has received."""
    client = await chat(to)
    secret, received = to.home / "config.toml", to.home / "state" / "media" / "inbound" / "a.txt"
    received.parent.mkdir(parents=True, exist_ok=True)
    for path in (secret, received, to.home / "state" / "notes.txt"):
        path.write_text("x")
    await refuses(to, client, secret, to.home / "state" / "notes.txt")
    await client.turn("look", attachments=[{"kind": "file", "path": str(received), "size": 1}])
    check((await attached(client, received))["size"] == 1, "received media cannot be sent")


@rule("16.8-regular", Need.ECHO, Need.HOME, broken_by="sends-anything")
async def regular(to: Target) -> None:
    """Only a regular file is sent that is not empty and has at most 25 MiB."""
    client = await chat(to)
    (to.workspace / "folder").mkdir()
    (to.workspace / "empty").touch()
    os.mkfifo(to.workspace / "pipe")
    with (to.workspace / "large").open("wb") as file:
        file.truncate(MOST_BYTES + 1)
    await refuses(to, client, "folder", "empty", "pipe", "large", "missing")


@rule("16.9-hard-links", Need.ECHO, Need.HOME, ours=True, broken_by="sends-hard-links")
async def hard_links(to: Target) -> None:
    """A file with more than one name is refused: the other may be private."""
    client = await chat(to)
    (to.workspace / "a.txt").write_text("x")
    os.link(to.workspace / "a.txt", to.workspace / "b.txt")
    await refuses(to, client, "a.txt", "b.txt")


@rule("16.10-links", Need.ECHO, broken_by="refuses-links")
async def links(to: Target) -> None:
    """A link to what may be sent is followed."""
    client = await chat(to)
    (to.workspace / "a.txt").write_text("12")
    (to.workspace / "link").symlink_to(to.workspace / "a.txt")
    same((await attached(client, "link"))["size"], 2, "the size")


@rule("16.11-undelivered", Need.ECHO, Need.HOME, ours=True, broken_by="keeps-copies")
async def undelivered(to: Target) -> None:
    """The copy is deleted when its turn fails or is cancelled."""
    client = await chat(to)
    (to.workspace / "a.txt").write_text("x")
    events = await client.turn("attach a.txt\nfail")
    same(one(events, "tool.completed").get("success"), True, "whether it was attached")
    same(copies(to), [], "the copies of a turn that failed")
    client.ask("turn.start", prompt="attach a.txt\nslow 3000")
    asked = (await client.until("approval.requested"))[-1]
    client.ask("approval.resolve", approval_id=asked["approval_id"], approved=True)
    await client.until("tool.completed")
    await client.cancel(asked["turn_id"])
    same(copies(to), [], "the copies of a turn that was cancelled")
