"""What a program says and does in a turn, and every way in which it goes wrong."""

import asyncio
from pathlib import Path

import pytest
from acp.schema import PromptResponse, RequestPermissionRequest

from bridge.agents.acp import calls, frames, prompting, waiting
from bridge.agents.acp.prompting import Prompting
from bridge.agents.contract import AgentError, ToolCall
from bridge.channel.testing.clock import settle
from bridge.tools.contract import Risk
from tests.agents.acp.stage import stage
from tests.agents.acp.test_agent import failing
from tests.agents.talking import Talked


@pytest.mark.parametrize(("chooses", "answer"), [(0, "once"), (1, "slowly"), (2, "no"), (None, "cancelled")])
async def test_a_call_is_asked_with_all_its_options_but_lasting_ones(
    tmp_path: Path, chooses: int | None, answer: str
) -> None:
    async with stage(tmp_path) as here:
        here.chooses = chooses
        heard = await here.say("first shell=date")
        (own,) = heard.owned
        assert [(one.option_id, one.allows) for one in own.options] == [
            ("once", True), ("slowly", True), ("no", False)
        ]  # fmt: skip
        assert (own.call.name, own.risk, own.summary) == ("execute", Risk.PROCESS, "Run it")
        assert own.call.arguments == {"title": "Run it", "input": {"command": "date"}}
        assert own.result is not None
        if answer in ("once", "slowly"):
            assert own.told == ["asked", "started", "started", "one\n"]
            assert (own.result.success, own.result.output) == (True, "one\n")
        else:
            assert (own.told, own.result.success) == (["asked"], False)
        assert heard.steps == ["first ", f"{answer} "]  # the text before the call is a step


async def test_what_is_not_asked_is_told_as_it_runs(tmp_path: Path) -> None:
    async with stage(tmp_path) as here:
        heard = await here.say("unasked")
        (own,) = heard.owned
        assert own.call.arguments["files"] == ["/w/a.txt"]
        assert (own.risk, own.result) == (Risk.FILESYSTEM, own.result)
        assert own.result is not None
        assert own.result.output == "changed /w/a.txt"


async def test_a_call_that_runs_on_is_told_of_and_its_silence_is_no_hang(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(prompting, "DUE_SECONDS", 0.01)
    async with stage(tmp_path, silent_seconds=0.1) as here:
        heard = await here.say("runs=0.3")
        assert heard.owned[0].told == ["started"]


async def test_a_question_about_a_call_that_nobody_told_of_is_asked(tmp_path: Path) -> None:
    async with stage(tmp_path) as here:
        heard = await here.say("unknown")
        assert heard.owned[0].call.name == "Secret thing"
        assert heard.steps == ["once"]


async def test_a_second_question_about_a_call_is_one_of_its_own(tmp_path: Path) -> None:
    async with stage(tmp_path) as here:
        heard = await here.say("twice")
        assert [own.told[0] for own in heard.owned] == ["asked", "asked"]
        assert all(own.result is not None and own.result.success for own in heard.owned)
        here.chooses = 2
        heard = await here.say("both")
        assert heard.steps == ["no no"]
        assert len(heard.owned) == 2


def unanswered(heard: Talked) -> None:
    """Its owner is away."""
    real = heard.own

    async def own(*given: object) -> object:
        call = await real(*given)  # type: ignore[arg-type]  # as it came

        async def ask(options: object) -> None:
            await asyncio.Event().wait()

        call.ask = ask  # type: ignore[method-assign]  # nobody answers
        return call

    heard.own = own  # type: ignore[method-assign,assignment]  # as it is, but for that


async def test_a_program_that_no_longer_waits_for_the_answer_takes_its_question_back(tmp_path: Path) -> None:
    async with stage(tmp_path) as here:
        heard = here.heard("gives-up")
        unanswered(heard)
        await here.agent.run(here.turn("gives-up"), heard, heard)
        assert heard.steps == ["gave up"]
        assert heard.owned[0].result is not None
        while not (answers := here.answers("session/request_permission")):
            await asyncio.sleep(0.005)
        assert answers == [{"outcome": {"outcome": "cancelled"}}]


async def test_what_was_denied_and_done_all_the_same_is_completed_and_never_started(tmp_path: Path) -> None:
    async with stage(tmp_path) as here:
        here.chooses = 2
        heard = await here.say("defies")
        assert heard.owned[0].told == ["asked"]
        assert heard.owned[0].result is not None
        assert heard.owned[0].result.output == '{"done": 1}'


async def test_plans_are_one_call_thoughts_are_not_shown_and_links_are_words(tmp_path: Path) -> None:
    async with stage(tmp_path) as here:
        heard = await here.say("plan think link")
        (own,) = heard.owned
        assert (own.call.name, own.told) == ("plan", ["started", "○ think", "● think"])
        assert own.result is not None
        assert own.result.output == "● think"
        assert heard.steps == ["a (file:///a)"]


async def test_what_nobody_asked_for_changes_nothing(tmp_path: Path) -> None:
    async with stage(tmp_path) as here:
        heard = await here.say("odd end")
        assert heard.steps == ["end "]
        assert heard.usage is not None
        assert heard.usage.cost_micros == 12_500
        (refused,) = here.answers("fs/read_text_file")
        assert refused["code"] == -32601
        invalid, cancelled = here.answers("session/request_permission")
        assert invalid["code"] == -32602
        assert cancelled == {"outcome": {"outcome": "cancelled"}}


async def test_news_and_answers_after_the_end_are_dropped(tmp_path: Path) -> None:
    async with stage(tmp_path) as here:
        heard = await here.say("done after")
        while not here.answers("session/request_permission"):
            await asyncio.sleep(0.005)
        assert heard.steps == ["done "]
        assert here.answers("session/request_permission") == [{"outcome": {"outcome": "cancelled"}}]
        assert (await here.say("and on")).steps == ["and on "]


@pytest.mark.parametrize(
    ("reason", "said"),
    [
        ("max_tokens", "(The answer became too long and ends here.)\n\nhello"),
        ("refusal", "(I will not go on with this.)\n\nhello"),
        ("end_turn", "hello "),
    ],
)
async def test_why_it_stopped_is_said_above_the_answer(tmp_path: Path, reason: str, said: str) -> None:
    async with stage(tmp_path) as here:
        assert (await here.say(f"hello stop={reason}")).steps == [said]


@pytest.mark.parametrize(
    ("prompt", "said"),
    [
        ("die", "ended in the middle of its work"),
        ("huge silent", "ended in the middle of its work"),
        ("silent", "was silent for 0.3 s"),
        ("nonsense", "ended the turn with what is no answer"),
        ("fail=-32603", "refused the prompt (-32603): model trouble"),
    ],
)
async def test_what_goes_wrong_in_a_turn_fails_it_and_the_next_one_goes_on(
    tmp_path: Path, prompt: str, said: str
) -> None:
    async with stage(tmp_path, silent_seconds=0.3) as here:
        assert said in str(await failing(here, prompt))
        assert (await here.say("hello")).steps == ["hello "]
        assert len(here.told("session/new")) == 1  # it is the same session


async def test_a_missing_sign_in_may_be_told_as_late_as_in_a_prompt(tmp_path: Path) -> None:
    async with stage(tmp_path) as here:
        assert (await failing(here, "fail=-32000")).code == "sign_in_required"


async def test_more_news_than_are_taken_in_fail_the_turn(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(waiting, "MOST_WAITING", 10)
    async with stage(tmp_path) as here:
        heard = here.heard("many=200")

        async def delta(text: str) -> None:
            await asyncio.sleep(0.05)  # its client does not read

        heard.delta = delta  # type: ignore[method-assign]  # slowly
        with pytest.raises(AgentError) as error:
            await here.agent.run(here.turn("many=200"), heard, heard)
        assert error.value.code == "response_limit"


@pytest.mark.parametrize("prompt", ["many=40", "floods=40 wait"])
async def test_news_that_wait_are_bounded_by_their_size_too(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, prompt: str
) -> None:
    """Nobody reads, or answers; each piece is small, but not all of them."""
    monkeypatch.setattr(waiting, "MOST_CHARACTERS", 2000)
    async with stage(tmp_path) as here:
        heard = here.heard(prompt)
        unanswered(heard)

        async def delta(text: str) -> None:
            await asyncio.sleep(0.05)

        heard.delta = delta  # type: ignore[method-assign]  # slowly
        with pytest.raises(AgentError) as error:
            await here.agent.run(here.turn(prompt), heard, heard)
        assert error.value.code == "response_limit"


async def test_a_question_beyond_what_may_wait_is_turned_down() -> None:
    """Whoever asked has an answer, and the turn fails."""
    talked = Talked({}, Path("/"))
    turn = Prompting("x", talked, talked, 5.0)
    unanswered(talked)
    text = "x" * (waiting.MOST_CHARACTERS // 2)
    asked = [
        RequestPermissionRequest.model_validate(
            {"sessionId": "s", "toolCall": {"toolCallId": f"c{at}", "title": text}, "options": []}
        )
        for at in range(2)
    ]
    async with asyncio.timeout(5), asyncio.TaskGroup() as tasks:
        running = tasks.create_task(_fails(turn))
        first = tasks.create_task(turn.permission(asked[0]))
        await settle()
        assert await turn.permission(asked[1]) is None
        assert (await running).code == "response_limit"
        assert await first is None


async def _fails(turn: Prompting) -> AgentError:
    with pytest.raises(AgentError) as error:
        await turn.run()
    return error.value


async def test_news_of_a_call_that_its_owner_is_still_asked_about_are_bounded_too(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The owner may be away for an hour, and a program tells all of a call's output with each piece of it."""
    monkeypatch.setattr(waiting, "MOST_WAITING", 10)
    async with stage(tmp_path) as here:
        heard = here.heard("floods=50 wait")
        unanswered(heard)
        with pytest.raises(AgentError) as error:
            await here.agent.run(here.turn("floods=50 wait"), heard, heard)
        assert error.value.code == "response_limit"


async def test_only_a_few_questions_are_put_at_once_and_the_others_follow() -> None:
    """Each is a message to the owner, and a program can ask hundreds."""
    talked = Talked({}, Path("/"))
    here = Prompting("x", talked, talked, 5.0)
    go, open_at_once = asyncio.Event(), 0
    own = talked.own

    async def slow(*given: object) -> object:
        call = await own(*given)  # type: ignore[arg-type]  # as it came
        ask = call.ask

        async def waits(options: object) -> object:
            nonlocal open_at_once
            open_at_once += 1
            await go.wait()
            open_at_once -= 1
            return await ask(options)  # type: ignore[arg-type]  # as they came

        call.ask = waits  # type: ignore[method-assign,assignment]  # its owner takes a while
        return call

    talked.own = slow  # type: ignore[method-assign,assignment]  # as it is, but for that
    option = {"optionId": "yes", "name": "Yes", "kind": "allow_once"}
    async with asyncio.TaskGroup() as tasks:
        running = tasks.create_task(here.run())
        asked = [
            tasks.create_task(
                here.permission(
                    RequestPermissionRequest.model_validate(
                        {"sessionId": "s", "toolCall": {"toolCallId": str(at)}, "options": [option]}
                    )
                )
            )
            for at in range(3 * prompting.MOST_ASKED)
        ]
        await settle()
        assert open_at_once == prompting.MOST_ASKED
        go.set()
        assert [await one for one in asked] == ["yes"] * len(asked)
        here.over(PromptResponse(stop_reason="end_turn"))
        await running


async def test_calls_that_are_only_told_of_are_bounded(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(calls, "MOST_TOLD", 10)
    async with stage(tmp_path) as here:
        assert (await failing(here, "pending=11")).code == "tool_limit"
        assert (await here.say("pending=10 on")).steps == ["on "]


@pytest.mark.parametrize("over", [False, True])
async def test_what_asks_beyond_what_is_taken_in_is_answered(
    over: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Nobody of ours waits for an answer that never comes."""
    monkeypatch.setattr(waiting, "MOST_WAITING", 1)
    talked = Talked({}, Path("/"))
    asked = RequestPermissionRequest.model_validate(
        {"sessionId": "s", "toolCall": {"toolCallId": "c"}, "options": []}
    )
    turn = Prompting("x", talked, talked, 1.0)
    turn.update(object())
    if over:
        turn.close()
    async with asyncio.timeout(5):
        assert await turn.permission(asked) is None
        assert not (await turn.tool(ToolCall(name="chat_attach", arguments={}))).success


async def test_a_step_that_is_too_long_ends_the_turn_and_the_program_is_told(tmp_path: Path) -> None:
    async with stage(tmp_path) as here:
        heard = here.heard("hello wait")

        async def delta(text: str) -> None:
            raise AgentError("response_limit", "too long")

        heard.delta = delta  # type: ignore[method-assign]  # as the session would
        with pytest.raises(AgentError, match="too long"):
            await here.agent.run(here.turn("hello wait"), heard, heard)
        await here.until("session/cancel")


def test_limits_are_what_the_documents_say() -> None:
    assert (frames.FRAME_BYTES, waiting.MOST_WAITING) == (8_388_608, 10_000)
    assert waiting.MOST_CHARACTERS >= 2 * frames.FRAME_BYTES


async def test_our_own_tools_reach_the_gate_through_the_program(tmp_path: Path) -> None:
    async with stage(tmp_path) as here:
        (here.cwd / "a.txt").write_text("hello")
        heard = await here.say("tool=chat_attach:a.txt tool=chat_attach:none.txt")
        assert [name for name, _ in heard.calls] == ["chat_attach", "chat_attach"]
        assert [one.success for one in heard.results] == [True, False]
        assert heard.steps[-1] == "isError=True"


async def test_other_tools_of_ours_are_not_offered(tmp_path: Path) -> None:
    async with stage(tmp_path) as here:
        heard = await here.say("tool=write_file:a.txt")
        assert (heard.calls, heard.steps) == ([], ["isError=True"])
        listed = next(
            one["tool"]["result"]["tools"] for one in here.events() if one.get("tool", {}).get("id") == 1
        )
        assert "chat_attach" in [one["name"] for one in listed]
        assert "write_file" not in [one["name"] for one in listed]
