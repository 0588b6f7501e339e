import asyncio

from bridge.channel import Answer, OutboundFile, OutboundPart, Reading, Refused
from bridge.channel.testing.clock import settle, until
from bridge.relay.offers import Offer, Offers
from bridge.relay.responses import LINGER_SECONDS
from tests.relay.harness import desk, message
from tests.relay.responding import HOLD, Platform, SilentChannel

ANSWER = Answer(200)


def offer(message_id: str = "m1", to: str = "to") -> Offer:
    return Offer(message_id, to, Reading(()))


async def test_a_response_is_handed_over_and_its_writing_waited_for() -> None:
    for how in (True, False, None):
        one = offer()
        async with asyncio.TaskGroup() as tasks:
            giving = tasks.create_task(one.give(ANSWER))
            await settle()
            assert one.over.is_set()
            assert (one.answer, giving.done()) == (ANSWER, False)
            one.written(how)
            one.written(True)
        assert giving.result() is how


async def test_what_is_over_takes_no_response() -> None:
    for end in (Offer.end, Offer.fail):
        one = offer()
        end(one)
        assert await one.give(ANSWER) is False
        assert one.answer is None
        assert one.ended.is_set() == (end is Offer.end)


async def test_the_very_message_s_offer_is_taken_first_then_the_oldest() -> None:
    offers = Offers()
    first, second, other = offer("m1"), offer("m2"), offer("m3", "elsewhere")
    for one in (first, second, other):
        offers.add(one)
    assert offers.take("to", "m2") is second
    assert second.is_taken
    assert offers.take("to", "m9") is first
    assert offers.take("to", "m1") is None
    assert (offers.waits("to"), offers.waits("elsewhere")) == (False, True)


async def test_what_was_not_used_waits_again_unless_it_is_over() -> None:
    offers, one = Offers(), offer()
    offers.add(one)
    assert offers.take("to", "") is one
    offers.put_back(one)
    assert (one.is_taken, offers.take("to", "")) == (False, one)
    one.end()
    offers.put_back(one)
    assert not offers.waits("to")


async def test_what_is_put_back_when_its_time_is_up_is_over() -> None:
    offers, one = Offers(), offer()
    offers.add(one)
    assert offers.take("to", "") is one
    offers.remove(one)
    assert not one.over.is_set(), "its response is being made"
    offers.put_back(one)
    assert (one.over.is_set(), offers.waits("to")) == (True, False)


class Late(SilentChannel):
    """Takes its time, and refuses then."""

    def __init__(self) -> None:
        super().__init__()
        self.gate = asyncio.Event()

    async def respond(self, reading: Reading, part: OutboundPart | OutboundFile) -> Answer | Refused:
        self.made.append(part)
        await self.gate.wait()
        return Refused("no")


async def test_a_request_whose_response_is_refused_after_its_time_is_let_go() -> None:
    async with desk(Late()) as here, asyncio.TaskGroup() as tasks:
        attempt = tasks.create_task(Platform(here).attempt(message("m1", "hi")))
        await until(lambda: len(here.channel.made) == 1)
        await here.clock.advance(HOLD + 1)
        here.channel.gate.set()
        await settle()
        await here.clock.advance(LINGER_SECONDS + 1)
        await until(attempt.done, rounds=1000)
        assert attempt.result() == "-"


async def test_removing_what_does_not_wait_changes_nothing() -> None:
    offers, one, two = Offers(), offer("m1"), offer("m2")
    offers.remove(one)
    offers.add(one)
    offers.remove(two)
    assert offers.waits("to")
    offers.remove(one)
    assert not offers.waits("to")
