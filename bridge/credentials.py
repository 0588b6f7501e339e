"""Saves and removes an account's private file of secrets. Blocking: the daemon calls it in a thread."""

from __future__ import annotations

import json
import os
from collections.abc import Collection, Mapping
from datetime import datetime
from typing import Any

from pydantic import SecretStr

from bridge.accounts import secrets_of
from bridge.channel.spec import ChannelCredentials
from bridge.errors import ConfigError
from bridge.logs import register_secret
from bridge.paths import Home, leftovers, sync_directory, write_private


def save(
    home: Home, channel: str, account: str, model: ChannelCredentials, elsewhere: Collection[str] = ()
) -> None:
    """Replace the account's file by what ``model`` holds beside its defaults. No log shows it from now on.

    Keys that are kept ``elsewhere``, in the environment, are left out.

    Raises:
        ConfigError: a name is no plain name, or the file cannot be written; the old one stays then.
    """
    for secret in secrets_of(model):
        register_secret(secret)
    shown = _revealed(model.model_dump(exclude_defaults=True, exclude={*elsewhere}))
    save_texts(home, channel, account, shown)


def save_texts(home: Home, channel: str, account: str, secrets: Mapping[str, Any]) -> None:
    """As ``save``, for ``secrets`` that need not be all that the account must have."""
    path = home.credentials(channel, account)
    home.private_dir(path.parent)
    write_private(path, json.dumps(secrets, indent=2, ensure_ascii=False).encode() + b"\n")


def remove(home: Home, channel: str, account: str) -> None:
    """Remove the account's file, durably, also what a killed writer left of one. No file is removed already.

    Raises:
        ConfigError: a name is no plain name, or the file stays.
    """
    path = home.credentials(channel, account)
    try:
        for each in [path, *leftovers(path)]:
            each.unlink(missing_ok=True)
        sync_directory(path.parent)
    except FileNotFoundError:
        return
    except OSError as error:
        raise ConfigError(f"cannot remove {path}: {os.strerror(error.errno or 0)}") from error


def _revealed(value: Any) -> Any:
    match value:
        case SecretStr():
            return value.get_secret_value()
        case Mapping():
            return {key: _revealed(inner) for key, inner in value.items()}
        case list() | tuple():
            return [_revealed(inner) for inner in value]
        case datetime():
            return value.isoformat()
    return value
