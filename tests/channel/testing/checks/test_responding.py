"""The checks of replies in responses: they pass on a sound adapter, and notice mistakes."""

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pytest

from bridge.channel import Answer, OutboundFile, Refused, UnreachableError
from bridge.channel.testing.checks import responding
from tests.channel.testing.checks.tools import Spoilt, checks_of, kit_with, notices, passes, skips, unable
from tests.outside.mistakes import adapter

CHANNEL = "wechat_mp"
WHOLE = "of_the_whole_limit_is_shown_with_the_note_that_more_waits"


def wrap_respond(around: Callable[..., Any]) -> Callable[[Any, Any], None]:
    def change(made: Any, http: Any) -> None:
        respond = made.respond
        made.respond = lambda reading, part: around(respond, reading, part)

    return change


async def trims(respond: Any, reading: Any, part: Any) -> Any:
    if isinstance(part, OutboundFile):
        return await respond(reading, part)
    return await respond(reading, replace(part, text=" ".join(part.text.split())))


async def cuts(respond: Any, reading: Any, part: Any) -> Any:
    if isinstance(part, OutboundFile):
        return await respond(reading, part)
    return await respond(reading, replace(part, text=part.text.encode()[:600].decode(errors="ignore")))


async def says_nothing(respond: Any, reading: Any, part: Any) -> Any:
    return Answer(200, b"success", "text/plain")


async def fails(respond: Any, reading: Any, part: Any) -> Any:
    return Answer(500)


async def refuses(respond: Any, reading: Any, part: Any) -> Any:
    return Refused("no")


async def shows_a_path(respond: Any, reading: Any, part: Any) -> Any:
    return (
        Refused(f"cannot send {part.path}")
        if isinstance(part, OutboundFile)
        else await respond(reading, part)
    )


async def gives_no_reason(respond: Any, reading: Any, part: Any) -> Any:
    return Refused("") if isinstance(part, OutboundFile) else await respond(reading, part)


async def answers_once(respond: Any, reading: Any, part: Any) -> Any:
    if reading.items[0].message_id in answered:
        return Refused("it was answered")
    answered.add(reading.items[0].message_id)
    return await respond(reading, part)


answered: set[str] = set()


def holds_for_ever(made: Any, http: Any) -> None:
    made.__class__.hold_seconds = 1e9


def answers_aloud(made: Any, http: Any) -> None:
    made.answer = lambda reading, results: Answer(500)


MISTAKES = [
    adapter("changed texts", "a_response_shows_the_text_to_its_sender", wrap_respond(trims)),
    adapter(
        "cut texts", "a_text_of_the_whole_limit_is_shown_with_the_note_that_more_waits", wrap_respond(cuts)
    ),
    adapter("nothing at all", "a_response_shows_the_text_to_its_sender", wrap_respond(says_nothing)),
    adapter("a failure", "a_response_shows_the_text_to_its_sender", wrap_respond(fails)),
    adapter("a refusal", "a_response_may_carry_what_answers_an_earlier_message", wrap_respond(refuses)),
    adapter("once each", "a_repeat_of_the_message_can_be_answered_as_well", wrap_respond(answers_once)),
    adapter("a path shown", "a_file_is_shown_or_refused_with_a_reason", wrap_respond(shows_a_path)),
    adapter("no reason", "a_file_is_shown_or_refused_with_a_reason", wrap_respond(gives_no_reason)),
    adapter("a hold for ever", "its_times_are_sound", holds_for_ever),
    adapter("plain errors", "a_plain_answer_shows_nothing", answers_aloud),
]


@pytest.mark.parametrize("check", checks_of(responding), ids=lambda check: check.__name__)
def test_a_sound_adapter_passes(check: Callable[[Any], None]) -> None:
    passes(check, CHANNEL)


@pytest.mark.parametrize("check", checks_of(responding), ids=lambda check: check.__name__)
def test_what_does_not_reply_in_its_responses_is_no_matter_of_theirs(check: Callable[[Any], None]) -> None:
    skips(check, "webhook", unable)


@pytest.mark.parametrize("spoilt", MISTAKES, ids=lambda spoilt: spoilt.by)
def test_mistakes_are_noticed(spoilt: Spoilt) -> None:
    notices(spoilt, CHANNEL)


async def later(respond: Any, reading: Any, part: Any) -> Any:
    if isinstance(part, OutboundFile):
        raise UnreachableError("the upload failed")
    return await respond(reading, part)


def test_a_file_whose_upload_fails_is_no_mistake() -> None:
    spoilt = adapter("", "", wrap_respond(later))
    responding.test_a_file_is_shown_or_refused_with_a_reason(kit_with(CHANNEL, spoilt.change))
