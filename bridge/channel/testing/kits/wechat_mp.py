"""The kits by which the contract suite tests WeChat's Official Accounts, with customer service or without."""

from dataclasses import replace
from importlib.metadata import entry_points
from typing import Any, Self

import pytest
from multidict import CIMultiDict, CIMultiDictProxy

from bridge.channel.contract import Answer, FileKind, RemoteFile, Request
from bridge.channel.spec import ChannelSpec
from bridge.channel.testing.fakes.wechat_mp import (
    ACCOUNT,
    OWNER,
    FakeFile,
    FakeWechatMp,
    Fault,
    Note,
    Refusal,
    Secrets,
    Shown,
    new_key,
)
from bridge.channel.testing.fakes.wechat_mp.messages import Fields, xml
from bridge.channel.testing.fakes.wechat_mp.push import Pusher
from bridge.channel.testing.fakes.wechat_mp.replies import MalformedError, read_reply
from bridge.channel.testing.kit import KitFile, KitMessage, KitSent, Trouble

_FAULTS: dict[Trouble, Fault | Refusal] = {
    Trouble.REFUSE: Refusal(45015, "response out of time limit"),
    Trouble.THROTTLE: Refusal(45011, "api minute-quota reach limit, must slower"),
    Trouble.BREAK_BEFORE: Fault.BROKEN,
    Trouble.DROP_AFTER: Fault.DROP_AFTER,
    Trouble.CREDENTIALS: Refusal(40013, "invalid appid"),
    Trouble.GARBAGE: Fault.GARBAGE,
}
_PLENTY = 100_000  # messages that may follow what a person wrote: the checks send many
_LAUGHS = b'<!DOCTYPE x [<!ENTITY a "ha"><!ENTITY b "&a;&a;&a;">]><xml><Content>&b;</Content></xml>'


class WechatMpKit:
    """Kit, PushedKit, RespondsKit, FilesKit and TypingKit in one: with customer service, in secure mode."""

    customer_service = True

    def __init__(self) -> None:
        self.fake = FakeWechatMp()
        self.fake.interface.service = self.customer_service
        self.fake.world.after_writing = (_PLENTY, 86_400.0)

    async def __aenter__(self) -> Self:
        await self.fake.__aenter__()
        return self

    async def __aexit__(self, *exc: object) -> None:
        await self.fake.__aexit__(*exc)

    @property
    def spec(self) -> ChannelSpec:
        """The registered one, since nothing here may import an adapter."""
        spec = entry_points(group="turnbridge.channels")["wechat_mp"].load()
        assert isinstance(spec, ChannelSpec)
        return spec

    @property
    def settings(self) -> dict[str, Any]:
        return {
            "app_id": self.fake.account.app_id,
            "original_id": ACCOUNT,
            "mode": self.fake.account.mode,
            "customer_service": self.customer_service,
            "base": self.fake.base or "http://127.0.0.1:1",
            "owner": OWNER,
        }

    @property
    def credentials(self) -> dict[str, Any]:
        account = self.fake.account
        return {
            "app_secret": self.fake.app_secret,
            "token": account.token,
            "encoding_aes_key": account.encoding_aes_key,
        }

    def person(self, n: int) -> str:
        return f"oFakePerson{n:018d}" if n else OWNER

    def chat(self, n: int, group: bool = False) -> str:
        if group:
            pytest.skip("Official Accounts are in no groups")
        return self.person(n)

    def sent(self) -> list[KitSent]:
        """What the bot sent; the platform knows no client ids."""
        return [_shown(each) for each in self.fake.sent]

    def trouble(self, *troubles: Trouble) -> None:
        self.fake.next(*(_FAULTS[each] for each in troubles))

    def supports(self, trouble: Trouble) -> bool:
        return trouble in _FAULTS

    def push(self, message: KitMessage) -> Request:
        return self._request(self._written(message))

    def forged(self, message: KitMessage) -> list[Request]:
        account, fields = self.fake.account, self._written(message)
        right = self._request(fields)
        query = dict(right.query)
        unsealed = {name: query[name] for name in ("signature", "timestamp", "nonce", "openid")}
        return [
            replace(right, query={}),
            replace(right, query=unsealed),
            replace(right, query=unsealed, body=xml(fields)),
            replace(right, query={**query, "encrypt_type": "raw"}),
            replace(right, query={**query, "msg_signature": query["signature"]}),
            replace(right, query={**query, "nonce": "1"}),
            replace(right, query={**query, "timestamp": "1"}),
            replace(right, query={**query, "timestamp": "x" * 5000}),
            replace(right, body=right.body.replace(b"<Encrypt><![CDATA[", b"<Encrypt><![CDATA[AAAA")),
            *(replace(right, body=body) for body in (b"", b"{", b"<a>" * 10_000, b"[" * 10_000, _LAUGHS)),
            self._request(fields, replace(account, encoding_aes_key=new_key())),
            self._request(fields, replace(account, token="anotherToken")),
            self._request(fields, replace(account, app_id="wxanother")),
            self._request({**fields, "ToUserName": "gh_another"}),
            replace(right, method="GET", body=b"", query={**unsealed, "signature": "0" * 40, "echostr": "1"}),
        ]

    def uninteresting(self) -> list[Request]:
        events = ("subscribe", "unsubscribe", "VIEW", "SCAN", "LOCATION", "TEMPLATESENDJOBFINISH", "")
        own = {**self._written(KitMessage("its own")), "FromUserName": ACCOUNT}
        notes = [Note(fields={"MsgType": "event", "Event": event, "EventKey": "k"}) for event in events]
        return [self._request(own), *(self._request(self.fake.event_or_message(note)) for note in notes)]

    def shown_of(self, request: Request, answer: Answer) -> list[KitSent]:
        assert answer.status == 200, f"status {answer.status} is no answer"
        try:
            shown = read_reply(answer.body, request.query["openid"], "", self.fake.account, self.fake.world)
        except MalformedError as error:
            raise AssertionError(f"the chat shows that the account is out of order: {error}") from error
        return [] if shown is None else [_shown(shown)]

    def typing(self) -> int:
        return list(dict(self.fake.world.typing).values()).count("Typing")

    def remote(self, file: KitFile) -> RemoteFile:
        """What a follower sent is a picture, whatever is in it."""
        media = self.fake.world.add_media("image", file.name, file.mime, file.data)
        return RemoteFile(f'["{media.media_id}", "", ""]', FileKind.IMAGE)

    def _written(self, message: KitMessage) -> Fields:
        files = [FakeFile(each.name, "image/png", each.data) for each in message.files]
        note = Note(
            message.text, message.sender or OWNER, files[0] if files else None, message_id=message.message_id
        )
        return self.fake.event_or_message(note)

    def _request(self, fields: Fields, account: Secrets | None = None) -> Request:
        pusher = self.fake.pusher
        if account is not None:
            pusher = Pusher(account, "", self.fake.world, self.fake.changed)
        query, body = pusher.request(fields)
        headers = CIMultiDictProxy(CIMultiDict({"Content-Type": "text/xml"}))
        return Request("POST", "", query, headers, body, self.fake.world.clock.now())


class WechatMpAnswersKit(WechatMpKit):
    """For an account that may only answer; its files cannot be fetched by their ids either."""

    customer_service = False

    def supports(self, trouble: Trouble) -> bool:
        return False

    def remote(self, file: KitFile) -> RemoteFile:
        media = self.fake.world.add_media("image", file.name, file.mime, file.data)
        key = f'["{media.media_id}", "", "{self.fake.base}/picture/{media.media_id}"]'
        return RemoteFile(key, FileKind.IMAGE)


def _shown(shown: Shown) -> KitSent:
    file = KitFile(shown.media.name, shown.media.mime, shown.media.data) if shown.media else None
    return KitSent("", shown.text, file, to=shown.to)


KIT = WechatMpKit
KIT_WITHOUT_SERVICE = WechatMpAnswersKit
