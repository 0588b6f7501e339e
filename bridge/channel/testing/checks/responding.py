"""Checks of ``RepliesInResponse``: what a response carries is shown to its sender, and sends nothing else."""

from dataclasses import replace

import pytest

from bridge.channel.contract import (
    Answer,
    Claimed,
    Identity,
    Inbound,
    OutboundPart,
    Pushed,
    Reading,
    Refused,
    RepliesInResponse,
    Request,
    Sends,
)
from bridge.channel.testing.checks import files, sending
from bridge.channel.testing.checks.pushed import said
from bridge.channel.testing.checks.sending import TEXTS, cancel_everywhere
from bridge.channel.testing.checks.stage import Stage, scenario
from bridge.channel.testing.kit import KitSent, PushedKit, RespondsKit
from bridge.channel.units import measure
from bridge.errors import UnreachableError

MOST_HOLD_SECONDS, MOST_REPEAT_SECONDS = 60, 600
NOTE_BYTES = 150  # of the note that more waits
QUIET = (Claimed.ACCEPTED, Claimed.DUPLICATE, Claimed.BUSY, Claimed.IGNORED)


class Responding:
    """A genuine push before an adapter that can answer it, and what its platform then shows."""

    def __init__(self, stage: Stage, channel: RepliesInResponse, kit: RespondsKit, request: Request) -> None:
        self.channel, self._kit, self.request = channel, kit, request
        self.reading = read(channel, request, stage.identity)
        (item,) = self.reading.items
        assert isinstance(item, Inbound), f"a message became {type(item).__name__}"
        self.to = item

    def part(self, text: str = "hello", number: int = 1) -> OutboundPart:
        return sending.part(self.to, text, number)

    async def answer(self, part: OutboundPart) -> Answer:
        answer = await self.channel.respond(self.reading, part)
        assert isinstance(answer, Answer), f"a plain text was refused: {answer}"
        assert answer.status == 200, f"a response of status {answer.status} shows nothing"
        return answer

    def shown(self, answer: Answer) -> list[KitSent]:
        return self._kit.shown_of(self.request, answer)


def read(channel: object, request: Request, identity: Identity) -> Reading:
    assert isinstance(channel, Pushed), "only a push has a response"
    reading = channel.read(request, identity)
    assert isinstance(reading, Reading), f"a genuine message was answered: {reading}"
    return reading


def responding(stage: Stage, message_id: str = "") -> Responding:
    channel, kit = stage.channel, stage.kit
    if not isinstance(channel, RepliesInResponse):
        pytest.skip("it does not reply in its responses")
    assert isinstance(kit, PushedKit), "a kit of what replies in responses pushes"
    assert isinstance(kit, RespondsKit), "its kit cannot read a response: give it shown_of"
    return Responding(stage, channel, kit, kit.push(said(stage, message_id=message_id)))


@scenario
async def test_a_response_shows_the_text_to_its_sender(stage: Stage) -> None:
    here = responding(stage)
    for text in TEXTS:
        answer = await here.answer(here.part(text))
        stage.keeps_quiet(answer.body.decode(errors="replace"), "a response")
        (sent,) = here.shown(answer)
        assert sent.text == text, f"{text!r} arrived as {sent.text!r}"
        assert sent.to in ("", here.part().to), "it went to somebody else"


@scenario
async def test_a_repeat_of_the_message_can_be_answered_as_well(stage: Stage) -> None:
    first, again = responding(stage, "message-1"), responding(stage, "message-1")
    part = first.part()
    await first.answer(part)  # never written: its client was gone
    (sent,) = again.shown(await again.answer(part))
    assert sent.text == part.text


@scenario
async def test_a_response_may_carry_what_answers_an_earlier_message(stage: Stage) -> None:
    here = responding(stage)
    earlier = replace(here.part("earlier"), reply_to="")
    (sent,) = here.shown(await here.answer(earlier))
    assert sent.text == "earlier"


@scenario
async def test_a_text_of_the_whole_limit_is_shown_with_the_note_that_more_waits(stage: Stage) -> None:
    here, limit = responding(stage), stage.spec.text_limit
    note = "" if isinstance(stage.channel, Sends) else "\n" + "n" * (NOTE_BYTES - 1)
    for piece in ("x", "界", "😀"):
        text = piece * (limit.size // measure(piece, limit.unit)) + note
        (sent,) = here.shown(await here.answer(here.part(text)))
        assert sent.text == text, f"{piece} was cut"


@scenario
async def test_a_plain_answer_shows_nothing(stage: Stage) -> None:
    here = responding(stage)
    assert isinstance(here.channel, Pushed)
    for result in QUIET:
        assert here.shown(here.channel.answer(here.reading, [result])) == [], f"{result} was shown"


@scenario
async def test_a_response_sends_nothing_by_itself(stage: Stage) -> None:
    here = responding(stage)
    await here.answer(here.part())
    assert not stage.kit.sent(), "making a response sent something, so that it would come twice"


@scenario
async def test_a_file_is_shown_or_refused_with_a_reason(stage: Stage) -> None:
    here = responding(stage)
    with files.copy_of(files.SEED) as path:
        try:
            answer = await here.channel.respond(here.reading, files.part(here.to, path))
        except UnreachableError:
            return  # its upload failed, so it is tried again
    if isinstance(answer, Refused):
        assert answer.reason, "a refusal says why"
        assert str(path.parent) not in answer.reason, "a path of ours is shown"
    else:
        assert here.shown(answer), "a file's response shows nothing: refuse it"


@scenario
async def test_its_times_are_sound(stage: Stage) -> None:
    channel = responding(stage).channel
    assert 0 <= channel.hold_seconds <= MOST_HOLD_SECONDS
    assert 0 <= channel.repeat_seconds <= MOST_REPEAT_SECONDS
    assert isinstance(stage.channel, Sends) or channel.hold_seconds > 0, "nothing would ever get out"


@scenario
async def test_making_a_response_may_be_cancelled_anywhere(stage: Stage) -> None:
    here = responding(stage)
    await cancel_everywhere(lambda: here.channel.respond(here.reading, here.part()))
    assert here.shown(await here.answer(here.part())), "cancelling left it broken"
