"""The ways out by themselves; ``test_delivery`` and ``test_responses`` show them at work."""

import asyncio
import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from bridge.channel import (
    Answer,
    Choice,
    CredentialsError,
    Delivered,
    OutboundFile,
    OutboundPart,
    OutcomeUnknownError,
    Reading,
    Refused,
    UnreachableError,
    Withdrawn,
)
from bridge.channel.testing.clock import settle
from bridge.ids import AccountId, ConversationKey, MessageId, PartId
from bridge.logs import get_logger
from bridge.meter import AccountMeter, Try
from bridge.relay import outbox, ways
from bridge.relay.offers import Offer, Offers
from bridge.relay.outbox import Address, ReplyFile
from bridge.relay.texts import Language, Text, say
from bridge.relay.ways import (
    SEND_SECONDS,
    BySending,
    Counted,
    InResponse,
    NoQuestions,
    Way,
    Ways,
    send_seconds,
)
from bridge.store.contract import OutboxPart, PartKind
from tests.relay.harness import PushedChannel
from tests.relay.responding import RespondingChannel, SilentChannel

LOG = get_logger("test")
MORE = say(Text.MORE, Language.EN)
TO_EARLIER, NEXT = say(Text.TO_EARLIER, Language.EN), say(Text.NEXT, Language.EN)


class TextsOnly:
    async def send(self, part: OutboundPart) -> Delivered:
        return Delivered()


def text_part(body: str = "hi") -> OutboxPart:
    reply = outbox.notice(body, Address(ConversationKey("c"), "to", "", Language.EN))
    (part,) = outbox.stored_parts(AccountId("a:b"), MessageId("m1"), reply, (PartId(1),), 0, "")
    return part


def file_part(path: Path) -> OutboxPart:
    body = outbox.encode_file(ReplyFile(str(path), "a.txt", "text/plain", 3))
    return replace(text_part(), kind=PartKind.FILE, body=body)


def found(channel: Any, offers: Offers | None = None) -> Way | None:
    return Ways(channel, offers or Offers(), LOG).find(text_part())


def held(offers: Offers) -> Offer:
    offer = Offer("m1", "to", Reading(()))
    offers.add(offer)
    return offer


async def responded(way: Way, part: OutboxPart, offer: Offer, how: bool | None, *, more: bool = False) -> Any:
    async with asyncio.TaskGroup() as tasks:
        sending = tasks.create_task(way.send(part, more))
        await offer.over.wait()
        offer.written(how)
    way.leave()
    return sending.result()


async def test_a_request_that_is_held_is_the_way_out_before_any_other() -> None:
    offers = Offers()
    held(offers)
    assert isinstance(found(RespondingChannel(), offers), InResponse)
    assert isinstance(found(RespondingChannel(), offers), BySending), "it was taken"
    assert found(SilentChannel(), offers) is None
    held(offers)
    assert isinstance(found(PushedChannel(), offers), BySending)
    assert Ways(SilentChannel(), offers, LOG).in_response("to")


async def test_a_text_and_a_file_are_sent(tmp_path: Path) -> None:
    channel, copy = PushedChannel(), tmp_path / "copy"
    way = BySending(channel, LOG)
    assert await way.send(text_part(), more=True) == Delivered("p")
    assert await way.send(file_part(copy), more=False) == Refused("the file is gone")
    copy.write_text("abc")
    assert await way.send(file_part(copy), more=False) == Delivered("p")
    assert await BySending(TextsOnly(), LOG).send(file_part(copy), more=False) == Refused(
        "this channel takes no files"
    )
    assert [type(sent) for sent in channel.sent] == [OutboundPart, OutboundFile]
    assert channel.texts() == ["hi"]
    way.leave()


async def test_what_may_have_arrived_is_marked() -> None:
    channel = PushedChannel()
    await BySending(channel, LOG).send(replace(text_part(), marked=True), more=False)
    assert channel.texts() == [f"{say(Text.REPEAT, Language.EN)}\nhi"]


async def test_a_bug_in_sending_leaves_the_outcome_unknown() -> None:
    channel = PushedChannel()
    channel.outcomes = [ZeroDivisionError()]
    with pytest.raises(OutcomeUnknownError):
        await BySending(channel, LOG).send(text_part(), more=False)


class Stalled(PushedChannel):
    """Never comes back."""

    async def _stall(self, *_: Any) -> Any:
        await asyncio.get_running_loop().create_future()

    send: Any = _stall
    send_file: Any = _stall
    respond: Any = _stall


async def test_an_adapter_that_never_comes_back_holds_its_place_for_a_time_only(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(ways, "SEND_SECONDS", 0.01)
    copy, offer = tmp_path / "copy", Offer("m1", "to", Reading(()))
    copy.write_text("abc")
    for part in (text_part(), file_part(copy)):
        with pytest.raises(OutcomeUnknownError, match="too long"):
            await BySending(Stalled(), LOG).send(part, more=False)
    responder: Any = Stalled()
    way = InResponse(responder, offer, Offers(), True, LOG)
    with pytest.raises(UnreachableError, match="too long"):
        await way.send(text_part(), more=False)
    way.leave()
    assert offer.over.is_set(), "it is not tried again"


def test_a_large_file_may_take_longer(tmp_path: Path) -> None:
    body = outbox.encode_file(ReplyFile("/x", "a.mp4", "video/mp4", 26_214_400))
    assert send_seconds(text_part()) == SEND_SECONDS
    assert send_seconds(replace(text_part(), kind=PartKind.FILE, body=body)) == SEND_SECONDS + 400


@pytest.mark.parametrize(("how", "outcome"), [(True, Delivered()), (False, None)])
async def test_a_response_is_delivered_once_it_was_written(how: bool, outcome: Any) -> None:
    offers, channel = Offers(), SilentChannel()
    offer = held(offers)
    way = found(channel, offers)
    assert way is not None
    assert await responded(way, text_part(), offer, how) == outcome
    assert offer.answer == Answer(200, b"hi", "text/plain")


async def test_a_file_s_address_in_a_response_keeps_its_copy(tmp_path: Path) -> None:
    class Keeps(SilentChannel):
        async def respond(self, reading: Reading, part: Any) -> Answer | Refused:
            return Answer(200, keep_file_seconds=60.0)

    offers = Offers()
    offer = held(offers)
    (copy := tmp_path / "copy").write_text("abc")
    way = found(Keeps(), offers)
    assert way is not None
    assert await responded(way, file_part(copy), offer, True) == Delivered(keep_file_seconds=60.0)


async def test_a_response_that_broke_off_is_unknown() -> None:
    offers = Offers()
    offer = held(offers)
    way = found(SilentChannel(), offers)
    assert way is not None
    with pytest.raises(ExceptionGroup) as failed:
        await responded(way, text_part(), offer, None)
    assert failed.group_contains(OutcomeUnknownError)


@pytest.mark.parametrize(
    ("channel", "more", "shown"),
    [(SilentChannel, True, f"hi\n{MORE}"), (SilentChannel, False, "hi"), (RespondingChannel, True, "hi")],
)
async def test_what_waits_behind_is_told_of_where_it_has_to_be_asked_for(
    channel: Any, more: bool, shown: str
) -> None:
    offers = Offers()
    offer = held(offers)
    way = found(channel(), offers)
    assert way is not None
    await responded(way, text_part(), offer, True, more=more)
    assert offer.answer is not None
    assert offer.answer.body.decode() == shown


@pytest.mark.parametrize("language", Language)
def test_all_notes_on_one_text_fit_into_the_room_that_is_left(language: Language) -> None:
    def size(*texts: Text) -> int:
        return sum(len(say(text, language).encode()) + 1 for text in texts)

    assert size(Text.REPEAT, Text.MORE) <= 150
    assert size(Text.REPEAT, Text.TO_EARLIER, Text.NEXT) <= 150


@pytest.mark.parametrize(
    ("message_id", "asks", "notice", "shown"),
    [
        ("m0", False, "", f"{TO_EARLIER}\nhi\n{NEXT}"),
        ("m0", True, "", f"hi\n{MORE}"),
        ("", False, "", f"hi\n{NEXT}"),
        ("", False, "file_refused", f"hi\n{MORE}"),
        ("m1", False, "", f"hi\n{MORE}"),
    ],
)
async def test_a_text_says_what_it_answers_where_a_new_message_s_response_carries_it(
    message_id: str, asks: bool, notice: str, shown: str
) -> None:
    offers = Offers()
    offers.add(offer := Offer("m1", "to", Reading(()), asks=asks))
    way = found(SilentChannel(), offers)
    assert way is not None
    part = replace(text_part(), message_id=MessageId(message_id), notice=notice)
    await responded(way, part, offer, True, more=True)
    assert offer.answer is not None
    assert offer.answer.body.decode() == shown


@pytest.mark.parametrize("trouble", [UnreachableError("down"), ZeroDivisionError()])
async def test_a_request_that_no_response_could_be_made_for_is_not_tried_again(trouble: Exception) -> None:
    offers, channel = Offers(), SilentChannel()
    offer = held(offers)
    channel.troubles = [trouble]
    way = found(channel, offers)
    assert way is not None
    with pytest.raises(UnreachableError):
        await way.send(text_part(), more=False)
    way.leave()
    assert offer.over.is_set()
    assert not offer.ended.is_set()
    assert not offers.waits("to")


async def test_a_refused_part_leaves_its_request_to_the_next(tmp_path: Path) -> None:
    offers, channel = Offers(), SilentChannel()
    held(offers)
    channel.troubles = [Refused("no")]
    for part in (text_part(), file_part(tmp_path / "gone")):
        way = found(channel, offers)
        assert way is not None
        assert isinstance(await way.send(part, more=False), Refused)
        way.leave()
        assert offers.waits("to")


async def test_a_response_for_a_client_that_left_is_not_taken() -> None:
    offers = Offers()
    offer = held(offers)
    way = found(SilentChannel(), offers)
    assert way is not None
    offer.end()
    assert await way.send(text_part(), more=False) is None
    await settle()
    assert json.loads(file_part(Path("x")).body)["name"] == "a.txt"


class Scripted:
    """A way that ends as told, and notes that it was left."""

    def __init__(self, ends: Any) -> None:
        self._ends = ends
        self.left = False

    async def send(self, part: OutboxPart, more: bool) -> Any:
        if isinstance(self._ends, Exception):
            raise self._ends
        return self._ends

    def leave(self) -> None:
        self.left = True


@pytest.mark.parametrize(
    ("ends", "counted"),
    [
        (Delivered("p1"), Try.SENT),
        (Refused("no"), Try.REFUSED),
        (Withdrawn(), Try.WITHDRAWN),
        (None, Try.NOT_TAKEN),
        (UnreachableError("gone"), Try.UNREACHABLE),
        (OutcomeUnknownError("who knows"), Try.UNKNOWN),
        (CredentialsError("no"), Try.UNAUTHORIZED),
    ],
)
async def test_how_each_try_ends_is_counted_and_changed_in_nothing(ends: Any, counted: Try) -> None:
    inner, meter = Scripted(ends), AccountMeter()
    way = Counted(inner, meter)
    if isinstance(ends, Exception):
        with pytest.raises(type(ends)):
            await way.send(text_part(), False)
    else:
        assert await way.send(text_part(), False) is ends
    way.leave()
    assert inner.left
    assert meter.tries == {counted: 1}


async def test_a_question_offers_its_answers_and_only_where_it_is_sent() -> None:
    class Questions:
        def taken(self, part: OutboxPart, at: float) -> None:
            raise AssertionError

        def choices(self, part: OutboxPart) -> tuple[Choice, ...]:
            return (Choice("v", part.body),)

    channel = PushedChannel()
    way = Ways(channel, Offers(), LOG, Questions()).find(text_part("May I?"))
    assert way is not None
    await way.send(text_part("May I?"), more=False)
    plain = found(channel)
    assert plain is not None
    await plain.send(text_part("hi"), more=False)
    asked, said = channel.sent
    assert isinstance(asked, OutboundPart)
    assert isinstance(said, OutboundPart)
    assert (asked.choices, said.choices) == ((Choice("v", "May I?"),), ())


def test_nobody_who_asks_has_nothing_to_be_told_of() -> None:
    NoQuestions().taken(text_part(), 0.0)
    assert NoQuestions().choices(text_part()) == ()
