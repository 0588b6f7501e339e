"""The response to a push as a reply: one message, in the push's own form, sealed as the push was. Pure.

Source: https://developers.weixin.qq.com/doc/offiaccount/Message_Management/Passive_user_reply_message.html
"""

import secrets
from datetime import datetime

from bridge.channel import Answer
from bridge.clock import unix_seconds
from channels.wechat_mp.content import TEXT, VIDEO, Content
from channels.wechat_mp.crypto import RANDOM_BYTES, Seal, signature
from channels.wechat_mp.requests import Proof
from channels.wechat_mp.wire import JSON, Value, write


def respond(content: Content, form: str, to: str, proof: Proof, now: datetime) -> Answer:
    """The response that shows ``content`` to ``to``; ``form`` is that of what it answers."""
    at = unix_seconds(now)
    body = write(form, reply(content, to, proof.account, at))
    if proof.seal is not None:
        body = write(form, _sealed(body, proof.seal, proof.token, at))
    mime = "application/json" if form == JSON else "application/xml"
    return Answer(200, body, mime, keep_file_seconds=content.keep_seconds)


def reply(content: Content, to: str, account: str, at: int) -> dict[str, Value]:
    """The message's fields, named as the platform names them here."""
    head: dict[str, Value] = {
        "ToUserName": to, "FromUserName": account, "CreateTime": at, "MsgType": content.kind,
    }  # fmt: skip
    if content.kind == TEXT:
        return head | {"Content": content.fields["content"]}
    media = {"MediaId": content.fields["media_id"]}
    if content.kind == VIDEO:
        media["Title"] = content.fields["title"]
    return head | {content.kind.capitalize(): media}


def _sealed(body: bytes, seal: Seal, token: str, at: int) -> dict[str, Value]:
    sealed, nonce = seal.close(body, secrets.token_bytes(RANDOM_BYTES)), secrets.token_hex(8)
    signed = signature(token, str(at), nonce, sealed)
    return {"Encrypt": sealed, "MsgSignature": signed, "TimeStamp": at, "Nonce": nonce}
