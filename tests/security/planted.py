"""Leaks on purpose: mistakes that somebody could make, and that the scan of a whole run must find."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from bridge import accounts, logs
from bridge.channel import Answer
from bridge.errors import ConfigError
from bridge.paths import read_private
from bridge.relay import payload
from bridge.relay.intake import Policy
from bridge.web.listener import Listener
from channels.feishu import codes
from tests.security.whole_run import FILE_SIGNATURE

Plant = Callable[[pytest.MonkeyPatch], None]


def ids_in_a_log(patch: pytest.MonkeyPatch) -> None:
    """Whoever is not answered is named."""
    answers = Policy.answers

    def telling(self: Policy, sender: str) -> bool:
        logs.get_logger("planted").info("intake.asked", who=sender)
        return answers(self, sender)

    patch.setattr(Policy, "answers", telling)


def foreign_errors_in_a_log(patch: pytest.MonkeyPatch) -> None:
    """An exception's own words are told."""
    patch.setattr(logs, "describe", repr)


def secrets_in_a_log(patch: pytest.MonkeyPatch) -> None:
    """Nothing is cleaned: what a platform says of a secret is told as it is."""
    patch.setattr(logs, "_without_secrets", str)
    patch.setattr(logs, "describe", repr)


def the_platform_s_words(patch: pytest.MonkeyPatch) -> None:
    """A refusal is given as the platform worded it."""
    patch.setattr(codes, "reason", lambda code, message: message)


def a_token_in_the_store(patch: pytest.MonkeyPatch) -> None:
    """What is stored of a message holds the address of its file, with the signature."""
    encode = payload.encode

    def whole(message: Any) -> str:
        return json.dumps({**json.loads(encode(message)), "address": f"https://x/?s={FILE_SIGNATURE}"})

    patch.setattr(payload, "encode", whole)


def senders_in_paths(patch: pytest.MonkeyPatch) -> None:
    """A folder is named after who writes."""
    patch.setattr(payload, "digest_of", lambda key: key.split("\0")[2])


def echoes_over_http(patch: pytest.MonkeyPatch) -> None:
    """What is not found is named, query and all."""
    find = Listener._find

    async def echo(self: Listener, request: Any) -> Any:
        answer = await find(self, request)
        is_missing = isinstance(answer, Answer) and answer.status == 404
        return Answer(404, str(request.rel_url).encode()) if is_missing else answer

    patch.setattr(Listener, "_find", echo)


def contents_in_a_status(patch: pytest.MonkeyPatch) -> None:
    """A file that cannot be read is quoted."""
    saved = accounts.saved_secrets

    def quoting(path: Path) -> dict[str, Any]:
        try:
            return saved(path)
        except ConfigError as error:
            raise ConfigError(f"{error}: {read_private(path)!r}") from None

    patch.setattr(accounts, "saved_secrets", quoting)


ID, TEXT, SECRET, TOKEN = (
    "a stranger's id, or a chat's", "what somebody wrote", "a credential", "a token that was fetched",
)  # fmt: skip
PLANTED: list[tuple[Plant, str]] = [
    (ids_in_a_log, f"{ID} is in log"),
    (foreign_errors_in_a_log, f"{TEXT} is in log"),
    (secrets_in_a_log, f"{SECRET} is in log"),
    (the_platform_s_words, f"{TEXT} is in log"),
    (a_token_in_the_store, f"{TOKEN} is in state/turnbridge.db"),
    (senders_in_paths, f"{ID} is in names of files"),
    (echoes_over_http, f"{SECRET} is in HTTP answers"),
    (contents_in_a_status, f"{SECRET} is in status"),
]
