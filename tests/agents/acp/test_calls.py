"""Calls as programs tell of them, whatever they leave out."""

from pathlib import Path
from typing import Any

import pytest
from acp.schema import PermissionOption, RequestPermissionRequest, SessionNotification, ToolCallUpdate

from bridge.agents.acp.calls import ARGUMENT_BYTES, OUTPUT_BYTES, Calls, offered
from bridge.agents.contract import AgentError
from bridge.sessions.arguments import plain
from bridge.tools.contract import Risk
from tests.agents.talking import Owned, Talked

OPTIONS = [("always", "allow_always"), ("once", "allow_once"), ("never", "reject_always")]


def options(*kinds: tuple[str, str]) -> list[PermissionOption]:
    return [
        PermissionOption.model_validate({"optionId": name, "name": name.title(), "kind": kind})
        for name, kind in kinds
    ]


def told(what: str = "tool_call_update", **fields: Any) -> Any:
    update = {"sessionUpdate": what, "toolCallId": "c", **fields}
    return SessionNotification.model_validate({"sessionId": "s", "update": update}).update


def asked(**fields: Any) -> ToolCallUpdate:
    request = {"sessionId": "s", "toolCall": {"toolCallId": "c", **fields}, "options": []}
    return RequestPermissionRequest.model_validate(request).tool_call


def text(content: str) -> dict[str, Any]:
    return {"type": "content", "content": {"type": "text", "text": content}}


class Desk:
    def __init__(self, chooses: int | None = 0) -> None:
        self.talked = Talked({}, Path("/"), chooses=chooses)
        self.calls = Calls(self.talked)

    async def tell(self, *updates: Any) -> list[Owned]:
        for update in updates:
            await self.calls.tell(update)
        return self.talked.owned


def test_a_lasting_permission_is_offered_only_where_there_is_no_other() -> None:
    assert [one.option_id for one in offered(options(*OPTIONS))] == ["once", "never"]
    assert [one.allows for one in offered(options(("a", "allow_always"), ("b", "reject_once")))] == [
        True,
        False,
    ]


@pytest.mark.parametrize(
    ("kind", "title", "name", "risk"),
    [
        ("execute", "ls", "execute", Risk.PROCESS),
        ("fetch", "", "fetch", Risk.NETWORK),
        ("read", "a.txt", "read", Risk.FILESYSTEM),
        ("other", "mcp tool", "mcp tool", Risk.PROCESS),
        (None, None, "other", Risk.PROCESS),
    ],
)
async def test_a_call_is_named_by_its_kind_and_judged_by_it(
    kind: str | None, title: str | None, name: str, risk: Risk
) -> None:
    (own,) = await Desk().tell(told("tool_call", kind=kind, title=title or "", status="completed"))
    assert (own.call.name, own.risk) == (name, risk)


async def test_what_is_told_bit_by_bit_is_proposed_whole_when_it_is_asked() -> None:
    desk = Desk()
    await desk.tell(told("tool_call", title="bash", kind="execute"), told(status="in_progress"))
    assert (desk.talked.owned, desk.calls.due, desk.calls.running) == ([], True, True)
    assert await desk.calls.ask(asked(rawInput={"command": "ls"}), options(*OPTIONS)) == "once"
    assert desk.talked.owned[0].call.arguments == {"title": "bash", "input": {"command": "ls"}}
    assert not desk.calls.due


async def test_output_is_shown_as_it_grows_and_anew_where_it_changes() -> None:
    (own,) = await Desk().tell(
        told(status="in_progress", content=[text("a")]),
        told(status="in_progress", content=[text("ab")]),
        told(status="in_progress", content=[text("ab")]),
        told(status="in_progress", content=[text("x")]),
        told(status="failed"),
        told(status="completed", content=[text("later")]),
    )
    assert own.told == ["started", "a", "started", "b", "started", "started", "x"]
    assert own.result is not None
    assert (own.result.success, own.result.output) == (False, "x")


@pytest.mark.parametrize("depth", [200, 100_000])
async def test_arguments_that_no_gate_takes_are_told_as_far_as_they_can_be(depth: int) -> None:
    """Else one such call of a program's, as wide trees of files are, would end the whole turn."""
    deep: Any = float("nan")
    for _ in range(depth):
        deep = [deep]
    calls: Any = Talked({}, Path("/"))
    made = Calls(calls)
    update = told(title="t", status="completed").model_copy(update={"raw_input": deep, "raw_output": deep})
    await made.tell(update)
    (own,) = calls.owned
    assert plain(own.call.arguments)["title"] == "t"
    assert own.result is not None


async def test_long_output_and_large_arguments_are_cut() -> None:
    (own,) = await Desk().tell(
        told(
            title="t", rawInput={"a": "é" * ARGUMENT_BYTES}, rawOutput="é" * OUTPUT_BYTES, status="completed"
        )
    )
    assert own.result is not None
    assert (len(own.result.output.encode()), own.result.truncated) == (OUTPUT_BYTES, True)
    assert own.call.arguments["cut"].startswith('{"title": "t", "input": {"a": "é')
    assert len(own.call.arguments["cut"]) <= 4000


async def test_of_an_edit_without_input_the_new_text_is_shown() -> None:
    diff = {"type": "diff", "path": "/a", "newText": "new"}
    terminal = {"type": "terminal", "terminalId": "t"}
    (own,) = await Desk().tell(told(kind="edit", content=[diff, terminal], status="completed"))
    assert own.call.arguments == {"changes": [{"path": "/a", "new": "new"}]}
    assert own.result is not None
    assert own.result.output == "changed /a"


async def test_a_denied_call_is_not_started_and_asked_again_only_aside() -> None:
    desk = Desk(chooses=1)
    assert await desk.calls.ask(asked(), options(*OPTIONS)) == "never"
    await desk.tell(told(status="in_progress", content=[text("a")]))
    assert desk.talked.owned[0].told == ["asked"]
    assert await desk.calls.ask(asked(), options(*OPTIONS)) == "never"
    assert len(desk.talked.owned) == 2
    assert desk.talked.owned[1].result is not None
    desk.talked.chooses = None
    assert await desk.calls.ask(asked(), options(*OPTIONS)) is None


async def test_one_that_runs_on_is_told_of_when_it_is_due() -> None:
    desk = Desk()
    await desk.tell(told(status="in_progress"))
    await desk.calls.start_due()
    await desk.calls.start_due()
    assert desk.talked.owned[0].told == ["started"]
    assert desk.calls.knows("c")


async def test_more_calls_than_one_turn_may_tell_of_end_it(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("bridge.agents.acp.calls.MOST_TOLD", 1)
    desk = Desk()
    await desk.calls.tell(told("tool_call", title="one"))
    other = SessionNotification.model_validate(
        {"sessionId": "s", "update": {"sessionUpdate": "tool_call", "toolCallId": "d", "title": "two"}}
    ).update
    with pytest.raises(AgentError, match="over 1 calls"):
        await desk.calls.tell(other)  # type: ignore[arg-type]  # as it was read
