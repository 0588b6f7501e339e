"""The account by which a daemon knows the fake platform: its table and secrets, also written into a home."""

from __future__ import annotations

import json
import secrets
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any
from urllib.parse import urlsplit

from bridge.errors import ConfigError
from bridge.paths import Home, plain_name, read_private, write_private

if TYPE_CHECKING:
    from tomlkit import TOMLDocument
    from tomlkit.items import Table

CHANNEL, ACCOUNT = "feishu", "fake"
APP_ID = "cli_fake0001"
OWNER = "ou_fake_owner"
_WEB = ("127.0.0.1", 8470)


@dataclass(frozen=True, slots=True)
class Setup:
    """One account: where it is pushed to, and what both sides must know. ``home`` is where it was written."""

    to: str
    port: int
    account: str
    secrets: dict[str, str] = field(repr=False)
    home: Path | None = None

    @property
    def table(self) -> dict[str, str]:
        base = f"http://127.0.0.1:{self.port}"
        return {"app_id": APP_ID, "base": base, "owner": OWNER, "senders": "anyone", "remote_tools": "owner"}


def prepare(home: str | None, to: str | None, port: int) -> Setup:
    """The account to play, written into ``home`` where one is given; secrets that are there are kept.

    Raises:
        ConfigError: the address is none, or the home has a real account of that name.
    """
    if not 0 < port < 65_536:
        raise ConfigError("--port must be 1 to 65535")
    if home is None:
        to = to or _address(*_WEB)
        return Setup(to, port, account_of(to), new_secrets())
    where = Home.resolve(home)
    document = _read(where)
    to = to or _address(*_web(document))
    account = account_of(to)
    path = where.credentials(CHANNEL, account)
    table = _table(document, account)
    setup = Setup(to, port, account, _kept(path) or new_secrets(), where.root)
    table.update(setup.table)
    where.private_dir(path.parent)
    write_private(path, _json(setup.secrets))
    write_private(where.config, document.as_string().encode())
    return setup


def account_of(to: str) -> str:
    """The account that an address like ``http://127.0.0.1:8470/channels/feishu/NAME`` belongs to.

    Raises:
        ConfigError: it is no such address.
    """
    url = urlsplit(to)
    before, _, name = url.path.rstrip("/").rpartition("/")
    if url.scheme not in ("http", "https") or not url.netloc or not before.endswith(f"/channels/{CHANNEL}"):
        raise ConfigError(f"--to must be like {_address(*_WEB)}")
    return plain_name(name)


def new_secrets() -> dict[str, str]:
    """Fresh ones: whoever knew them could write as the owner."""
    names = ("app_secret", "verification_token", "encrypt_key")
    return {name: secrets.token_urlsafe(24) for name in names}


def to_paste(setup: Setup) -> list[tuple[str, str]]:
    """The two files' contents under the names of the files."""
    rows = "\n".join(f"{key} = {json.dumps(value)}" for key, value in setup.table.items())
    table = f"[channels.{CHANNEL}.{setup.account}]\n{rows}\n"
    path = f"credentials/{CHANNEL}/{setup.account}.json"
    return [("config.toml", table), (f"{path} (mode 0600)", _json(setup.secrets).decode())]


def _address(host: str, port: int) -> str:
    return f"http://{host}:{port}/channels/{CHANNEL}/{ACCOUNT}"


def _json(value: dict[str, str]) -> bytes:
    return json.dumps(value, indent=2).encode() + b"\n"


def _read(where: Home) -> TOMLDocument:
    import tomlkit
    from tomlkit.exceptions import TOMLKitError

    where.private_dir(where.root)
    try:
        return tomlkit.parse(where.config.read_text(encoding="utf-8"))
    except FileNotFoundError:
        return tomlkit.document()
    except (OSError, UnicodeError, TOMLKitError) as error:
        raise ConfigError(f"{where.config} cannot be read: mend it first") from error


def _web(document: TOMLDocument) -> tuple[str, int]:
    """Where the daemon of these settings listens."""
    web = document.get("web", {})
    host, port = web.get("host", _WEB[0]), web.get("port", _WEB[1])
    return ("127.0.0.1" if host in ("0.0.0.0", "") else str(host)), int(port)  # noqa: S104 - compared, not bound


def _table(document: TOMLDocument, account: str) -> Table:
    """The account's table, made where there is none.

    Raises:
        ConfigError: it is that of a real account, which is left alone.
    """
    import tomlkit

    here: Any = document
    for name in ("channels", CHANNEL, account):
        if name not in here:
            here[name] = tomlkit.table(is_super_table=name != account)
        here = here[name]
    if here and not str(here.get("base", "")).startswith("http://127.0.0.1:"):
        raise ConfigError(f"{CHANNEL}:{account} is a real account: choose another name at the end of --to")
    table: Table = here
    return table


def _kept(path: Path) -> dict[str, str] | None:
    """The secrets that an earlier run wrote.

    Raises:
        ConfigError: the file is there and cannot be used.
    """
    if not path.exists():
        return None
    try:
        found = json.loads(read_private(path))
    except ValueError as error:
        raise ConfigError(f"{path} is no JSON: remove it") from error
    if not isinstance(found, dict) or not all(isinstance(found.get(name), str) for name in new_secrets()):
        raise ConfigError(f"{path} lacks a secret: remove it")
    return {name: found[name] for name in new_secrets()}
