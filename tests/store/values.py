"""Short ways to the values that the tests of the store are about."""

from __future__ import annotations

from bridge.ids import AccountId, ConversationKey, MessageId, PartId, SessionId, TurnId
from bridge.store.contract import (
    Answer,
    Claim,
    ClaimVerdict,
    CountsOf,
    HeldTexts,
    MessageState,
    NewMessage,
    NewPart,
    OpenMessages,
    OpenParts,
    OutboxPart,
    PartKind,
    Post,
    Reply,
    Store,
)

ACCOUNT = AccountId("feishu:work")
OTHER = AccountId("webhook:site")
CHAT = ConversationKey("chat")
SESSION = SessionId("session")
TURN = TurnId("turn")
NEW, DUPLICATE, CONFLICT = ClaimVerdict.NEW, ClaimVerdict.DUPLICATE, ClaimVerdict.CONFLICT


def message(
    message_id: str = "m",
    state: MessageState = MessageState.CLAIMED,
    *,
    redelivery: str = "",
    digest: str = "",
    reply: Reply | None = None,
    payload: str = "{}",
) -> NewMessage:
    return NewMessage(MessageId(message_id), state, "", redelivery, digest, CHAT, payload, reply)


def claim(*messages: NewMessage, account: AccountId = ACCOUNT, checkpoint: str | None = None) -> Claim:
    return Claim(account, messages or (message(),), 1000, checkpoint)


def text(body: str = "hello") -> NewPart:
    return NewPart(PartKind.TEXT, body, f"id of {body}")


def file(body: str = '{"path": "/outbox/a"}') -> NewPart:
    return NewPart(PartKind.FILE, body, f"id of {body}")


def reply(
    *parts: NewPart,
    reply_id: str = "r",
    chat: ConversationKey = CHAT,
    transient: bool = False,
    carried: tuple[int, ...] = (),
    own_text: str = "",
    to: str = "to",
) -> Reply:
    return Reply(reply_id, chat, to, "handle", parts or (text(),), transient, carried, own_text)


def answer(message_id: str = "m", answered: Reply | None = None, now_ms: int = 2000) -> Answer:
    return Answer(ACCOUNT, MessageId(message_id), answered, now_ms)


async def post(store: Store, posted: Reply, account: AccountId = ACCOUNT) -> tuple[PartId, ...]:
    return await store.do(Post(account, posted, 2000))


async def open_ids(store: Store, account: AccountId = ACCOUNT) -> list[str]:
    return [one.message_id for one in await store.get(OpenMessages(account))]


async def open_parts(store: Store, account: AccountId = ACCOUNT) -> tuple[OutboxPart, ...]:
    return await store.get(OpenParts(account))


async def held(store: Store, chat: ConversationKey = CHAT) -> list[str]:
    return [one.text for one in await store.get(HeldTexts(ACCOUNT, chat))]


async def dead(store: Store) -> int:
    return (await store.get(CountsOf(ACCOUNT))).dead
