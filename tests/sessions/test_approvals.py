import asyncio

import pytest

from bridge.channel.testing.clock import settle
from bridge.sessions.approvals import Answer, Approvals, Decision, Policy, decide
from bridge.sessions.errors import RequestError
from bridge.tools.contract import Risk

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
