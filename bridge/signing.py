"""Signing an account in: what it needs, whether that is right, whose bot it is, and its saving.

Done beside the daemon, which takes up what was saved. Secrets are never shown and never arguments.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from bridge import registry
from bridge.accounts import (
    check_ids,
    check_workspace,
    from_environment,
    noted,
    saved_secrets,
)
from bridge.channel import ChannelError, ChannelSpec, Http, Identity, Place, Probes, Pushed, Scan, SignedIn
from bridge.channel.http import http_session
from bridge.channel.spec import ChannelCredentials, ChannelSettings
from bridge.clock import SystemClock
from bridge.config import Config, load
from bridge.credentials import save, save_texts
from bridge.editing import set_keys
from bridge.errors import ConfigError
from bridge.ids import AccountId
from bridge.logs import register_secret
from bridge.paths import Home
from bridge.relay.setup import fingerprint_of
from bridge.setting_words import read_value, with_keys
from bridge.store.binding import bound_to
from bridge.tables import TableError, validate

CHECK_SECONDS = 30.0


@dataclass(frozen=True, slots=True)
class Wanted:
    """A value that an account is made of; ``hint`` says what it is, or where it is found.

    ``is_there``: one is saved already, and stays unless it is given anew.
    """

    key: str
    hint: str
    is_secret: bool
    is_required: bool
    is_there: bool = False


@dataclass(frozen=True, slots=True)
class Draft:
    """An account as its files have it. ``environ`` are secrets that its table takes from the environment.

    ``damage`` says why nothing of the file of secrets can be used; "": it can, or there is none. ``fresh``
    gives what settings that are not there yet begin with, when the account is saved.
    """

    home: Home
    config: Config
    spec: ChannelSpec
    account: str
    table: Mapping[str, Any]
    saved: Mapping[str, Any] = field(repr=False)
    environ: Mapping[str, Any] = field(repr=False)
    damage: str = ""
    fresh: Callable[[], str] = str

    @property
    def id(self) -> AccountId:
        return AccountId(f"{self.spec.name}:{self.account}")

    @property
    def is_on(self) -> bool:
        return self.table.get("enabled", True) is not False

    def wanted(self) -> list[Wanted]:
        """What a person is asked for: required settings that are not there, and all secrets."""
        settings = [
            Wanted(name, one.description or "", is_secret=False, is_required=True)
            for name, one in self.spec.settings.model_fields.items()
            if one.is_required() and name not in self.table
        ]
        return settings + [
            Wanted(name, one.description or "", True, one.is_required(), is_there=name in self.saved)
            for name, one in self.spec.credentials.model_fields.items()
            if name not in self.environ
        ]


@dataclass(frozen=True, slots=True)
class Signed:
    """An account that could be saved. ``keys`` are what is written into its table."""

    draft: Draft
    settings: ChannelSettings
    credentials: ChannelCredentials
    keys: Mapping[str, Any]


def draft_of(
    home: Home, channel: str, account: str, environ: Mapping[str, str], fresh: Callable[[], str] = str
) -> Draft:
    """What there is of the account.

    Raises:
        ConfigError: there is no such channel, or the settings cannot be read.
    """
    spec = registry.channels().load(channel)
    config = _config(home)
    table = dict(config.channels.get(channel, {}).get(account, {}))
    path = home.credentials(channel, account)
    where = f"{home.config}: channels.{channel}.{account}.credentials"
    given = from_environment(table.pop("credentials", {}), where, path, environ)
    saved, damage = _saved(path)
    return Draft(home, config, spec, account, table, saved, given, damage, fresh)


def _config(home: Home) -> Config:
    return load(home.config) if home.config.exists() else Config()


def _saved(path: Path) -> tuple[dict[str, Any], str]:
    """The secrets of the file, or why there are none that can be used: it is replaced then."""
    if not path.is_symlink() and not path.exists():
        return {}, ""
    try:
        return saved_secrets(path), ""
    except ConfigError as error:
        return {}, str(error)


def with_given(draft: Draft, given: Mapping[str, str]) -> Signed:
    """The account with the settings and secrets ``given``, each by its key.

    Raises:
        ConfigError: a key is none of the channel's, or the account would be wrong; all mistakes at once.
    """
    spec, home = draft.spec, draft.home
    secrets = {key: text for key, text in given.items() if key in spec.credentials.model_fields}
    for text in secrets.values():
        register_secret(text)
    words = {key: text for key, text in given.items() if key not in secrets}
    keys = {key: read_value(spec.settings, key, text) for key, text in words.items()}
    where, table = f"channels.{spec.name}.{draft.account}", with_keys(draft.table, keys)
    merged = {**draft.saved, **secrets, **draft.environ}
    filled = {key: value for key, value in merged.items() if value != ""}
    path = home.credentials(spec.name, draft.account)
    lines: list[str] = []
    settings = noted(lines, lambda: validate(spec.settings, table, home.config, where))
    credentials = noted(lines, lambda: validate(spec.credentials, filled, path, strict=False))
    if settings is None or credentials is None:
        raise TableError(lines)
    check_ids(settings, f"{home.config}: {where}")
    check_workspace(settings.workspace, f"{home.config}: {where}.workspace")
    return Signed(draft, settings, credentials, keys)


def refuse_another_bot(signed: Signed) -> None:
    """What is stored, secrets and messages, belongs to one bot; a renewed secret of it changes nothing.

    Raises:
        ConfigError: it belongs to another one than ``signed``.
    """
    draft = signed.draft
    _refuse_but(draft, fingerprint_of(draft.spec, signed.settings, signed.credentials))


def _refuse_but(draft: Draft, fingerprint: str) -> None:
    known = {_saved_fingerprint(draft), bound_to(draft.home.db, draft.id)} - {""}
    if known - {fingerprint}:
        raise ConfigError(
            f"{draft.id} is another bot's: log it out first, which removes what is stored of it, or choose "
            "another account name"
        )


def _saved_fingerprint(draft: Draft) -> str:
    """Of the account as it stands; "" where it is not whole."""
    if not draft.saved and not draft.environ:
        return ""
    try:
        before = with_given(draft, {})
    except ConfigError:
        return ""
    return fingerprint_of(draft.spec, before.settings, before.credentials)


async def scanned(draft: Draft, show: Callable[[Scan], None], given: Mapping[str, str]) -> dict[str, str]:
    """What a sign-in by a scan gives, by its keys; ``show`` is called with each code.

    It is saved at once, for the platform gives it only now; what is missing beside it can be added later.

    Raises:
        ConfigError: the channel has no such way, the account is somebody's already, or it cannot be saved.
        ChannelError: nothing came of it.
    """
    if draft.spec.sign_in is None:
        raise ConfigError(f"{draft.spec.name} cannot be signed in by a scan: give its secrets")
    _refuse_but(draft, "")  # a scan makes a new bot
    async with http_session() as session:
        settings = {**draft.table, **given}
        async for step in draft.spec.sign_in(settings, Http(session, clock=SystemClock())):
            if not isinstance(step, Scan):
                _keep(draft, step)
                return {**step.settings, **step.credentials}
            show(step)
    raise ChannelError("the platform ended the sign-in: try again")


def _keep(draft: Draft, found: SignedIn) -> None:
    home, spec = draft.home, draft.spec
    save_texts(home, spec.name, draft.account, found.credentials)
    keys = {key: read_value(spec.settings, key, text) for key, text in found.settings.items()}
    set_keys(home.config, spec.name, draft.account, keys, draft.fresh)


@dataclass(frozen=True, slots=True)
class Proof:
    """What the check found: who the bot is, where the platform can be asked; whether it is pushed to."""

    identity: Identity | None
    is_pushed: bool


async def proven(signed: Signed, *, asks: bool = True) -> Proof:
    """Ask the platform with these secrets who the bot is, unless it cannot be asked or shall not be.

    Raises:
        ConfigError: settings and secrets do not fit together.
        CredentialsError: the platform refuses them.
        ChannelError: it gives no answer.
    """
    spec, place = signed.draft.spec, Place(signed.draft.id, "")
    async with http_session() as session:
        http = Http(session, clock=SystemClock())
        channel = spec.create(signed.settings, signed.credentials, http, place)
        identity = await _asked(channel) if asks and isinstance(channel, Probes) else None
        return Proof(identity, isinstance(channel, Pushed))


async def _asked(channel: Probes) -> Identity:
    try:
        async with asyncio.timeout(CHECK_SECONDS):
            return await channel.probe()
    except TimeoutError:
        raise ChannelError("the platform did not answer in time") from None


def save_signed(signed: Signed) -> None:
    """Save secrets, then settings: an account is there once its table is.

    Raises:
        ConfigError: something cannot be written.
    """
    draft, spec = signed.draft, signed.draft.spec
    if spec.credentials.model_fields:
        save(draft.home, spec.name, draft.account, signed.credentials, elsewhere=draft.environ)
    is_new = draft.account not in draft.config.channels.get(spec.name, {})
    keys = signed.keys if signed.keys or not is_new else {"enabled": True}  # so there is a table
    set_keys(draft.home.config, spec.name, draft.account, keys, draft.fresh)


def route_of(signed: Signed) -> str:
    """Where the platform has to send to, as far as the settings tell."""
    draft, web = signed.draft, _config(signed.draft.home).web
    base = web.public_url.rstrip("/") or f"http://{web.host}:{web.port}"
    return f"{base}/channels/{draft.spec.name}/{draft.account}"
