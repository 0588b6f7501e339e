"""The account by which a daemon knows the fake platform: its table and secrets, also written into a home."""

from __future__ import annotations

import json
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any
from urllib.parse import urlsplit

from bridge.cli.fake_platforms import FEISHU, WEB, Platform, account_address
from bridge.errors import ConfigError
from bridge.paths import Home, plain_name, read_private, write_private

if TYPE_CHECKING:
    from tomlkit import TOMLDocument
    from tomlkit.items import Table


@dataclass(frozen=True, slots=True)
class Setup:
    """One account: where it is pushed to, and what both sides must know.

    ``home`` is where it was written, which is ``new`` if it had no settings before.
    """

    to: str
    port: int
    account: str
    secrets: dict[str, str] = field(repr=False)
    home: Path | None = None
    platform: Platform = FEISHU
    new: bool = False

    @property
    def table(self) -> dict[str, str | bool]:
        return {**self.platform.table, "base": f"http://127.0.0.1:{self.port}"}


def prepare(
    home: str | None, to: str | None, port: int, platform: Platform = FEISHU, keep: str | None = None
) -> Setup:
    """The account to play, written into ``home`` where one is given; secrets that are there are kept.

    Without a home they are kept in the folder ``keep``, where that is given.

    Raises:
        ConfigError: the address is none, or the home has a real account of that name.
    """
    if not 0 < port < 65_536:
        raise ConfigError("--port must be 1 to 65535")
    if home is None:
        to = to or platform.address
        account = account_of(to, platform)
        return Setup(to, port, account, _secrets(platform, account, keep), platform=platform)
    where = Home.resolve(home)
    document = _read(where)
    to = to or account_address(platform.channel, *_web(document))
    account = account_of(to, platform)
    path = where.credentials(platform.channel, account)
    table = _table(document, platform.channel, account)
    new, known = not where.config.exists(), _kept(path, platform) or platform.secrets()
    setup = Setup(to, port, account, known, where.root, platform, new)
    table.update(setup.table)
    if platform.links:
        _give_address(document)
    where.private_dir(path.parent)
    write_private(path, _json(setup.secrets))
    write_private(where.config, document.as_string().encode())
    return setup


def _secrets(platform: Platform, account: str, keep: str | None) -> dict[str, str]:
    if keep is None:
        return platform.secrets()
    path = made(keep) / f"{platform.channel}-{account}.json"
    known = _kept(path, platform) or platform.secrets()
    write_private(path, _json(known))
    return known


def made(folder: str | Path) -> Path:
    """``folder``, made where it is not there, by its whole path; raises ConfigError."""
    try:
        Path(folder).mkdir(mode=0o700, parents=True, exist_ok=True)
    except OSError as error:
        raise ConfigError(f"{error.filename}: {error.strerror}: choose another folder with --out") from error
    return Path(folder).absolute()


def account_of(to: str, platform: Platform = FEISHU) -> str:
    """The account that an address like ``http://127.0.0.1:8470/channels/feishu/NAME`` belongs to.

    Raises:
        ConfigError: it is no such address.
    """
    url = urlsplit(to)
    before, _, name = url.path.rstrip("/").rpartition("/")
    is_accounts = before.endswith(f"/channels/{platform.channel}")
    if url.scheme not in ("http", "https") or not url.netloc or not is_accounts:
        raise ConfigError(f"--to must be like {platform.address}")
    return plain_name(name)


def to_paste(setup: Setup) -> list[tuple[str, str]]:
    """The two files' contents under the names of the files."""
    rows = "\n".join(f"{key} = {json.dumps(value)}" for key, value in setup.table.items())
    channel = setup.platform.channel
    table = f"[channels.{channel}.{setup.account}]\n{rows}\n"
    path = f"credentials/{channel}/{setup.account}.json"
    return [("config.toml", table), (f"{path} (mode 0600)", _json(setup.secrets).decode())]


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
    """Where the daemon of these settings is reached."""
    from bridge.config import reached_at

    web = document.get("web", {})
    return reached_at(str(web.get("host", WEB[0]))), int(web.get("port", WEB[1]))


def _give_address(document: TOMLDocument) -> None:
    """Links to files lead to the daemon on this machine, unless its settings say where it is reached."""
    import tomlkit

    host, port = _web(document)
    web = document.setdefault("web", tomlkit.table())
    if not web.get("public_url"):
        web["public_url"] = f"http://{host}:{port}"


def _table(document: TOMLDocument, channel: str, account: str) -> Table:
    """The account's table, made where there is none.

    Raises:
        ConfigError: it is that of a real account, which is left alone.
    """
    import tomlkit

    here: Any = document
    for name in ("channels", channel, account):
        if name not in here:
            here[name] = tomlkit.table(is_super_table=name != account)
        here = here[name]
    if here and not str(here.get("base", "")).startswith("http://127.0.0.1:"):
        raise ConfigError(f"{channel}:{account} is a real account: choose another name at the end of --to")
    table: Table = here
    return table


def _kept(path: Path, platform: Platform) -> dict[str, str] | None:
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
    names = platform.secrets().keys()
    if not isinstance(found, dict) or not all(isinstance(found.get(name), str) for name in names):
        raise ConfigError(f"{path} lacks a secret: remove it")
    return {name: found[name] for name in names}
