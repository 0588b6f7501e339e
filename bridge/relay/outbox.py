"""An answer as the parts of a reply: cut to what the platform takes, with captions, notes and held texts."""

from __future__ import annotations

import json
import secrets
from collections.abc import Iterable, Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path

from bridge.channel import ChannelSpec, FileKind, Limit, OutboundFile, OutboundPart, Unit
from bridge.channel.text import clean, split_text, truncate
from bridge.clock import from_unix_ms
from bridge.ids import AccountId, ConversationKey, MessageId, PartId
from bridge.relay.texts import Language, Text, language_of, say
from bridge.store.contract import HeldText, NewPart, OutboxPart, PartKind, PartState, Reply

HELD_BYTES = 8192
_SHOWN_AS_IMAGE = frozenset({"image/png", "image/jpeg", "image/gif", "image/webp", "image/bmp"})


@dataclass(frozen=True, slots=True)
class ReplyFile:
    """A private copy in the outbox folder."""

    path: str
    name: str
    mime: str
    size: int
    caption: str = ""


@dataclass(frozen=True, slots=True)
class Address:
    """Where a reply goes and what it answers."""

    conversation: ConversationKey
    to: str
    reply_to: str
    language: Language


@dataclass(frozen=True, slots=True)
class Content:
    """What a turn brought. ``dropped`` files could not be taken along."""

    text: str
    files: tuple[ReplyFile, ...] = ()
    dropped: int = 0


@dataclass(frozen=True, slots=True)
class Caps:
    """``reply_bytes`` of the whole text, ``part_bytes`` of one part, both UTF-8."""

    reply_bytes: int
    part_bytes: int
    files: int = field(default=8)


def compose(
    content: Content, address: Address, spec: ChannelSpec, caps: Caps, held: Sequence[HeldText] = ()
) -> Reply:
    """The reply to store. Held texts ride in front where all fits into one part, else see ``earlier``."""
    own = _whole_text(content, address.language, caps)
    limit = part_limit(spec, caps.part_bytes)
    together = _with_held(own, held, address.language) if held else ""
    if together and len(split_text(together, limit, spec.render)) == 1:
        texts, carried = [spec.render(together)], tuple(one.held_id for one in held)
    else:
        latest = f"{say(Text.LATEST, address.language)}\n{own}" if together else own
        texts, carried = _shown(latest, limit, spec), ()
        if not texts and not content.files:
            texts = [say(Text.EMPTY, address.language)]
    parts = [_part(PartKind.TEXT, text) for text in texts]
    parts += [_part(PartKind.FILE, encode_file(file)) for file in content.files[: caps.files]]
    own_text = spec.render(own) if carried else ""
    return _reply(address, tuple(parts), carried=carried, own_text=own_text)


def earlier(held: Sequence[HeldText], address: Address, spec: ChannelSpec, caps: Caps) -> list[Reply]:
    """Held texts as replies of their own, which go ahead of one that cannot carry them, the oldest first.

    ``HELD_BYTES`` of them in all, and one at least: what a platform takes at once should do for the new
    reply, too. The others wait on.
    """
    replies: list[Reply] = []
    taken = 0
    for one in held:
        taken += len(one.text.encode())
        if replies and taken > HELD_BYTES:
            break
        texts = _shown(_earlier(one, address.language), part_limit(spec, caps.part_bytes), spec)
        parts = tuple([_part(PartKind.TEXT, text) for text in texts])
        replies.append(_reply(address, parts, carried=(one.held_id,)))
    return replies


def notice(text: str, address: Address, *, transient: bool = False) -> Reply:
    """A fixed text of the bridge's own as a reply of one part."""
    return _reply(address, (_part(PartKind.TEXT, text),), transient=transient)


def refused_file(part: OutboxPart) -> Reply:
    """A notice that a file of a reply does not come: its name, never a path. Why is for the operator."""
    name = json.loads(part.body)["name"]
    address = Address(part.conversation, part.to, part.reply_to, language_of(name, "auto"))
    return notice(say(Text.FILE_REFUSED, address.language, name=name), address, transient=True)


def part_limit(spec: ChannelSpec, part_bytes: int) -> Limit:
    """The platform's own limit, and never over ``part_bytes`` in UTF-8: a code point takes at most four."""
    if spec.text_limit.unit is Unit.BYTES:
        return Limit(min(spec.text_limit.size, part_bytes), Unit.BYTES)
    return Limit(min(spec.text_limit.size, part_bytes // 4), spec.text_limit.unit)


def marked(body: str, kind: PartKind, language: Language) -> str:
    """The body of a part that is sent again although it may have arrived: with a mark that a reader sees."""
    if kind is PartKind.TEXT:
        return f"{say(Text.REPEAT, language)}\n{body}"
    file = json.loads(body)
    return json.dumps({**file, "name": f"(2) {file['name']}"}, ensure_ascii=False)


def encode_file(file: ReplyFile) -> str:
    return json.dumps(asdict(file), ensure_ascii=False)


def copies_of(bodies: Iterable[str]) -> list[str]:
    """The paths of the private copies that these file parts name."""
    return [json.loads(body)["path"] for body in bodies]


def copies_in(reply: Reply) -> list[str]:
    """The paths of the private copies that a reply would send."""
    return copies_of(part.body for part in reply.parts if part.kind is PartKind.FILE)


def to_text(part: OutboxPart, body: str) -> OutboundPart:
    """A stored text part as an adapter takes it."""
    return OutboundPart(
        to=part.to,
        reply_to=part.reply_to,
        client_id=part.client_id,
        text=body,
        reply_id=part.reply_id,
        part=part.part,
        parts=part.parts,
        created_at=from_unix_ms(part.created_ms),
        notice=part.notice,
    )


def size_of(part: OutboxPart) -> int:
    """A stored part's bytes: a text's own, or its file's."""
    return len(part.body.encode()) if part.kind is PartKind.TEXT else to_file(part, part.body).size


def to_file(part: OutboxPart, body: str) -> OutboundFile:
    """A stored file part as an adapter takes it."""
    file = json.loads(body)
    return OutboundFile(
        to=part.to,
        reply_to=part.reply_to,
        client_id=part.client_id,
        path=Path(file["path"]),
        name=file["name"],
        mime=file["mime"],
        kind=sent_kind(file["mime"]),
        size=file["size"],
        reply_id=part.reply_id,
        part=part.part,
        parts=part.parts,
        created_at=from_unix_ms(part.created_ms),
    )


def sent_kind(mime: str) -> FileKind:
    """How a chat shows it, where it can: an adapter whose platform cannot sends a mere file."""
    if mime in _SHOWN_AS_IMAGE:
        return FileKind.IMAGE
    family = mime.partition("/")[0]
    return FileKind(family) if family in ("audio", "video") else FileKind.FILE


def held_text(parts: Sequence[OutboxPart], language: Language) -> str:
    """What never arrived of a reply: the text of these parts, cut to what is held."""
    text = "\n".join(part.body for part in parts if part.kind is PartKind.TEXT)
    for one in Language:
        text = text.removeprefix(f"{say(Text.LATEST, one)}\n")
    return truncate(text, HELD_BYTES, say(Text.TRUNCATED, language))


def _whole_text(content: Content, language: Language, caps: Caps) -> str:
    text = clean(content.text).strip()
    captions = [f"{file.name}: {file.caption}" for file in content.files if file.caption]
    if captions:
        text = "\n\n".join(filter(None, [text, "\n".join(captions)]))
    dropped = content.dropped + max(0, len(content.files) - caps.files)
    note = say(Text.FILES_DROPPED, language, count=dropped) if dropped else ""
    if not text and not note and not content.files:
        return say(Text.EMPTY, language)
    room = caps.reply_bytes - (len(note.encode()) + 2 if note else 0)
    text = truncate(text, room, "\n" + say(Text.TRUNCATED, language))
    return "\n\n".join(filter(None, [text, note]))


def _with_held(own: str, held: Sequence[HeldText], language: Language) -> str:
    before = [_earlier(one, language) for one in held]
    return "\n\n".join([*before, f"{say(Text.LATEST, language)}\n{own}"]) if own else ""


def _earlier(one: HeldText, language: Language) -> str:
    return f"{say(Text.EARLIER, language)}\n{one.text}"


def _shown(text: str, limit: Limit, spec: ChannelSpec) -> list[str]:
    """``text`` cut and rendered, without what is blank then."""
    shown = [spec.render(part) for part in split_text(text, limit, spec.render)]
    return [part for part in shown if part.strip()]


def _part(kind: PartKind, body: str) -> NewPart:
    return NewPart(kind, body, new_client_id())


def new_client_id() -> str:
    """32 hex digits: what a platform recognises a repeat by."""
    return secrets.token_hex(16)


def _reply(
    address: Address,
    parts: tuple[NewPart, ...],
    *,
    transient: bool = False,
    carried: tuple[int, ...] = (),
    own_text: str = "",
) -> Reply:
    return Reply(
        reply_id=secrets.token_hex(8),
        conversation=address.conversation,
        to=address.to,
        reply_to=address.reply_to,
        parts=parts,
        transient=transient,
        carried=carried,
        own_text=own_text,
    )


def stored_parts(
    account: AccountId, message_id: MessageId, reply: Reply, ids: tuple[PartId, ...], now_ms: int, reason: str
) -> list[OutboxPart]:
    """A reply's parts as the step that stored them under ``ids`` and for ``reason`` left them."""
    return [
        OutboxPart(
            part_id=part_id,
            account=account,
            reply_id=reply.reply_id,
            message_id=message_id,
            conversation=reply.conversation,
            to=reply.to,
            reply_to=reply.reply_to,
            part=n,
            parts=len(reply.parts),
            kind=part.kind,
            body=part.body,
            client_id=part.client_id,
            state=PartState.PENDING,
            transient=reply.transient,
            attempts=0,
            created_ms=now_ms,
            first_sent_ms=0,
            sending_since_ms=0,
            due_ms=0,
            marked=False,
            notice=reason,
        )
        for n, (part_id, part) in enumerate(zip(ids, reply.parts, strict=False))
    ]
