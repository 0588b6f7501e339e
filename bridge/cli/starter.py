"""The settings that ``turnbridge run --init`` writes: a chat in the terminal, and a webhook to try."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from bridge.paths import Home

CHANNEL, ACCOUNT, OWNER = "webhook", "demo", "you"
FILE_HOST = "127.0.0.1:8472"

SETTINGS = f"""\

[daemon]
agent = "echo" # answers without any network; it drives files, tools and failures by plain words

[web]
host = "127.0.0.1"
port = 8470

# A chat in a terminal of this machine: `turnbridge chat`. Its user is the owner, with tools in workspace/.
[channels.console.local]

# A system to try it with over HTTP: `turnbridge try` is its other side.
# Its secrets are in credentials/webhook/demo.json.
[channels.{CHANNEL}.{ACCOUNT}]
owner = "{OWNER}"
remote_tools = "owner" # the owner's direct chat may use tools, in the folder workspace/ of this home
approvals = "ask" # what changes something is put to the owner first
# Files over 256 KiB are fetched from here, where `turnbridge try` serves its own while it runs.
file_hosts = ["{FILE_HOST}"]
private_hosts = ["{FILE_HOST}"]
"""


def head(where: Home) -> str:
    """The first lines, whose commands are for this home from wherever they are typed."""
    from bridge.cli.common import typed_anywhere, visible

    lines = (
        "Turnbridge's settings. See all of them, check them, have a running daemon read them again, with:",
        f"  {typed_anywhere(where, 'config show')}",
        f"  {typed_anywhere(where, 'config check')}",
        f"  {typed_anywhere(where, 'reload')}",
    )
    return "".join(f"# {' '.join(visible(line).splitlines())}\n" for line in lines)


def write(where: Home) -> None:
    """Write settings and freshly made secrets, for their owner alone. Secrets that are there stay.

    Raises:
        ConfigError: they cannot be written.
    """
    from bridge.paths import write_private

    credentials = where.credentials(CHANNEL, ACCOUNT)
    where.private_dir(credentials.parent)
    if not credentials.exists():
        write_private(credentials, json.dumps(secrets(), indent=2).encode() + b"\n")
    write_private(where.config, f"{head(where)}{SETTINGS}".encode(errors="replace"))


def secrets() -> dict[str, object]:
    """What signs messages, and what asks for replies: 32 random bytes each."""
    from base64 import b64encode
    from secrets import token_bytes, token_urlsafe

    return {"secrets": ["whsec_" + b64encode(token_bytes(32)).decode()], "ask_token": token_urlsafe(32)}
