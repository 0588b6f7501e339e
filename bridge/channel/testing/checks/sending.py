"""Checks of ``Sends``: a text arrives as it is, once, and every trouble means what the core takes it for."""

import asyncio
from collections.abc import Awaitable, Callable

import pytest

from bridge.channel.contract import (
    Delivered,
    Inbound,
    OutboundPart,
    Refused,
    SendOutcome,
    Sends,
    Withdrawn,
)
from bridge.channel.showing import EditsMessages, EndsTyping, RenewsTyping, ShowsTyping
from bridge.channel.testing.checks.stage import Stage, scenario
from bridge.channel.testing.kit import KitSent, Trouble, TypingKit
from bridge.channel.units import measure
from bridge.errors import BridgeError, ChannelError, CredentialsError, OutcomeUnknownError, UnreachableError

TEXTS = (
    "hello",
    "你好 😀 👩‍👩‍👧",
    "two\n\nparagraphs",
    "quote \" and \\ and ' and <b>&amp;</b>",
    "{json: [1]}",
)
ASKED_WAIT_SECONDS = 7.0
MOST_STEPS = 50_000


def sender(stage: Stage) -> Sends:
    if not isinstance(stage.channel, Sends):
        pytest.skip("it does not send")
    return stage.channel


def part(to: Inbound, text: str = "hello", number: int = 1) -> OutboundPart:
    return OutboundPart(to.to, to.reply_to, client_id(number), text, reply_id="reply-1")


def client_id(number: int) -> str:
    return f"{number:032x}"


def shown(stage: Stage, number: int) -> list[KitSent]:
    """What was shown of part ``number``; by its place where the platform knows no client ids."""
    sent = stage.kit.sent()
    if any(each.client_id for each in sent):
        return [each for each in sent if each.client_id == client_id(number)]
    return sent[number - 1 :]


def troubled(stage: Stage, trouble: Trouble) -> None:
    if not stage.kit.supports(trouble):
        pytest.skip(f"its platform never does this: {trouble}")
    stage.kit.trouble(trouble)


@scenario
async def test_a_text_arrives_exactly_and_under_its_client_id(stage: Stage) -> None:
    channel, to = sender(stage), await stage.greeting()
    for number, text in enumerate(TEXTS, 1):
        assert isinstance(await channel.send(part(to, text, number)), Delivered)
        assert [sent.text for sent in shown(stage, number)] == [text], (
            "it did not arrive so, or under another id"
        )
    assert len(stage.kit.sent()) == len(TEXTS), "more was shown than sent"


@scenario
async def test_an_unprompted_text_arrives(stage: Stage) -> None:
    channel, to = sender(stage), await stage.greeting()
    unprompted = OutboundPart(to.to, "", client_id(1), "good morning")
    outcome = await channel.send(unprompted)
    if isinstance(outcome, Refused):
        return  # some platforms only take answers, and say so
    assert isinstance(outcome, Delivered)
    assert [sent.text for sent in shown(stage, 1)] == ["good morning"]


@scenario
async def test_a_text_of_the_whole_limit_arrives(stage: Stage) -> None:
    channel, to, limit = sender(stage), await stage.greeting(), stage.spec.text_limit
    for number, piece in enumerate(("x", "界", "😀"), 1):
        text = piece * (limit.size // measure(piece, limit.unit))
        assert isinstance(await channel.send(part(to, text, number)), Delivered)
        assert [len(sent.text) for sent in shown(stage, number)] == [len(text)], f"{piece} was cut"


@scenario
async def test_one_client_id_is_shown_once_where_the_platform_remembers(stage: Stage) -> None:
    channel, to = sender(stage), await stage.greeting()
    if not stage.spec.idempotent_seconds:
        pytest.skip("its platform does not remember client ids")
    for _ in range(2):
        assert isinstance(await channel.send(part(to)), Delivered)
    assert len(shown(stage, 1)) == 1, "a retry was shown twice: the client id is not handed on"


@scenario
async def test_a_refusal_is_final(stage: Stage) -> None:
    channel, to = sender(stage), await stage.greeting()
    troubled(stage, Trouble.REFUSE)
    outcome = await channel.send(part(to))
    assert isinstance(outcome, Refused | Withdrawn), f"a refusal came back as {outcome!r}"
    if isinstance(outcome, Refused):
        assert outcome.reason, "a refusal says why"
        stage.keeps_quiet(f"{outcome}", "a refusal")
    assert not stage.kit.sent(), "it was refused, and shown"


@scenario
async def test_a_throttled_send_waits_at_least_as_long_as_asked(stage: Stage) -> None:
    channel, to = sender(stage), await stage.greeting()
    troubled(stage, Trouble.THROTTLE)
    error = await stage.failure(channel.send(part(to)))
    assert isinstance(error, UnreachableError), f"a throttle came back as {type(error).__name__}"
    assert error.retry_after_seconds >= ASKED_WAIT_SECONDS, (
        f"a wait of {error.retry_after_seconds} s is too short"
    )
    await goes_out_later(stage, channel, to)


@scenario
async def test_what_broke_before_it_was_taken_is_tried_again(stage: Stage) -> None:
    channel, to = sender(stage), await stage.greeting()
    troubled(stage, Trouble.BREAK_BEFORE)
    error = await stage.failure(channel.send(part(to)))
    assert isinstance(error, UnreachableError | OutcomeUnknownError), (
        f"it came back as {type(error).__name__}"
    )
    await goes_out_later(stage, channel, to)


@scenario
async def test_what_was_taken_without_an_answer_is_unknown(stage: Stage) -> None:
    channel, to = sender(stage), await stage.greeting()
    troubled(stage, Trouble.DROP_AFTER)
    error = await stage.failure(channel.send(part(to)))
    assert isinstance(error, OutcomeUnknownError), (
        f"it may have arrived, and came back as {type(error).__name__}"
    )
    assert len(shown(stage, 1)) == 1, "the kit should have taken it"
    if stage.spec.idempotent_seconds:
        assert isinstance(await channel.send(part(to)), Delivered)
        assert len(shown(stage, 1)) == 1, "the retry was shown again"


@scenario
async def test_refused_credentials_are_told_from_all_else(stage: Stage) -> None:
    channel, to = sender(stage), await stage.greeting()
    troubled(stage, Trouble.CREDENTIALS)
    error = await stage.failure(channel.send(part(to)))
    assert isinstance(error, CredentialsError), f"refused credentials came back as {type(error).__name__}"


@scenario
async def test_an_unreadable_answer_is_unknown(stage: Stage) -> None:
    channel, to = sender(stage), await stage.greeting()
    troubled(stage, Trouble.GARBAGE)
    error = await stage.failure(channel.send(part(to)))
    assert isinstance(error, OutcomeUnknownError), f"an unreadable answer came back as {type(error).__name__}"


@scenario
async def test_typing_is_harmless(stage: Stage) -> None:
    to = await stage.greeting()
    if not isinstance(stage.channel, ShowsTyping):
        pytest.skip("it shows no typing")
    await stage.channel.typing(to.to, to.reply_to)
    assert not stage.kit.sent(), "typing was shown as a message"
    if isinstance(stage.channel, RenewsTyping):
        assert 1 <= stage.channel.typing_seconds <= 300, "nobody sees a sign for so long"


@scenario
async def test_a_sign_of_typing_is_taken_away_once_more_and_after_a_restart(stage: Stage) -> None:
    to = await stage.greeting()
    if not isinstance(stage.channel, ShowsTyping) or not isinstance(stage.channel, EndsTyping):
        pytest.skip("its signs need no end")
    for _ in range(2):
        await stage.channel.typing(to.to, to.reply_to)
    for channel in (stage.channel, stage.fresh()):
        assert isinstance(channel, EndsTyping)
        await channel.typing_over(to.to, to.reply_to)
    assert not stage.kit.sent(), "the end of typing was shown as a message"
    if isinstance(stage.kit, TypingKit):
        assert stage.kit.typing() == 0, "a sign was left behind"


@scenario
async def test_a_sent_message_is_given_another_text(stage: Stage) -> None:
    channel, to = sender(stage), await stage.greeting()
    if not isinstance(channel, EditsMessages):
        pytest.skip("it edits nothing")
    outcome: SendOutcome = await channel.send(part(to))
    assert isinstance(outcome, Delivered)
    for number in range(20):
        await channel.edit(to.to, outcome.platform_id, f"step {number}")
    assert len(stage.kit.sent()) == 1, "an edit was sent as a message of its own"
    error = await stage.failure(channel.edit(to.to, "no message of ours", "x"))
    assert isinstance(error, ChannelError), f"an edit of nothing came back as {type(error).__name__}"


@scenario
async def test_a_send_may_be_cancelled_anywhere(stage: Stage) -> None:
    channel, to = sender(stage), await stage.greeting()
    steps = await cancel_everywhere(lambda: channel.send(part(to)))
    assert steps > 1, "a send awaits something"
    assert isinstance(await channel.send(part(to, number=2)), Delivered), "cancelling left it broken"


async def goes_out_later(stage: Stage, channel: Sends, to: Inbound) -> None:
    """The trouble is over: the same part goes out, and is shown once."""
    outcome: SendOutcome = await channel.send(part(to))
    assert isinstance(outcome, Delivered)
    assert len(shown(stage, 1)) == 1


async def cancel_everywhere(call: Callable[[], Awaitable[object]]) -> int:
    """Run ``call`` again and again, cancelled after more and more steps of the loop, until it gets done.

    Returns how many steps that took. A task that would not stop runs into the deadline.
    """

    async def attempt() -> None:
        try:
            await call()
        except BridgeError:
            return  # an answer, of a kind

    steps = 0
    while steps < MOST_STEPS:
        async with asyncio.TaskGroup() as group:
            task = group.create_task(attempt())
            for _ in range(steps):
                await asyncio.sleep(0)
            if task.done():
                return steps
            task.cancel()
        steps += 1 + steps // 8
    raise AssertionError(f"it did not get done in {MOST_STEPS} steps")
