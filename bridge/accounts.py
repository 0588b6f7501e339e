"""Every account that the settings name: ready to run, or why it cannot.

An account is there exactly while its table is. One account's mistake is that account's alone. Its credentials
come from a private file,
``<home>/credentials/<channel>/<account>.json``, and, key by key, from the environment:
``[channels.<channel>.<account>.credentials] key = { env = "NAME" }``.
"""

from __future__ import annotations

import json
import os.path
import re
from collections.abc import Callable, Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass
from difflib import get_close_matches
from pathlib import Path
from typing import Any, Protocol, TypeVar

from pydantic import BaseModel, SecretStr

from bridge import registry
from bridge.channel.spec import ChannelCredentials, ChannelSettings, ChannelSpec
from bridge.config import Config
from bridge.errors import ConfigError
from bridge.ids import AccountId
from bridge.logs import register_secret
from bridge.paths import Home, plain_name, read_private, unread
from bridge.profiles import Profiles
from bridge.tables import TableError, validate

R = TypeVar("R")

MAX_CREDENTIAL_FILES = 128  # of one channel

_ODD = re.compile(r"[^A-Za-z0-9_-]")
_SLIP = re.compile(r"^$|^\s|\s$|[\x00-\x1f\x7f]")


@dataclass(frozen=True, slots=True)
class AccountSetup:
    """An account with all it needs. Equal values mean that nothing changed."""

    id: AccountId
    channel: str
    account: str
    spec: ChannelSpec
    settings: ChannelSettings
    credentials: ChannelCredentials
    workspace: Path

    @property
    def enabled(self) -> bool:
        return self.settings.enabled


@dataclass(frozen=True, slots=True)
class BrokenAccount:
    """An account that cannot run before the operator acts; ``reasons`` say how, safe to show."""

    id: AccountId
    channel: str
    account: str
    reasons: tuple[str, ...]
    enabled: bool = True


class Channels(Protocol):
    """The registry's side that is used here: nothing is imported before it is loaded."""

    def names(self) -> list[str]: ...

    def load(self, name: str) -> ChannelSpec:
        """Raises ConfigError when it cannot be used."""
        ...


def accounts(
    config: Config,
    home: Home,
    channels: Channels,
    environ: Mapping[str, str],
    profiles: Profiles | None = None,
) -> list[AccountSetup | BrokenAccount]:
    """All accounts, sorted by id. Secrets that were read are registered, so that no log shows them.

    ``profiles`` are the agents that they may name; without, those of ``config``.

    Raises:
        ExhaustedError: no account's mistake, so none is told to be broken.
    """
    found: list[AccountSetup | BrokenAccount] = []
    known = channels.names()
    agents = profiles or Profiles(config, home, registry.agents())
    for channel in {*config.channels, *known}:
        tables = config.channels.get(channel, {})
        if channel not in known:
            found += _unknown(home, channel, tables, known)
            continue
        try:
            _with_credentials(home, channel)
        except ConfigError as error:
            found.append(_broken(channel, "discovery-error", str(error)))
            continue
        if tables:
            found += _of_channel(channels, channel, config, home, environ, agents)
    return sorted(found, key=lambda account: account.id)


def unused_credentials(config: Config, home: Home, channels: Channels) -> list[str]:
    """A line for each credentials file that belongs to no account of the settings."""
    unused: list[tuple[str, str]] = []
    for channel in channels.names():
        with suppress(ConfigError):  # told with the accounts
            left = _with_credentials(home, channel) - config.channels.get(channel, {}).keys()
            unused += [(channel, name) for name in sorted(left)]
    return [
        f"{home.credentials(channel, name)}: not used: there is no [channels.{channel}.{name}] "
        f"in {home.config}: add it, or remove the file"
        for channel, name in unused
    ]


def _of_channel(
    channels: Channels,
    channel: str,
    config: Config,
    home: Home,
    environ: Mapping[str, str],
    agents: Profiles,
) -> list[AccountSetup | BrokenAccount]:
    tables = config.channels[channel]
    try:
        spec = channels.load(channel)
    except ConfigError as error:
        return [_broken(channel, name, f"{home.config}: channels.{channel}: {error}") for name in tables]
    shared = config.daemon.workspace
    return [_account(home, spec, name, table, shared, environ, agents) for name, table in tables.items()]


def _with_credentials(home: Home, channel: str) -> set[str]:
    """The accounts whose credentials are there; files with other names are nobody's.

    Raises:
        ConfigError: the directory cannot be listed, or holds too many.
    """
    directory = home.credentials(channel, "any").parent
    try:
        names = {path.stem for path in directory.iterdir() if path.suffix == ".json"}
    except FileNotFoundError:
        return set()
    except OSError as error:
        raise unread(error, f"{directory} cannot be listed: {error.strerror}") from error
    if len(names) > MAX_CREDENTIAL_FILES:
        raise ConfigError(f"{directory} holds over {MAX_CREDENTIAL_FILES} accounts: remove some")
    return {name for name in names if name and not _ODD.search(name)}


def _account(
    home: Home,
    spec: ChannelSpec,
    name: str,
    table: Mapping[str, Any],
    shared_workspace: str,
    environ: Mapping[str, str],
    agents: Profiles,
) -> AccountSetup | BrokenAccount:
    where = f"channels.{spec.name}.{_shown(name)}"
    own = {key: value for key, value in table.items() if key != "credentials"}
    told: list[str] = []
    noted(told, lambda: _check_name(name, f"{home.config}: {where}"))
    if told:  # its name leads to no file
        return _broken(spec.name, name, *told, enabled=own.get("enabled") is not False)
    told += _secrets_in(own, spec, home, name)
    settings = noted(told, lambda: validate(spec.settings, own, home.config, where))
    workspace = None
    if settings is not None:
        named = settings
        noted(told, lambda: check_ids(named, f"{home.config}: {where}"))
        told += agents.check(named, f"{home.config}: {where}")
        workspace = noted(told, lambda: _workspace(named.workspace, where, shared_workspace, home))
    secrets = noted(told, lambda: _credentials(home, spec, name, table.get("credentials", {}), environ))
    if told or settings is None or workspace is None or secrets is None:
        return _broken(spec.name, name, *told, enabled=own.get("enabled") is not False)
    id_ = AccountId(f"{spec.name}:{name}")
    return AccountSetup(id_, spec.name, name, spec, settings, secrets, workspace)


def noted(lines: list[str], check: Callable[[], R]) -> R | None:
    """What ``check`` gives; a mistake is added to ``lines`` instead, so that all are told at once."""
    try:
        return check()
    except TableError as error:
        lines += error.lines
    except ConfigError as error:
        lines.append(str(error))
    return None


def _secrets_in(own: dict[str, Any], spec: ChannelSpec, home: Home, name: str) -> list[str]:
    """Take secrets out of an account's own table, where none belongs, with a line for each."""
    misplaced = [
        key for key in own if key in spec.credentials.model_fields.keys() - spec.settings.model_fields
    ]
    for key in misplaced:
        del own[key]
    where, path = f"{home.config}: channels.{spec.name}.{name}", home.credentials(spec.name, name)
    return [_misplaced(f"{where}.{key}", path) for key in misplaced]


def _misplaced(where: str, path: Path) -> str:
    return f'{where}: no secret belongs into this file: put it into {path}, or write {{ env = "NAME" }}'


def _check_name(name: str, where: str) -> None:
    try:
        plain_name(name)
    except ConfigError as error:
        raise ConfigError(f"{where}: {error}") from None


def check_ids(settings: ChannelSettings, where: str) -> None:
    """Ids are compared as they stand, so a slip of the pen is refused with a ConfigError."""
    senders = settings.senders if isinstance(settings.senders, tuple) else ()
    named = {"owner": (settings.owner,) if settings.owner else (), "senders": senders}
    for key, ids in named.items():
        if any(_SLIP.search(one) for one in ids):
            raise ConfigError(f"{where}.{key}: an id is not empty and no blank is around it: correct it")


def _workspace(own: str, where: str, shared: str, home: Home) -> Path:
    """Where the account's agent works: its own folder, else the daemon's, else the home's.

    Raises:
        ConfigError: it is none.
    """
    if own:
        check_workspace(own, f"{home.config}: {where}.workspace")
    else:
        check_workspace(shared, f"{home.config}: daemon.workspace")
    return Path(own or shared or home.root / "workspace")


def check_workspace(workspace: str, where: str) -> None:
    """Raises ConfigError when ``workspace``, set at ``where``, is no directory's absolute path."""
    if workspace and not (os.path.isabs(workspace) and os.path.isdir(workspace)):
        raise ConfigError(f"{where}: must be an existing directory, by its absolute path: make or correct it")


def _credentials(
    home: Home, spec: ChannelSpec, name: str, table: Any, environ: Mapping[str, str]
) -> ChannelCredentials:
    path = home.credentials(spec.name, name)
    where = f"channels.{spec.name}.{name}.credentials"
    given = from_environment(table, f"{home.config}: {where}", path, environ)
    if os.path.exists(path) or not needed_secrets(spec) <= given.keys():
        given = saved_secrets(path) | given
    secrets = validate(spec.credentials, given, path, strict=False)  # variables are texts, whatever they hold
    for secret in secrets_of(secrets):
        register_secret(secret)
    return secrets


def needed_secrets(spec: ChannelSpec) -> set[str]:
    """The keys of the credentials without which there are none."""
    return {key for key, field in spec.credentials.model_fields.items() if field.is_required()}


def is_signed_in(home: Home, spec: ChannelSpec, name: str, table: Mapping[str, Any]) -> bool:
    """Whether the secrets that the account of this ``table`` needs are there, be they right or not.

    Raises:
        ConfigError: ``name`` is no plain name.
    """
    given = table.get("credentials", {})
    return os.path.exists(home.credentials(spec.name, name)) or needed_secrets(spec) <= {*given}


def from_environment(table: Any, where: str, path: Path, environ: Mapping[str, str]) -> dict[str, Any]:
    """The secrets that the account's ``credentials`` table takes from the environment.

    Raises:
        ConfigError: it is wrong, or a variable is not set.
    """
    if not isinstance(table, dict):
        raise ConfigError(f"{where}: must be a table")
    given: dict[str, Any] = {}
    for key, value in table.items():
        if not isinstance(value, dict) or set(value) != {"env"} or not isinstance(value["env"], str):
            raise ConfigError(_misplaced(f"{where}.{key}", path))
        if not environ.get(value["env"]):
            raise ConfigError(
                f"{where}.{key}: the environment has no {value['env']}: set it before the start"
            )
        given[key] = _value(environ[value["env"]])
    return given


def _value(text: str) -> Any:
    """A variable's value: JSON where it is a list, else the text itself."""
    if not text.startswith("["):
        return text
    try:
        return json.loads(text)
    except ValueError:
        return text


def saved_secrets(path: Path) -> dict[str, Any]:
    """What a file of secrets holds; raises ConfigError, also where there is none."""
    try:
        found = json.loads(read_private(path))
    except (ValueError, RecursionError):
        raise ConfigError(f"{path}: not JSON: write one object with the secrets") from None
    if not isinstance(found, dict):
        raise ConfigError(f"{path}: not a JSON object: write one with the secrets")
    return found


def secrets_of(value: object) -> Iterator[str]:
    """Each secret text in the credentials ``value``."""
    match value:
        case SecretStr():
            yield value.get_secret_value()
        case BaseModel():
            for name in type(value).model_fields:
                yield from secrets_of(getattr(value, name))
        case tuple() | list():
            for inner in value:
                yield from secrets_of(inner)


def _unknown(
    home: Home, channel: str, tables: Mapping[str, Any], known: list[str]
) -> list[AccountSetup | BrokenAccount]:
    near = get_close_matches(channel, known, n=1)
    help_ = f"did you mean {near[0]}?" if near else f"installed are: {', '.join(known) or 'none'}"
    return [
        _broken(channel, name, f"{home.config}: channels.{_shown(channel)}: no such channel: {help_}")
        for name in tables
    ]


def _broken(channel: str, name: str, *reasons: str, enabled: bool = True) -> BrokenAccount:
    shown, account = _shown(channel), _shown(name)
    return BrokenAccount(AccountId(f"{shown}:{account}"), shown, account, reasons, enabled)


def _shown(name: str) -> str:
    """``name`` without what may do harm, and never the name of an account that is right."""
    return _ODD.sub("?", name if len(name) <= 64 else f"{name[:63]}?")
