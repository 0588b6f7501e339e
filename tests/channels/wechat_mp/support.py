"""What these tests share: requests as the platform makes them, and adapters before the fake platform."""

from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from typing import Any

from multidict import CIMultiDict, CIMultiDictProxy

from bridge.channel import Answer, FileKind, Http, Item, OutboundFile, OutboundPart, Place, Reading, Request
from bridge.channel.http import http_session
from bridge.channel.testing.clock import START
from bridge.channel.testing.fakes.wechat_mp import ACCOUNT, APP_ID, OWNER, FakeWechatMp, Secrets, new_key
from bridge.channel.testing.fakes.wechat_mp.messages import Fields, write
from bridge.channel.testing.fakes.wechat_mp.seal import seal, sign
from bridge.clock import Clock
from channels.wechat_mp import SPEC, OfficialAccount, WechatMpCredentials, WechatMpSettings
from channels.wechat_mp.crypto import Seal, aes_key
from channels.wechat_mp.requests import Proof, read_request

TOKEN, KEY = "sharedToken1", new_key()
PLAIN = Proof(ACCOUNT, TOKEN, None, 300.0)
SECURE = Proof(ACCOUNT, TOKEN, Seal(APP_ID, [aes_key(KEY)]), 300.0)
PLACE = Place("wechat_mp:test", "https://bridge.example/channels/wechat_mp/test")
STAMP = str(int(START.timestamp()))


def request(body: bytes = b"", query: Mapping[str, str] | None = None, **changes: Any) -> Request:
    headers = CIMultiDictProxy(CIMultiDict[str]())
    fields: dict[str, Any] = {
        "method": "POST", "path": "", "query": query or {}, "headers": headers, "body": body,
        "received_at": START,
    }  # fmt: skip
    return Request(**(fields | changes))


def signed(stamp: str = STAMP, nonce: str = "nonce1", token: str = TOKEN) -> dict[str, str]:
    """The query of a plaintext push."""
    return {"signature": sign(token, stamp, nonce), "timestamp": stamp, "nonce": nonce, "openid": OWNER}


def sealed(message: bytes, key: str = KEY, app_id: str = APP_ID, **changes: str) -> Request:
    """A push in secure mode."""
    text = seal(key, app_id, message)
    query = {**signed(), "encrypt_type": "aes", "msg_signature": sign(TOKEN, STAMP, "nonce1", text)}
    return request(write("xml", {"ToUserName": ACCOUNT, "Encrypt": text}), query | changes)


def message(**changes: Any) -> Fields:
    head: Fields = {"ToUserName": ACCOUNT, "FromUserName": OWNER, "CreateTime": int(STAMP)}
    return head | {"MsgType": "text", "Content": "hello", "MsgId": 12345} | changes


def read(fields: Fields, form: str = "xml", proof: Proof = PLAIN) -> Reading | Answer:
    return read_request(request(write(form, fields), signed()), proof)


def item(fields: Fields, form: str = "xml") -> Item:
    reading = read(fields, form)
    assert isinstance(reading, Reading), reading
    (found,) = reading.items
    return found


def settings(fake: FakeWechatMp, **changes: Any) -> WechatMpSettings:
    values = {"app_id": fake.account.app_id, "original_id": ACCOUNT, "base": fake.base}
    return WechatMpSettings.model_validate(values | {"mode": fake.account.mode} | changes)


def credentials(fake: FakeWechatMp) -> WechatMpCredentials:
    account = fake.account
    return WechatMpCredentials.model_validate(
        {
            "app_secret": fake.app_secret,
            "token": account.token,
            "encoding_aes_key": account.encoding_aes_key,
        }
    )


def at(fake: FakeWechatMp, http: Http, place: Place = PLACE, **changes: Any) -> OfficialAccount:
    found = SPEC.create(settings(fake, **changes), credentials(fake), http, place)
    assert isinstance(found, OfficialAccount)
    return found


@asynccontextmanager
async def client(clock: Clock | None = None) -> AsyncIterator[Http]:
    async with http_session() as session:
        yield Http(session, clock=clock)


def secrets(mode: str = "secure", form: str = "xml") -> Secrets:
    return Secrets(APP_ID, TOKEN, KEY, mode, form)


def part(text: str = "hello", **fields: Any) -> OutboundPart:
    values: dict[str, Any] = {"to": OWNER, "reply_to": "", "client_id": "0" * 32, "text": text}
    return OutboundPart(**(values | fields))


def outfile(path: Any, **fields: Any) -> OutboundFile:
    values: dict[str, Any] = {
        "to": OWNER, "reply_to": "", "client_id": "0" * 32, "path": path, "name": path.name,
        "mime": "application/octet-stream", "kind": FileKind.FILE,
        "size": path.stat().st_size if path.exists() else 1,
    }  # fmt: skip
    return OutboundFile(**(values | fields))
