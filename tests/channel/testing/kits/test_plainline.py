"""Plainline against the contract suite: the smallest channel, on a platform that recognises no repeat."""

from collections.abc import Callable
from typing import Any

import pytest

from bridge.channel import ChannelError, Inbound, OutboundPart, Place, Unreadable
from bridge.channel.http import Http, http_session
from bridge.channel.testing.checks import polled, rim, sending
from bridge.channel.testing.checks.stage import create
from bridge.channel.testing.kit import FilesKit, Kit, KitMessage, KitSent, PollsKit, PushedKit, Trouble
from bridge.channel.testing.kits.plainline import (
    SPEC,
    Plainline,
    PlainlineCredentials,
    PlainlineKit,
    PlainlineSettings,
    to_item,
)
from bridge.channel.testing.suite import CHECKS
from bridge.errors import OutcomeUnknownError
from bridge.registry import channels

GIVEN = {
    name: check
    for part in (rim, polled, sending)
    for name, check in vars(part).items()
    if name in CHECKS and check.__code__.co_varnames[0] == "make_kit"
}
LINE = OutboundPart("chat0", "", "0" * 32, "hello")


@pytest.mark.parametrize("check", GIVEN.values(), ids=GIVEN)
def test_it_passes_the_suite(check: Callable[[Any], None]) -> None:
    check(PlainlineKit)


def test_it_plays_its_parts_and_is_nobody_s_channel() -> None:
    kit: Kit = PlainlineKit()
    assert isinstance(kit, PollsKit)
    assert not isinstance(kit, PushedKit | FilesKit)
    assert all(kit.supports(each) for each in Trouble)
    assert kit.spec is SPEC
    assert kit.spec.idempotent_seconds == 0
    assert "plainline" not in channels().names()


async def test_a_line_that_is_sent_again_is_shown_again() -> None:
    async with PlainlineKit() as kit, http_session() as session:
        channel = create(kit, Http(session))
        assert isinstance(channel, Plainline)
        kit.trouble(Trouble.DROP_AFTER)
        with pytest.raises(OutcomeUnknownError):
            await channel.send(LINE)
        await channel.send(LINE)
        assert kit.sent() == [KitSent("", "hello", to="chat0")] * 2


async def test_lines_come_in_order_by_their_places() -> None:
    async with PlainlineKit() as kit, http_session() as session:
        channel = create(kit, Http(session))
        assert isinstance(channel, Plainline)
        kit.arrive(KitMessage("one", kit.person(1), kit.chat(1)))
        kit.arrive_unreadable()
        batch = await channel.receive("")
        assert batch.checkpoint == "2"
        first, second = batch.items
        assert isinstance(first, Inbound)
        assert (first.message_id, first.sender, first.to, first.text) == ("1", "person1", "chat1", "one")
        assert isinstance(second, Unreadable)
        assert second.message_id == "2"
        assert (await channel.receive("2")).items == []


def test_a_line_of_a_group_says_so() -> None:
    line = to_item({"sender": "p", "chat": "g", "text": "x", "group": True}, "7")
    assert isinstance(line, Inbound)
    assert line.group


async def test_a_platform_that_does_not_answer_as_it_should_is_trouble() -> None:
    async with PlainlineKit() as kit, http_session() as session:
        settings = PlainlineSettings.model_validate(
            {**kit.settings, "base": f"{kit.settings['base']}/nowhere"}
        )
        credentials = PlainlineCredentials.model_validate(kit.credentials)
        channel = Plainline(settings, credentials, Http(session), Place("plainline:x"))
        with pytest.raises(ChannelError):
            await channel.receive("")
