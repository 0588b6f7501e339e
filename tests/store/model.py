"""What the store does, told in dictionaries: messages and the parts of their replies, without held texts."""

from __future__ import annotations

from dataclasses import dataclass, field

from bridge.ids import MessageId, PartId
from bridge.store.contract import (
    Answer,
    Changed,
    Claim,
    ClaimVerdict,
    Collect,
    Edit,
    Hold,
    Later,
    Mark,
    MessageState,
    NewMessage,
    PartState,
    Post,
    Recall,
    Reply,
    Sending,
    Settle,
    Settled,
    Start,
    Step,
    TakenBack,
)

CONVERSATION_TEXTS = 4  # that are held at most
OPEN = (PartState.PENDING, PartState.SENDING)


@dataclass
class Part:
    part_id: PartId
    message: MessageId
    state: PartState = PartState.PENDING
    attempts: int = 0
    marked: bool = False


@dataclass
class Model:
    states: dict[MessageId, MessageState] = field(default_factory=dict)
    digests: dict[MessageId, str] = field(default_factory=dict)
    redeliveries: set[str] = field(default_factory=set)
    replies: list[list[Part]] = field(default_factory=list)
    revisions: dict[MessageId, int] = field(default_factory=dict)
    recalled: set[MessageId] = field(default_factory=set)
    nowhere: set[MessageId] = field(default_factory=set)  # never seen, but for their recall
    held: list[MessageId] = field(default_factory=list)  # whose answers are held, oldest first

    def take(self, step: Step[object]) -> object:
        """The step's result; None also for a step on a part that does not exist."""
        match step:
            case Claim() | Recall() | Edit() | Start() | Answer():
                return self._of_message(step)
            case Post(reply=reply):
                return self._add(reply, MessageId(""))
            case Collect(after=after):
                told = [part for part in self.open() if part.part_id <= after and self._part(PartId(after))]
                return tuple(self._end(part.part_id, PartState.SENT) for part in told)
            case Settle(part_id=part_id, state=end):
                return self._end(part_id, end)
            case Hold(part_id=part_id, state=end):
                return self._hold(part_id, end)
            case Sending(part_id=part_id) | Later(part_id=part_id) | Mark(part_id=part_id):
                return self._change(self._part(part_id), step)
        raise AssertionError(step)

    def _of_message(self, step: Claim | Recall | Edit | Start | Answer) -> object:
        match step:
            case Claim(messages=messages, now_ms=_):
                return tuple(self._claim(message) for message in messages)
            case Recall(message_id=message_id, conversation=conversation):
                return TakenBack(self._recall(message_id, conversation is None))
            case Edit(message_id=message_id, revision=revision):
                return self._edit(message_id, revision)
            case Start(message_id=message_id, revision=revision):
                if self.revisions.get(message_id, 0) != revision:
                    return False
                return self._move(message_id, (MessageState.CLAIMED,), MessageState.RUNNING)
            case Answer(message_id=message_id, reply=reply, revision=revision):
                claimed = self.states.get(message_id) is MessageState.CLAIMED
                if claimed and self.revisions.get(message_id, 0) != revision:
                    return ()
                state = MessageState.ANSWERED if reply else MessageState.DONE
                moved = self._move(message_id, (MessageState.CLAIMED, MessageState.RUNNING), state)
                return self._add(reply, message_id) if moved and reply else ()

    def open(self) -> list[Part]:
        return [part for parts in self.replies for part in parts if part.state in OPEN]

    def waiting(self) -> list[MessageId]:
        return [
            one for one, state in self.states.items() if state in (MessageState.CLAIMED, MessageState.RUNNING)
        ]

    def dead(self) -> int:
        ends = (PartState.REFUSED, PartState.EXPIRED, PartState.UNKNOWN)
        parts = [part for parts in self.replies for part in parts if part.message not in self.recalled]
        return sum(part.state in ends for part in parts)

    def _claim(self, message: NewMessage) -> ClaimVerdict:
        known = self.digests.get(message.message_id)
        if known is not None:
            other = known and message.body_digest and known != message.body_digest
            return ClaimVerdict.CONFLICT if other else ClaimVerdict.DUPLICATE
        if message.redelivery in self.redeliveries:
            return ClaimVerdict.DUPLICATE
        self.digests[message.message_id] = message.body_digest
        self.states[message.message_id] = message.state
        self.redeliveries |= {message.redelivery} - {""}
        if message.reply:
            self._add(message.reply, message.message_id)
        return ClaimVerdict.NEW

    def _recall(self, message_id: MessageId, unknown: bool) -> Changed:
        state = self.states.get(message_id)
        if state is None:
            self.digests[message_id] = ""
            self.nowhere.add(message_id)
        elif unknown or message_id in self.nowhere:
            return Changed.OTHER
        elif state in (MessageState.SEEN, MessageState.DONE) and message_id not in self.held:
            return Changed.KNOWN if message_id in self.recalled else Changed.TOO_LATE
        for part in self.open():
            part.state = PartState.SKIPPED if part.message == message_id else part.state
        self.states[message_id] = MessageState.DONE
        self.held = [one for one in self.held if one != message_id]
        self.recalled.add(message_id)
        return Changed.DONE

    def _edit(self, message_id: MessageId, revision: int) -> Changed:
        if message_id not in self.states:
            return Changed.TOO_LATE
        if message_id in self.nowhere:
            return Changed.OTHER
        if self.states[message_id] is not MessageState.CLAIMED:
            return Changed.TOO_LATE
        if self.revisions.get(message_id, 0) >= revision:
            return Changed.KNOWN
        self.revisions[message_id] = revision
        return Changed.DONE

    def _move(self, message_id: MessageId, before: tuple[MessageState, ...], after: MessageState) -> bool:
        if self.states.get(message_id) not in before:
            return False
        self.states[message_id] = after
        return True

    def _add(self, reply: Reply, message: MessageId) -> tuple[PartId, ...]:
        first = sum(map(len, self.replies)) + 1
        parts = [Part(PartId(first + number), message) for number in range(len(reply.parts))]
        self.replies.append(parts)
        return tuple(part.part_id for part in parts)

    def _part(self, part_id: PartId) -> Part | None:
        return next((part for parts in self.replies for part in parts if part.part_id == part_id), None)

    def _change(self, part: Part | None, step: Sending | Later | Mark) -> bool | None:
        is_open = part is not None and part.state in OPEN
        if part is not None and is_open:
            match step:
                case Sending():
                    part.state, part.attempts = PartState.SENDING, part.attempts + 1
                case Later(accepted_possible=False):
                    part.attempts = max(part.attempts - 1, 0)
                    part.state = PartState.SENDING if part.attempts else PartState.PENDING
                case Mark():
                    part.state, part.attempts, part.marked = PartState.PENDING, 0, True
        return is_open if part is not None and isinstance(step, Sending) else None

    def _end(self, part_id: PartId, state: PartState) -> Settled | None:
        part = self._part(part_id)
        if part is None:
            return None
        if part.state in OPEN:
            part.state = state
        return Settled(self._over(part))

    def _hold(self, part_id: PartId, state: PartState) -> Settled | None:
        part = self._part(part_id)
        if part is not None and part.state in OPEN:
            part.state = state
            self.held = [*self.held, part.message][-CONVERSATION_TEXTS:]
            for other in self._reply_of(part):
                other.state = PartState.SKIPPED if other.state in OPEN else other.state
        return None if part is None else Settled(self._over(part))

    def _over(self, part: Part) -> bool:
        over = all(other.state not in OPEN for other in self._reply_of(part))
        if over:
            self._move(part.message, (MessageState.ANSWERED,), MessageState.DONE)
        return over

    def _reply_of(self, part: Part) -> list[Part]:
        return next(parts for parts in self.replies if part in parts)
