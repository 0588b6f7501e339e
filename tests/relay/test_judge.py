"""Who says yes to the calls of a turn."""

import asyncio
from typing import Any

import pytest

from bridge.channel.testing.clock import settle
from bridge.errors import SessionError
from bridge.protocol.events import ToolCompleted, ToolProposed
from bridge.protocol.ours import ApprovalRequested
from bridge.relay.judge import Answer, Call, Judge

IDS: dict[str, Any] = {"session_id": "s", "turn_id": "t", "seq": 1}


class Owner:
    """Answers when the test says so."""

    def __init__(self) -> None:
        self.asked: list[Call] = []
        self.withdrawn: list[str] = []
        self.answer: asyncio.Future[Answer] = asyncio.get_running_loop().create_future()

    async def ask(self, call: Call) -> Answer:
        self.asked.append(call)
        return await asyncio.shield(self.answer)

    def withdraw(self, approval_id: str) -> None:
        self.withdrawn.append(approval_id)


class Server:
    def __init__(self) -> None:
        self.resolved: list[tuple[str, Answer]] = []
        self.gone = False

    async def resolve(self, approval_id: str, answer: Answer) -> None:
        if self.gone:
            raise SessionError("gone")
        self.resolved.append((approval_id, answer))


def requested(call: str = "c1", request: str = "m1", **fields: Any) -> ApprovalRequested:
    wanted: dict[str, Any] = {
        "name": "write_file",
        "risk": "filesystem",
        "cwd": "/w",
        "summary": "s",
        **fields,
    }
    return ApprovalRequested(request_id=request, approval_id=f"a-{call}", call_id=call, **wanted, **IDS)


def completed(call: str = "c1") -> ToolCompleted:
    return ToolCompleted(
        request_id="m1", call_id=call, name="write_file", success=True, output="", truncated=False, **IDS
    )


@pytest.mark.parametrize(
    ("tools", "asked", "event", "approved"),
    [
        (False, True, requested(), False),
        (False, False, requested(risk="read_only"), False),
        (True, False, requested(), True),
        (True, True, requested(risk="read_only"), True),
        (True, True, requested(name="chat_attach", risk="network"), True),
        (True, True, requested(request="background:1"), False),
        (True, False, requested(request="background:1"), True),
    ],
)
async def test_what_is_decided_at_once(
    tools: bool, asked: bool, event: ApprovalRequested, approved: bool
) -> None:
    owner, server = Owner(), Server()
    async with asyncio.TaskGroup() as tasks:
        judge = Judge("m1", tools, owner if asked else None, server.resolve, tasks)
        await judge.see(event)
    assert server.resolved == [("a-c1", Answer(approved))]
    assert owner.asked == []


@pytest.mark.parametrize("approved", [True, False])
async def test_a_risky_call_is_put_to_the_owner_with_its_arguments(approved: bool) -> None:
    owner, server = Owner(), Server()
    async with asyncio.TaskGroup() as tasks:
        judge = Judge("m1", True, owner, server.resolve, tasks)
        proposal = {"call_id": "c1", "name": "write_file", **IDS}
        await judge.see(ToolProposed(request_id="m1", arguments={"path": "a"}, **proposal))
        await judge.see(ToolProposed(request_id="m2", arguments={"path": "b"}, **proposal))
        await judge.see(requested())
        await settle()
        assert owner.asked == [Call("a-c1", "write_file", {"path": "a"}, "s", "/w")]
        owner.answer.set_result(Answer(approved))
    assert server.resolved == [("a-c1", Answer(approved))]
    assert owner.withdrawn == ["a-c1"]


async def test_a_call_that_ended_otherwise_is_withdrawn_and_so_is_all_at_the_turn_s_end() -> None:
    owner, server = Owner(), Server()
    async with asyncio.TaskGroup() as tasks:
        judge = Judge("m1", True, owner, server.resolve, tasks)
        for call in ("c1", "c2", "c3"):
            await judge.see(requested(call))
        await settle()
        await judge.see(completed("c2"))
        await judge.see(completed("c9"))
        assert owner.withdrawn == ["a-c2"]
        judge.over()
    assert owner.withdrawn == ["a-c2", "a-c1", "a-c3"]
    assert server.resolved == []


async def test_a_session_that_breaks_leaves_its_questions_open() -> None:
    owner, server = Owner(), Server()
    async with asyncio.TaskGroup() as tasks:
        judge = Judge("m1", True, owner, server.resolve, tasks)
        await judge.see(requested())
        await settle()
        judge.stop()
    assert (owner.withdrawn, server.resolved) == ([], [])


async def test_an_answer_that_finds_no_server_harms_nothing() -> None:
    owner, server = Owner(), Server()
    server.gone = True
    async with asyncio.TaskGroup() as tasks:
        await Judge("m1", True, owner, server.resolve, tasks).see(requested())
        owner.answer.set_result(Answer(True))
    assert owner.withdrawn == []
