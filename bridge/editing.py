"""Edits one account's table in the settings file; every other byte stays.

One editor at a time, under ``<home>/state/config.lock``; the file is replaced whole, and durably. Blocking:
the daemon calls it in a thread.
"""

from __future__ import annotations

import fcntl
import os
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from time import monotonic, sleep
from typing import Any

from bridge.errors import ConfigError
from bridge.paths import Home, plain_name, write_private
from bridge.tables import read
from bridge.toml_text import UneditableError, with_values, without_table

LOCK_SECONDS = 5.0
POLL_SECONDS = 0.01


def set_keys(
    path: Path, channel: str, account: str, keys: Mapping[str, Any], fresh: Callable[[], str] = str
) -> None:
    """Set ``keys`` of ``[channels.<channel>.<account>]`` in the settings file ``path``; None removes a key.

    A key may lead further down (``media.keep_days``). A table that is not there is made, the file too, which
    begins with what ``fresh`` gives then.

    Raises:
        ConfigError: a name is no plain name, the file cannot be read or written, its table is written in a
            way that needs a person, or somebody else edits it. Nothing has changed then.
    """
    table = ("channels", plain_name(channel), plain_name(account))
    _edit(path, lambda text: with_values(text, table, keys), table, fresh)


def remove_account(path: Path, channel: str, account: str) -> None:
    """Remove the account's table, and those above it that hold nothing else; raises as ``set_keys``.

    One that is not there is removed already.
    """
    table = ("channels", plain_name(channel), plain_name(account))
    _edit(path, lambda text: without_table(text, table), table)


def _edit(
    path: Path, edited: Callable[[str], str], table: tuple[str, ...], fresh: Callable[[], str] = str
) -> None:
    target = Path(os.path.realpath(path))  # a symbolic link is written through
    with _locked(Home(path.parent)):
        text = read(path)[0] if os.path.lexists(target) else fresh()
        try:
            new = edited(text)
        except UneditableError:
            raise ConfigError(
                f"{path}: {'.'.join(table)} is written in a way that cannot be edited safely: "
                f"make it a table [{'.'.join(table)}] of its own, or edit it yourself"
            ) from None
        if new != text:
            write_private(target, new.encode())


@contextmanager
def _locked(home: Home) -> Iterator[None]:
    home.private_dir(home.state)
    path = home.state / "config.lock"
    try:
        lock = os.open(path, os.O_RDWR | os.O_CREAT | os.O_NOFOLLOW | os.O_CLOEXEC, 0o600)
    except OSError as error:
        raise ConfigError(f"cannot open {path}: {error.strerror}: remove it") from error
    try:
        _take(lock, path)
        yield
    finally:
        os.close(lock)  # and with it goes the lock: the file stays


def _take(lock: int, path: Path) -> None:
    give_up = monotonic() + LOCK_SECONDS
    while True:
        try:
            return fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            if monotonic() >= give_up:
                raise ConfigError(
                    f"somebody else edits the settings right now ({path}): try it again"
                ) from None
        sleep(POLL_SECONDS)
