"""Sessions in a program: a program that answers in memory stands for it."""

import json
from pathlib import Path
from typing import Any

import pytest
from acp.exceptions import RequestError
from acp.schema import AgentCapabilities, InitializeResponse, RequestPermissionRequest, SessionNotification

from bridge.agents.acp.launch import Launch
from bridge.agents.acp.session import Session, can_load, close_session, load_session, open_session
from bridge.agents.acp.settings import AcpSettings
from bridge.agents.contract import AgentError

SELECT = {"id": "mode", "name": "M", "category": "mode", "type": "select", "currentValue": "a",
          "options": [{"value": "a", "name": "A"}, {"value": "b", "name": "B"}]}  # fmt: skip


class Program:
    """Answers each method as it is told; what it was asked is kept."""

    alive = True

    def __init__(self, capabilities: dict[str, Any] | None = None, **answers: Any) -> None:
        self.launch = Launch.of("x", AcpSettings(command=("prog",)))
        told = None if capabilities is None else AgentCapabilities.model_validate(capabilities)
        self.about = InitializeResponse(protocol_version=1, agent_capabilities=told)
        self.sessions: dict[str, Any] = {}
        self.answers, self.asked = answers, list[tuple[str, Any]]()

    async def request(self, method: str, params: Any, seconds: float) -> Any:
        self.asked.append((method, params))
        answer = self.answers.get(method.replace("/", "_"))
        if isinstance(answer, Exception):
            raise answer
        return answer


def refusing(code: int) -> RequestError:
    return RequestError(code, "no")


async def opened(program: Any) -> Session:
    return await open_session(program, Path("/w"), [{"name": "t"}], 1)


async def test_a_session_is_opened_with_its_folder_and_its_servers() -> None:
    program = Program({}, session_new={"sessionId": "s1"})
    session = await opened(program)
    assert program.asked == [("session_new", {"cwd": "/w", "mcpServers": [{"name": "t"}]})]
    assert (program.sessions, session.cost_micros) == ({"s1": session}, 0)


@pytest.mark.parametrize("answer", [None, {}, {"sessionId": 7}, refusing(-32603), refusing(-32000)])
async def test_without_a_session_there_is_an_error(answer: Any) -> None:
    with pytest.raises(AgentError):
        await opened(Program(session_new=answer))


@pytest.mark.parametrize(
    ("capabilities", "method"),
    [({"sessionCapabilities": {"resume": {}}}, "session_resume"), ({"loadSession": True}, "session_load")],
)
async def test_a_session_of_before_is_taken_up_as_the_program_can(
    capabilities: dict[str, Any], method: str
) -> None:
    program: Any = Program(capabilities, **{method: None})
    assert can_load(program)
    session = await load_session(program, "s1", Path("/w"), (), 1)
    assert session is not None
    assert (program.asked[0][0], session.cost_micros) == (method, None)


async def test_an_unknown_session_is_none_and_another_error_is_one() -> None:
    unknown: Any = Program({}, session_load=refusing(-32002))
    assert not can_load(unknown)
    assert not can_load(Program(None))  # type: ignore[arg-type]  # a program in memory
    assert await load_session(unknown, "s1", Path("/w"), (), 1) is None
    other: Any = Program({}, session_load=refusing(-32601))
    with pytest.raises(AgentError, match="to go on with a session"):
        await load_session(other, "s1", Path("/w"), (), 1)


async def test_a_mode_of_the_config_options_is_set_there_and_its_news_are_taken() -> None:
    changed = {**SELECT, "currentValue": "b"}
    program = Program(
        {}, session_new={"sessionId": "s", "configOptions": [SELECT]},
        session_set_config_option={"configOptions": [changed]},
    )  # fmt: skip
    session = await opened(program)
    await session.choose("model", "", 1)
    await session.choose("mode", "b", 1)
    assert program.asked[1:] == [
        ("session_set_config_option", {"sessionId": "s", "configId": "mode", "value": "b"})
    ]
    session.update(news(sessionUpdate="config_option_update", configOptions=[SELECT]))
    assert session.options.of("mode").current == "a"
    session.update(news(sessionUpdate="current_mode_update", currentModeId="b"))
    assert session.options.of("mode").current == "b"


def news(**update: Any) -> SessionNotification:
    return SessionNotification.model_validate({"sessionId": "s", "update": update})


async def test_only_dollars_are_counted() -> None:
    session = await opened(Program({}, session_new={"sessionId": "s"}))
    for cost, micros in (
        ({"amount": 1, "currency": "EUR"}, 0),
        (None, 0),
        ({"amount": 0.5, "currency": "usd"}, 500_000),
    ):
        session.update(news(sessionUpdate="usage_update", used=1, size=1, cost=cost))
        assert session.cost_micros == micros


@pytest.mark.parametrize("amount", ["NaN", "Infinity", "1e999", "1e300", "-1"])
async def test_a_cost_that_is_none_is_not_known_and_the_turn_hears_on(amount: str) -> None:
    session = await opened(Program({}, session_new={"sessionId": "s"}))
    session.update(news(sessionUpdate="usage_update", used=1, size=1, cost={"amount": 1, "currency": "USD"}))
    odd = json.loads(f'{{"amount": {amount}, "currency": "USD"}}')
    session.update(news(sessionUpdate="usage_update", used=1, size=1, cost=odd))
    assert session.cost_micros is None


async def test_an_id_that_another_session_has_is_refused() -> None:
    """Else what is said and asked in the one chat would come to the other."""
    program: Any = Program({}, session_new={"sessionId": "s"}, session_load={})
    first = await opened(program)
    with pytest.raises(AgentError, match="another"):
        await opened(program)
    assert await load_session(program, "s", Path("/w"), (), 1) is None
    assert program.sessions == {"s": first}


async def test_without_a_turn_a_question_is_cancelled() -> None:
    session = await opened(Program({}, session_new={"sessionId": "s"}))
    request = {"sessionId": "s", "toolCall": {"toolCallId": "c"}, "options": []}
    answer = await session.permission(RequestPermissionRequest.model_validate(request))
    assert answer.outcome.outcome == "cancelled"
    assert not session.is_busy


@pytest.mark.parametrize("answer", [None, refusing(-32603), AgentError("provider_error", "gone")])
async def test_closing_asks_those_that_can_and_minds_no_refusal(answer: Any) -> None:
    able: Any = Program(
        {"sessionCapabilities": {"close": {}}}, session_new={"sessionId": "s"}, session_close=answer
    )
    await close_session(await opened(able), 1)
    assert able.asked[-1] == ("session_close", {"sessionId": "s"})
    for told in (True, False):
        unable: Any = Program({} if told else None, session_new={"sessionId": "s"})
        await close_session(await opened(unable), 1)
        assert len(unable.asked) == 1


class Turn:
    """Hears the news, and chooses."""

    def __init__(self, chosen: str | None) -> None:
        self.chosen, self.heard = chosen, list[Any]()

    def update(self, update: Any) -> None:
        self.heard.append(update)

    async def permission(self, request: RequestPermissionRequest) -> str | None:
        return self.chosen


@pytest.mark.parametrize("chosen", ["once", None])
async def test_a_turn_hears_the_news_and_its_choice_is_the_answer(chosen: str | None) -> None:
    session = await opened(Program({}, session_new={"sessionId": "s"}))
    session.listener = turn = Turn(chosen)
    session.update(news(sessionUpdate="current_mode_update", currentModeId="b"))
    assert len(turn.heard) == 1
    request = {"sessionId": "s", "toolCall": {"toolCallId": "c"}, "options": []}
    answer = await session.permission(RequestPermissionRequest.model_validate(request))
    told = answer.model_dump(by_alias=True, exclude_none=True)["outcome"]
    expected = {"outcome": "cancelled"} if chosen is None else {"outcome": "selected", "optionId": chosen}
    assert told == expected


async def test_what_is_not_offered_or_is_refused_is_not_chosen() -> None:
    told = {
        "sessionId": "s",
        "modes": {"availableModes": [{"id": "ask"}, {"id": "plan"}], "currentModeId": "ask"},
        "models": {"availableModels": [{"modelId": "a"}, {"modelId": "b"}], "currentModelId": "a"},
    }
    program = Program({}, session_new=told, session_set_model=refusing(-32603))
    session = await opened(program)
    with pytest.raises(AgentError, match="has no mode x: there is ask, plan"):
        await session.choose("mode", "x", 1)
    with pytest.raises(AgentError, match="refused the model b"):
        await session.choose("model", "b", 1)
    await session.choose("mode", "plan", 1)
    assert program.asked[-1] == ("session_set_mode", {"sessionId": "s", "modeId": "plan"})
