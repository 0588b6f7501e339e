import asyncio

import pytest

from bridge.agents.contract import Option
from bridge.channel.testing.clock import settle
from bridge.protocol.events import TurnEvent, TurnStarted
from bridge.sessions.approvals import Answer, Approvals, Decision, Policy, decide
from bridge.sessions.errors import RequestError
from bridge.tools.contract import Risk

ONCE, ALWAYS = Option("once", "This time", True), Option("always", "From now on", True)
NO = Option("no", "No", False)
RISKY = [risk for risk in Risk if risk is not Risk.READ_ONLY]


@pytest.mark.parametrize(
    ("policy", "read_only", "other"),
    [
        ("on-risk", Decision.ALLOW, Decision.ASK),
        ("always", Decision.ASK, Decision.ASK),
        ("never", Decision.ALLOW, Decision.DENY),
    ],
)
def test_the_policy_decides_by_risk(policy: Policy, read_only: Decision, other: Decision) -> None:
    assert decide(policy, Risk.READ_ONLY) is read_only
    assert {decide(policy, risk) for risk in RISKY} == {other}


async def test_each_question_is_answered_by_the_id_that_was_given_out() -> None:
    approvals, ids = Approvals(), list[str]()

    async def announce(approval_id: str) -> tuple[()]:
        ids.append(approval_id)
        return ()

    async with asyncio.TaskGroup() as tasks:
        first = tasks.create_task(approvals.ask(announce, 0))
        second = tasks.create_task(approvals.ask(announce, 0))
        await settle()
        approvals.resolve(ids[1], True)
        approvals.resolve(ids[0], False)
    assert (first.result(), second.result()) == (Answer(False), Answer(True))


async def test_a_question_is_answered_once() -> None:
    approvals, ids = Approvals(), list[str]()

    async def announce(approval_id: str) -> tuple[()]:
        ids.append(approval_id)
        approvals.resolve(approval_id, True)
        with pytest.raises(RequestError) as error:
            approvals.resolve(approval_id, False)
        assert error.value.code == "approval_not_found"
        return ()

    assert await approvals.ask(announce, 0) == Answer(True)


async def test_cancelling_withdraws_the_question() -> None:
    approvals, ids = Approvals(), list[str]()

    async def announce(approval_id: str) -> tuple[()]:
        ids.append(approval_id)
        return ()

    async with asyncio.TaskGroup() as tasks:
        asking = tasks.create_task(approvals.ask(announce, 0))
        await settle()
        asking.cancel()
    with pytest.raises(RequestError):
        approvals.resolve(ids[0], True)


async def test_a_question_that_nobody_answers_in_time_is_denied_and_withdrawn() -> None:
    approvals, ids = Approvals(), list[str]()

    async def announce(approval_id: str) -> tuple[()]:
        ids.append(approval_id)
        return ()

    assert await approvals.ask(announce, 0.01) == Answer(False)
    with pytest.raises(RequestError):
        approvals.resolve(ids[0], True)


@pytest.mark.parametrize(
    ("approved", "option", "answer"),
    [
        (True, None, Answer(True, ONCE)),
        (True, "always", Answer(True, ALWAYS)),
        (False, None, Answer(False, NO)),
        (False, "no", Answer(False, NO)),
    ],
)
async def test_an_answer_takes_the_option_it_names_or_the_first_of_its_kind(
    approved: bool, option: str | None, answer: Answer
) -> None:
    approvals = Approvals()

    async def announce(approval_id: str) -> tuple[()]:
        approvals.resolve(approval_id, approved, option)
        return ()

    assert await approvals.ask(announce, 0, (NO, ONCE, ALWAYS)) == answer


@pytest.mark.parametrize(("approved", "option"), [(True, "no"), (False, "once"), (True, "never"), (True, "")])
async def test_an_option_of_another_kind_or_of_none_is_refused_and_the_question_stays_open(
    approved: bool, option: str
) -> None:
    approvals = Approvals()

    async def announce(approval_id: str) -> tuple[()]:
        with pytest.raises(RequestError) as error:
            approvals.resolve(approval_id, approved, option)
        assert error.value.code == "invalid_request"
        approvals.resolve(approval_id, True, "always")
        return ()

    assert await approvals.ask(announce, 0, (ONCE, ALWAYS, NO)) == Answer(True, ALWAYS)


async def test_a_yes_where_only_no_is_offered_has_no_option_and_silence_takes_the_no() -> None:
    approvals = Approvals()

    async def agree(approval_id: str) -> tuple[()]:
        approvals.resolve(approval_id, True)
        return ()

    async def wait(approval_id: str) -> tuple[()]:
        return ()

    assert await approvals.ask(agree, 0, (NO,)) == Answer(True)
    assert await approvals.ask(wait, 0.01, (ONCE, NO)) == Answer(False, NO)


async def test_what_was_told_of_a_question_is_kept_while_it_waits() -> None:
    approvals, ids = Approvals(), list[str]()
    event = TurnStarted(request_id="r", session_id="s", turn_id="t", seq=1)

    async def announce(approval_id: str) -> list[TurnEvent]:
        ids.append(approval_id)
        return [event]

    async with asyncio.TaskGroup() as tasks:
        for _ in range(2):
            tasks.create_task(approvals.ask(announce, 0))
        await settle()
        assert approvals.told == [event, event]
        approvals.resolve(ids[0], True)
        await settle()
        assert approvals.told == [event]
        approvals.resolve(ids[1], True)
    assert approvals.told == []
