"""Secrets for an account whose other side has none to give: this side makes them, and both keep them."""

from base64 import b64encode
from collections.abc import Mapping
from secrets import token_bytes, token_urlsafe
from typing import Any


def fresh_secrets(table: Mapping[str, Any]) -> dict[str, str]:
    """What signs messages, and what replies are asked for with, or signed by: 32 random bytes each."""
    out = {"callback_secrets": _key()} if table.get("callback_url") else {"ask_token": token_urlsafe(32)}
    return {"secrets": _key(), **out}


def _key() -> str:
    return "whsec_" + b64encode(token_bytes(32)).decode()
