"""How a server is reached: its settings, with the secrets from the environment and from its private file.

``<home>/credentials/mcp/<name>.json`` may hold ``bearer``, ``headers`` and ``query`` (of an address), and
``env`` (of a program).
"""

import os.path
import shutil
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any
from urllib.parse import urlencode

from pydantic import BaseModel, ConfigDict, SecretStr

from bridge.accounts import saved_secrets
from bridge.config import McpTable, Variable
from bridge.errors import ConfigError
from bridge.logs import register_borne, register_secret
from bridge.paths import Home
from bridge.tables import validate
from bridge.tools.processes import clean_environment

FOLDER = "mcp"


class Secrets(BaseModel):
    """The private file."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    bearer: SecretStr | None = None
    headers: dict[str, SecretStr] = {}
    query: dict[str, SecretStr] = {}
    env: dict[str, SecretStr] = {}


@dataclass(frozen=True, slots=True)
class Access:
    """``command`` and ``env`` of a program that works in ``cwd``; or ``url`` and ``headers``."""

    name: str
    command: tuple[str, ...] = ()
    cwd: Path = Path("/")
    env: Mapping[str, str] = field(default_factory=dict, repr=False)
    url: str = field(default="", repr=False)
    headers: Mapping[str, str] = field(default_factory=dict, repr=False)


def access(name: str, table: McpTable, home: Home, workspace: Path, environ: Mapping[str, str]) -> Access:
    """How to reach the server ``name``. Its secrets are registered. Reads a file: blocking, briefly.

    Raises:
        ConfigError: a secret is missing, or its file is wrong; or there is no such folder.
        ExhaustedError: nothing could be read now.
    """
    secrets = _secrets(home, name)
    where = f"{home.config}: mcp.{name}"
    if table.url:
        return Access(name, url=_url(table.url, secrets), headers=_headers(table, secrets, where, environ))
    cwd = Path(table.cwd).expanduser() if table.cwd else workspace
    if table.cwd and not (cwd.is_absolute() and cwd.is_dir()):
        raise ConfigError(
            f"{where}.cwd: must be an existing folder, by its absolute path: make or correct it"
        )
    given = {key: _variable(key, where, "env", environ) for key in table.env}
    given |= {key: value.get_secret_value() for key, value in secrets.env.items()}
    register_borne(given.items())
    return Access(name, table.command, cwd, {**clean_environment(), **given})


def _secrets(home: Home, name: str) -> Secrets:
    path = home.credentials(FOLDER, name)
    if not os.path.lexists(path):
        return Secrets()
    found = validate(Secrets, saved_secrets(path), path, strict=False)
    given = [found.bearer, *found.headers.values(), *found.query.values(), *found.env.values()]
    for secret in given:
        if secret:
            register_secret(secret.get_secret_value())
    return found


def _url(url: str, secrets: Secrets) -> str:
    if not secrets.query:
        return url
    query = urlencode({key: value.get_secret_value() for key, value in secrets.query.items()})
    return f"{url}{'&' if '?' in url else '?'}{query}"


def _headers(table: McpTable, secrets: Secrets, where: str, environ: Mapping[str, str]) -> dict[str, str]:
    found: dict[str, str] = {}
    for name, value in table.headers.items():
        if isinstance(value, Variable):
            value = _secret(value, where, f"headers.{name}", environ)
        found[name] = value
    found |= {name: value.get_secret_value() for name, value in secrets.headers.items()}
    bearer = _secret(table.bearer, where, "bearer", environ) if table.bearer else ""
    if bearer := bearer or (secrets.bearer.get_secret_value() if secrets.bearer else ""):
        found["Authorization"] = f"Bearer {bearer}"
    if odd := [name for name, value in found.items() if not (value.isascii() and value.isprintable())]:
        raise ConfigError(
            f"{where}: the value of {odd[0]} has characters that no header may have: correct it"
        )
    return found


def _secret(variable: Variable, where: str, key: str, environ: Mapping[str, str]) -> str:
    value = _variable(variable.env, where, key, environ)
    register_secret(value)
    return value


def _variable(name: str, where: str, key: str, environ: Mapping[str, str]) -> str:
    if not (value := environ.get(name, "")):
        raise ConfigError(f"{where}: the environment has no {name}, named by {key}; set it before the start")
    return value


def passed(one: Access) -> dict[str, Any]:
    """The server as an agent of the Agent Client Protocol is told of it, with its secrets."""
    if one.url:
        return {"type": "http", "name": one.name, "url": one.url, "headers": _pairs(one.headers)}
    program = shutil.which(one.command[0], path=one.env.get("PATH")) or one.command[0]
    return {"name": one.name, "command": program, "args": [*one.command[1:]], "env": _pairs(one.env)}


def _pairs(values: Mapping[str, str]) -> list[dict[str, str]]:
    return [{"name": name, "value": value} for name, value in values.items()]
