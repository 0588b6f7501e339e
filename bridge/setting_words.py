"""Reads ``KEY=VALUE`` as an account's setting, and checks the account with it before it is written."""

from __future__ import annotations

import json
import os
import re
import tomllib
from collections.abc import Iterable, Mapping, Sequence
from shlex import quote
from typing import Annotated, Any

from pydantic import BaseModel, TypeAdapter, ValidationError
from pydantic.fields import FieldInfo

from bridge import registry
from bridge.accounts import BrokenAccount, accounts
from bridge.channel.spec import ChannelSpec
from bridge.config import Config, load
from bridge.errors import ConfigError
from bridge.paths import Home
from bridge.tables import TableError, meant

_EXAMPLE = re.compile(r", as in: (\w+) = (.+)$")


def checked(where: Home, channel: str, account: str, words: Sequence[str]) -> tuple[dict[str, Any], bool]:
    """What ``words`` set, by dotted keys, None for what is unset; and whether the account is on then.

    Raises:
        ConfigError: there is no such account, a key is none of its, or the account would be wrong with it.
    """
    spec, config = registry.channels().load(channel), load(where.config)
    table = config.channels.get(channel, {}).get(account)
    if table is None:
        raise ConfigError(
            f"{where.config} has no [channels.{channel}.{account}]: sign it in first: "
            f"turnbridge channels login {channel}:{account}"
        )
    keys = dict(_read(spec, word) for word in words)
    changed = with_keys(table, keys)
    if wrong := new_reasons(where, config, channel, account, changed):
        raise TableError([_as_words(reason, keys) for reason in wrong])
    return keys, changed.get("enabled", True) is not False


def new_reasons(where: Home, config: Config, channel: str, account: str, table: dict[str, Any]) -> list[str]:
    """What would be wrong with the account, of which nothing is wrong now."""
    tables = {**config.channels.get(channel, {}), account: table}
    after = config.model_copy(update={"channels": {**config.channels, channel: tables}})
    before = _reasons(where, config, channel, account)
    return [reason for reason in _reasons(where, after, channel, account) if reason not in before]


def _reasons(where: Home, config: Config, channel: str, account: str) -> tuple[str, ...]:
    for found in accounts(config, where, registry.channels(), os.environ):
        if found.id == f"{channel}:{account}" and isinstance(found, BrokenAccount):
            return found.reasons
    return ()


def _as_words(reason: str, keys: Iterable[str]) -> str:
    """``reason``, whose example, if it has one for any of ``keys``, can be typed in a shell."""
    if not (found := _EXAMPLE.search(reason)):
        return reason
    key = next((key for key in keys if key.rpartition(".")[2] == found[1]), found[1])
    return f"{reason[: found.start()]}, as in: {quote(f'{key}={found[2]}')}"


def with_keys(table: Mapping[str, Any], keys: Mapping[str, Any]) -> dict[str, Any]:
    """``table`` with the dotted ``keys`` set, and without those that are None."""
    changed = dict(table)
    for key, value in keys.items():
        first, _, rest = key.partition(".")
        if rest:
            changed[first] = with_keys(changed.get(first, {}), {rest: value})
        elif value is None:
            changed.pop(first, None)
        else:
            changed[first] = value
    return changed


def _read(spec: ChannelSpec, word: str) -> tuple[str, Any]:
    key, equals, text = word.partition("=")
    if not equals:
        raise ConfigError(f"{word!r} sets nothing: write KEY=VALUE, or KEY= to take the default")
    if key in spec.credentials.model_fields:
        raise ConfigError(f"{key} is a secret, which has no place in a command: sign in again to change it")
    return key, read_value(spec.settings, key, text)


def read_value(model: type[BaseModel], key: str, text: str) -> Any:
    """``text`` as ``model`` takes it for the dotted ``key``; None for "", which unsets it.

    Raises:
        ConfigError: there is no such setting.
    """
    field = _field(model, key)
    return _value(field, text) if text else None


def _field(model: type[BaseModel], key: str) -> FieldInfo:
    first, _, rest = key.partition(".")
    field = model.model_fields.get(first)
    if field is None:
        hint = meant(first, model) or _elsewhere(first)
        raise ConfigError(f"no such setting: {key}" + (f": {hint}" if hint else ""))
    inner = field.annotation
    if not rest:
        return field
    if not (isinstance(inner, type) and issubclass(inner, BaseModel)):
        raise ConfigError(f"no such setting: {key}: {first} has no parts")
    return _field(inner, rest)


def _elsewhere(key: str) -> str:
    """Where ``key`` stands, if it is a setting of the whole file's."""
    for name, table in Config().model_dump().items():
        if key == name or (isinstance(table, dict) and key in table):
            return f"it is none of an account's, but for all of them, in [{name}] of config.toml"
    return ""


def _value(field: FieldInfo, text: str) -> Any:
    """``text`` as it is where the setting takes a text, else as TOML; whether it is right is seen later."""
    try:
        value = tomllib.loads(f"value = {text}")["value"]
    except (tomllib.TOMLDecodeError, KeyError):
        return text
    return text if _takes(field, text) else value


def _takes(field: FieldInfo, text: str) -> bool:
    annotated: Any = Annotated
    try:
        TypeAdapter(annotated[field.annotation, field]).validate_json(json.dumps(text), strict=True)
    except ValidationError:
        return False
    return True
