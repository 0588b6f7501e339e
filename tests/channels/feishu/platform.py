"""The adapter against the fake platform."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

from pydantic import SecretStr

from bridge.channel import FileKind, Http, OutboundFile, OutboundPart, Place
from bridge.channel.http import http_session
from bridge.channel.testing.fakes.feishu import FakeFeishu
from channels.feishu import SPEC, Feishu, FeishuCredentials, FeishuSettings
from channels.feishu.api import Api

UUID = "0123456789abcdef0123456789abcdef"


@asynccontextmanager
async def adapter(fake: FakeFeishu, **settings: Any) -> AsyncIterator[Feishu]:
    async with http_session() as session:
        yield at(fake, Http(session), **settings)


def at(fake: FakeFeishu, http: Http, **settings: Any) -> Feishu:
    credentials = FeishuCredentials.model_validate(
        {"app_secret": fake.app_secret, "verification_token": fake.token, "encrypt_key": fake.encrypt_key}
    )
    values = FeishuSettings.model_validate({"app_id": fake.app_id, "base": fake.base} | settings)
    found = SPEC.create(values, credentials, http, Place("feishu:test"))
    assert isinstance(found, Feishu)
    return found


def api_of(fake: FakeFeishu, http: Http) -> Api:
    return Api(http.at(fake.base), fake.app_id, SecretStr(fake.app_secret), http.clock.monotonic)


def part(text: str = "hello", **fields: Any) -> OutboundPart:
    values: dict[str, Any] = {"to": "ou_fake_owner", "reply_to": "", "client_id": UUID, "text": text}
    return OutboundPart(**(values | fields))


def outfile(path: Any, **fields: Any) -> OutboundFile:
    values: dict[str, Any] = {
        "to": "ou_fake_owner",
        "reply_to": "",
        "client_id": UUID,
        "path": path,
        "name": path.name,
        "mime": "application/octet-stream",
        "kind": FileKind.FILE,
        "size": path.stat().st_size,
    }
    return OutboundFile(**(values | fields))
