"""The kit by which the contract suite tests the Feishu channel."""

import json
from dataclasses import replace
from importlib.metadata import entry_points
from typing import Any, Self

from multidict import CIMultiDict, CIMultiDictProxy

from bridge.channel.contract import FileKind, RemoteFile, Request
from bridge.channel.spec import ChannelSpec
from bridge.channel.testing.fakes.feishu import (
    OWNER,
    FakeFeishu,
    FakeFile,
    Fault,
    Note,
    Refusal,
    Sent,
    throttled,
)
from bridge.channel.testing.fakes.feishu.events import envelope, pressed, received, write
from bridge.channel.testing.fakes.feishu.seal import seal, sign
from bridge.channel.testing.fakes.feishu.world import BOT
from bridge.channel.testing.kit import KitFile, KitMessage, KitSent, Trouble

_FAULTS: dict[Trouble, Fault | Refusal] = {
    Trouble.REFUSE: Refusal(230022, text="The message contains sensitive words."),
    Trouble.THROTTLE: throttled(7),
    Trouble.BREAK_BEFORE: Fault.BROKEN,
    Trouble.DROP_AFTER: Fault.DROP_AFTER,
    Trouble.CREDENTIALS: Refusal(99991673, text="The app is not installed."),
    Trouble.GARBAGE: Fault.GARBAGE,
}
_KINDS = {"image": FileKind.IMAGE, "audio": FileKind.AUDIO, "video": FileKind.VIDEO}


class FeishuKit:
    """Kit, PushedKit, ButtonsKit, FilesKit and TypingKit in one."""

    def __init__(self) -> None:
        self.fake = FakeFeishu()

    async def __aenter__(self) -> Self:
        await self.fake.__aenter__()
        return self

    async def __aexit__(self, *exc: object) -> None:
        await self.fake.__aexit__(*exc)

    @property
    def spec(self) -> ChannelSpec:
        """The registered one, since nothing here may import an adapter."""
        spec = entry_points(group="turnbridge.channels")["feishu"].load()
        assert isinstance(spec, ChannelSpec)
        return spec

    @property
    def settings(self) -> dict[str, Any]:
        return {"app_id": self.fake.app_id, "base": self.fake.base, "owner": OWNER, "typing": True}

    @property
    def credentials(self) -> dict[str, Any]:
        return {
            "app_secret": self.fake.app_secret,
            "verification_token": self.fake.token,
            "encrypt_key": self.fake.encrypt_key,
        }

    def person(self, n: int) -> str:
        return f"ou_fake_person_{n}" if n else OWNER

    def chat(self, n: int, group: bool = False) -> str:
        return f"oc_fake_group_{n}" if group else self.fake.world.direct(self.person(n)).chat_id

    def sent(self) -> list[KitSent]:
        return [self._shown(each) for each in self.fake.sent]

    def trouble(self, *troubles: Trouble) -> None:
        self.fake.next(*(_FAULTS[each] for each in troubles))

    def supports(self, trouble: Trouble) -> bool:
        return trouble in _FAULTS

    def push(self, message: KitMessage) -> Request:
        return self._request(self._event(message))

    def forged(self, message: KitMessage) -> list[Request]:
        right = self._event(message)
        request = self._request(right)
        body = json.dumps(right).encode()
        unsigned = replace(request, headers=CIMultiDictProxy(CIMultiDict()))
        header = right["header"]
        other_key = seal("another key", body)
        return [
            unsigned,
            replace(request, body=request.body + b" "),
            replace(request, body=body),
            replace(request, body=b"{"),
            replace(request, body=b"[" * 10_000),
            replace(request, body=other_key, headers=_headers(sign("another key", other_key, "1", "n"))),
            self._request({**right, "header": {**header, "token": "another token"}}),
            self._request({**right, "header": {**header, "app_id": "cli_another"}}),
            self._sealed(json.dumps({"type": "url_verification", "token": "x", "challenge": "c"}).encode()),
        ]

    def uninteresting(self) -> list[Request]:
        fake = self.fake
        read = envelope("im.message.message_read_v1", {}, "ev_1", fake.app_id, fake.token, 0)
        notes = [
            Note("its own", sender=BOT, sender_type="app"),
            Note("another bot's", sender="ou_fake_other_bot", sender_type="app"),
            Note("not to the bot", group=True, mention=False),
        ]
        return [self._request(each) for each in (read, *(self._received(note) for note in notes))]

    def typing(self) -> int:
        return sum(len(each.reactions) for each in self.fake.world.messages.values())

    def buttons(self) -> list[str]:
        return [each.label for each in self.fake.sent[-1].buttons]

    def press(self, label: str, sender: str) -> Request:
        fake, sent = self.fake, self.fake.sent[-1]
        value = next(each.value for each in sent.buttons if each.label == label)
        card, world = fake.world.messages[sent.message_id], fake.world
        return self._request(
            pressed(value, card, sender, world.new_id("ev"), fake.app_id, fake.token, world.now_ms())
        )

    def remote(self, file: KitFile) -> RemoteFile:
        message = write(self.fake.world, Note(files=(FakeFile(file.name, file.mime, file.data),)))
        content = json.loads(message.content)
        kind = "image" if "image_key" in content and "file_key" not in content else "file"
        key = json.dumps([message.message_id, content.get("file_key") or content["image_key"], kind])
        return RemoteFile(key, _KINDS.get(file.mime.partition("/")[0], FileKind.FILE), file.name)

    def _event(self, message: KitMessage) -> dict[str, Any]:
        return self._received(
            Note(
                text=message.text,
                sender=message.sender or OWNER,
                chat=message.chat,
                group=message.group,
                mention=message.mentions_bot,
                files=tuple(FakeFile(each.name, each.mime, each.data) for each in message.files),
                message_id=message.message_id,
            )
        )

    def _received(self, note: Note) -> dict[str, Any]:
        message = write(self.fake.world, note)
        return received(message, self.fake.world.new_id("ev"), self.fake.app_id, self.fake.token)

    def _request(self, event: dict[str, Any]) -> Request:
        headers, body = self.fake.pusher.request(event)
        return Request("POST", "", {}, _headers(headers), body, self.fake.world.clock.now())

    def _sealed(self, plain: bytes) -> Request:
        body = seal(self.fake.encrypt_key, plain)
        return Request("POST", "", {}, _headers({}), body, self.fake.world.clock.now())

    def _shown(self, sent: Sent) -> KitSent:
        file = KitFile(sent.file.name, sent.file.mime, sent.file.data) if sent.file else None
        kind = "group" if self.fake.world.chats[sent.chat_id].group else "p2p"
        return KitSent(sent.uuid, sent.text, file, sent.reply_to, f"{kind}:{sent.chat_id}")


def _headers(headers: dict[str, str]) -> "CIMultiDictProxy[str]":
    return CIMultiDictProxy(CIMultiDict(headers))


KIT = FeishuKit
