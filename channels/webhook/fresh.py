"""Secrets for an account whose other side has none to give: this side makes them, and both keep them."""

from base64 import b64encode
from secrets import token_bytes, token_urlsafe


def fresh_secrets() -> dict[str, str]:
    """What signs messages, and what asks for replies: 32 random bytes each."""
    return {"secrets": "whsec_" + b64encode(token_bytes(32)).decode(), "ask_token": token_urlsafe(32)}
