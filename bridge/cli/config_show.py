"""``turnbridge config show``: every setting as it is in effect, defaults included; no secret is shown."""

from __future__ import annotations

import argparse
import json
import os
from typing import TYPE_CHECKING, Any

from bridge.cli.common import home

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from pydantic import BaseModel

    from bridge.accounts import AccountSetup, BrokenAccount
    from bridge.config import Config
    from bridge.paths import Home

MASK = "********"

Table = dict[str, Any]
Notes = dict[tuple[str, ...], str]
"""By the path of a key or table: what is said behind or above it."""


def run(args: argparse.Namespace) -> int:
    """Exit 0, or 2 when something is wrong: then what is wrong is left out, and told by its reason."""
    from bridge.cli.config_check import findings

    where = home(args)
    tables, notes = shown(where)
    wrong, _ = findings(where)
    if args.json:
        print(json.dumps({**tables, "wrong": wrong}, ensure_ascii=False))
        return 2 if wrong else 0
    print(f"# {where.config}")
    for line in wrong:
        print(f"# wrong: {line}")
    print("\n".join(_lines(tables, notes, ())))
    return 2 if wrong else 0


def shown(where: Home) -> tuple[Table, Notes]:
    """All tables as plain values, and notes of what is not as it comes.

    Raises:
        ConfigError: the file as a whole cannot be read.
    """
    from bridge import registry
    from bridge.accounts import AccountSetup, accounts
    from bridge.config import load_all

    config, _ = load_all(where.config)
    notes: Notes = {}
    tables: Table = {
        name: _shown(getattr(config, name), (name,), notes)
        for name in type(config).model_fields
        if name not in ("mcp", "agents", "channels")
    }
    tables["mcp"] = {name: _shown(server, ("mcp", name), notes) for name, server in config.mcp.items()}
    tables["agents"] = _agents(config, where, notes)
    tables["channels"] = {}
    for account in accounts(config, where, registry.channels(), os.environ):
        path = ("channels", account.channel, account.account)
        of_channel = tables["channels"].setdefault(account.channel, {})
        if isinstance(account, AccountSetup):
            of_channel[account.account] = _account(account, config, where, path, notes)
        else:
            of_channel[account.account] = _broken(account, path, notes)
    return tables, notes


def _agents(config: Config, where: Home, notes: Notes) -> Table:
    """The agent that answers, and those that have a table; one that is wrong is left out."""
    from bridge import registry
    from bridge.errors import ConfigError
    from bridge.profiles import Profiles

    profiles, found = Profiles(config, where, registry.agents()), {}
    for name in profiles.names():
        try:
            profile = profiles.read(name)
        except ConfigError:  # told with what is wrong
            continue
        kind = {"type": profile.spec.name} if profile.spec.name != name else {}
        found[name] = kind | _shown(profile.settings, ("agents", name), notes)
    return found


def _account(
    account: AccountSetup, config: Config, where: Home, path: tuple[str, ...], notes: Notes
) -> Table:
    table = _shown(account.settings, path, notes)
    given = config.channels[account.channel][account.account].get("credentials", {})
    secrets = _masked(account.credentials)
    if secrets:
        table["credentials"] = secrets
    file = where.credentials(account.channel, account.account)
    for key, value in secrets.items():
        if value:
            source = f"the environment: {given[key]['env']}" if key in given else str(file)
            notes[(*path, "credentials", key)] = f"from {source}"
    return table


def _broken(account: BrokenAccount, path: tuple[str, ...], notes: Notes) -> Table:
    notes[path] = "cannot be used, see above"
    return {"enabled": account.enabled}


def _shown(model: BaseModel, path: tuple[str, ...], notes: Notes) -> Table:
    """The model's values; a note names the default of each that is another."""
    from pydantic import BaseModel

    table: Table = _masked(model)
    for name, field in type(model).model_fields.items():
        value = getattr(model, name)
        if isinstance(value, BaseModel):
            table[name] = _shown(value, (*path, name), notes)
        elif not field.is_required() and value != field.default:
            notes[(*path, name)] = f"default: {_written(_masked(field.default))}"
    return table


def _masked(value: Any) -> Any:
    """``value`` as plain parts: no secret, and no address's login or query, which may hold one."""
    from datetime import datetime
    from enum import Enum

    from pydantic import BaseModel, SecretStr

    from bridge.logs import clean

    match value:
        case SecretStr():
            return MASK if value.get_secret_value() else ""
        case BaseModel():
            parts = {name: getattr(value, name) for name in type(value).model_fields}
            return {name: _masked(part) for name, part in parts.items() if part is not None}
        case tuple() | list():
            return [_masked(one) for one in value]
        case dict():
            return {key: _masked(part) for key, part in value.items()}
        case Enum():
            return value.value
        case datetime():
            return value.isoformat()
        case str():
            return clean(value)
    return value


def _lines(table: Mapping[str, Any], notes: Notes, path: tuple[str, ...]) -> Iterator[str]:
    """``table`` as TOML: its own keys first, then the tables inside it."""
    inner = {key: value for key, value in table.items() if isinstance(value, dict)}
    own = {key: value for key, value in table.items() if key not in inner}
    if own or (path and not inner):
        yield ""
        yield f"[{'.'.join(_key(step) for step in path)}]{_note(notes, path)}"
    for key, value in own.items():
        yield f"{_key(key)} = {_written(value)}{_note(notes, (*path, key))}"
    for key, value in inner.items():
        yield from _lines(value, notes, (*path, key))


def _note(notes: Notes, path: tuple[str, ...]) -> str:
    return f" # {notes[path]}" if path in notes else ""


def _key(name: str) -> str:
    import re

    return name if re.fullmatch(r"[A-Za-z0-9_-]+", name) else json.dumps(name, ensure_ascii=False)


def _written(value: Any) -> str:
    """``value`` as TOML writes it, on one line."""
    match value:
        case dict():
            return f"{{ {', '.join(f'{_key(key)} = {_written(inner)}' for key, inner in value.items())} }}"
        case list():
            return f"[{', '.join(_written(inner) for inner in value)}]"
        case float():
            return repr(value)
    return json.dumps(value, ensure_ascii=False)
