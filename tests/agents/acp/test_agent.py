"""Turns with a program that speaks the protocol: what is said and chosen, and how sessions go on."""

import asyncio
from pathlib import Path
from typing import Any

import pytest
from structlog.testing import capture_logs

from bridge.agents.acp import SPEC
from bridge.agents.acp.settings import AcpSettings
from bridge.agents.contract import AgentError, AgentPlace, Choice, Choices, HistoryEntry, Role
from bridge.channel.testing.clock import FakeClock
from bridge.paths import Home
from tests.agents.acp.stage import Stage, alive, stage

LOST = "(My earlier session could not be found any more, so I have begun a new one.)"


async def failing(here: Stage, prompt: str) -> AgentError:
    with pytest.raises(AgentError) as error:
        await here.say(prompt)
    return error.value


def prompts(here: Stage) -> list[str]:
    return [one["prompt"][0]["text"] for one in here.told("session/prompt")]


async def test_a_turn_is_a_prompt_and_what_is_said_is_its_answer(tmp_path: Path) -> None:
    async with stage(tmp_path) as here:
        heard = await here.say("hello there")
        assert heard.previews == ["hello ", "there "]
        assert heard.steps == ["hello there "]
        assert heard.usage is not None
        assert (heard.usage.steps, heard.usage.input_tokens, heard.usage.output_tokens) == (1, 10, 20)
        assert heard.usage.cost_micros == 0
        assert here.told("session/new")[0]["cwd"] == str(here.cwd)
        initialized = here.told("initialize")[0]
        assert initialized["clientCapabilities"]["fs"] == {"readTextFile": False, "writeTextFile": False}


async def test_a_session_goes_on_in_its_process(tmp_path: Path) -> None:
    async with stage(tmp_path) as here:
        for prompt in ("one", "two"):
            await here.say(prompt)
        assert len(here.told("initialize")) == len(here.told("session/new")) == 1
        assert prompts(here) == ["one", "two"]


async def test_it_never_answers_a_session_without_tools(tmp_path: Path) -> None:
    async with stage(tmp_path) as here:
        here.tools = {}
        assert "only answers in sessions with tools" in str(await failing(here, "hello"))
        assert await here.agent.choices(here.turn("")) == Choices()
        assert here.events() == []
    assert SPEC.own_tools


@pytest.mark.parametrize("resumes", [True, False])
async def test_after_a_restart_the_session_is_loaded_and_its_past_is_not_said_again(
    tmp_path: Path, resumes: bool
) -> None:
    resuming: dict[str, Any] = {"sessionCapabilities": {"resume": {}}}
    capabilities = resuming if resumes else {"loadSession": True}
    async with stage(tmp_path, capabilities=capabilities) as here:
        await here.say("one")
        memory, history = here.memory, here.history
    async with stage(tmp_path, capabilities=capabilities) as here:
        here.memory, here.history = memory, history
        heard = await here.say("two")
        assert len(here.told("session/resume" if resumes else "session/load")) == 1
        assert len(here.told("session/new")) == 1
        assert (heard.steps, prompts(here)) == (["two "], ["one", "two"])


@pytest.mark.parametrize("code", [-32602, -32603, -32002])
async def test_case_15_and_98_an_unknown_session_leads_to_one_fresh_one_which_is_told(
    tmp_path: Path, code: int
) -> None:
    async with stage(tmp_path) as here:
        await here.say("one")
        memory, history = here.memory, here.history
    async with stage(tmp_path, f"load{code}") as here:
        here.memory, here.history = memory, history
        heard = await here.say("two")
        assert heard.steps == [f"{LOST}\n\ntwo"]
        assert (len(here.told("session/load")), len(here.told("session/new"))) == (1, 2)
        assert "User: one\nYou: one" in prompts(here)[-1]  # it is told what it does not know
        assert prompts(here)[-1].endswith("[Now:]\n\ntwo")
        assert (await here.say("三")).steps == ["三 "]
        assert len(here.told("session/load")) == 1


async def test_case_98_another_error_of_loading_fails_the_turn_and_forgets_nothing(tmp_path: Path) -> None:
    async with stage(tmp_path) as here:
        await here.say("one")
        memory = here.memory
    async with stage(tmp_path, "load-32001") as here:
        here.memory = memory
        assert "(-32001)" in str(await failing(here, "two"))
        assert (here.memory, len(here.told("session/new"))) == (memory, 1)


async def test_a_session_that_is_lost_only_as_it_is_asked_is_begun_anew_once(tmp_path: Path) -> None:
    async with stage(tmp_path) as here:
        await here.say("one")
        assert "(-32603)" in str(await failing(here, "fail=-32603"))
        assert "(-32002)" in str(await failing(here, "fail=-32002"))  # by the new one, too
        assert len(here.told("session/new")) == 2


async def test_an_agent_that_cannot_load_begins_anew_and_is_told_what_was_said(tmp_path: Path) -> None:
    async with stage(tmp_path, capabilities={}) as here:
        await here.say("one")
        memory, history = here.memory, here.history
    async with stage(tmp_path, capabilities={}) as here:
        here.memory, here.history = memory, history
        assert (await here.say("two")).steps == ["two "]
        assert here.told("session/load") == []
        assert "User: one" in prompts(here)[-1]


async def test_what_another_agent_said_meanwhile_is_told_and_nothing_twice(tmp_path: Path) -> None:
    async with stage(tmp_path) as here:
        here.history = (
            HistoryEntry(role=Role.USER, text="old"),
            HistoryEntry(role=Role.ASSISTANT, text="ok"),
        )
        await here.say("one")
        await here.say("two")
        here.history += (
            HistoryEntry(role=Role.USER, text="other"),
            HistoryEntry(role=Role.ASSISTANT, text="so"),
        )
        await here.say("three", added=("and more",))
        assert "User: old\nYou: ok" in prompts(here)[0]
        assert prompts(here)[1] == "two"
        assert "one" not in prompts(here)[2]
        assert "User: other\nYou: so" in prompts(here)[2]
        assert prompts(here)[2].endswith("three\n\nand more")


async def test_another_folder_is_another_session_there(tmp_path: Path) -> None:
    async with stage(tmp_path) as here:
        await here.say("one")
        here.cwd = tmp_path
        await here.say("two")
        assert [one["cwd"] for one in here.told("session/new")] == [str(tmp_path / "work"), str(tmp_path)]
        assert here.told("session/load") == []


async def test_who_leaves_takes_the_process_along_and_may_come_back(tmp_path: Path) -> None:
    async with stage(tmp_path) as here:
        await here.say("one")
        await here.agent.leave("s")
        await here.agent.leave("never here")
        await here.say("two")
        assert (len(here.told("initialize")), len(here.told("session/load"))) == (2, 1)


async def test_a_shared_process_serves_all_sessions_and_is_told_who_leaves(tmp_path: Path) -> None:
    capabilities = {"loadSession": True, "sessionCapabilities": {"close": {}}}
    async with stage(tmp_path, shared=True, capabilities=capabilities) as here:
        for session in ("s", "t"):
            here.memory = ""
            await here.say("hello", session)
        assert (len(here.told("initialize")), len(here.told("session/new"))) == (1, 2)
        await here.agent.leave("t")
        await here.until("session/close")


async def test_models_and_modes_are_offered_and_chosen_and_taken_back(tmp_path: Path) -> None:
    async with stage(tmp_path) as here:
        offered = await here.agent.choices(here.turn(""))
        assert offered == Choices({"small": "Small", "big": "Big"}, {"ask": "Ask", "plan": "Plan"})
        for choice in (Choice("big", "plan"), Choice("big", "plan"), Choice()):
            here.choice = choice
            await here.say("hello")
        assert [one["modelId"] for one in here.told("session/set_model")] == ["big", "small"]
        assert [one["modeId"] for one in here.told("session/set_mode")] == ["plan", "ask"]
        assert len(here.told("session/new")) == 1  # the one that told the choices
        here.choice = Choice("huge")
        assert "has no model huge: there is small, big" in str(await failing(here, "hello"))


async def test_a_profile_s_model_is_its_default(tmp_path: Path) -> None:
    async with stage(tmp_path, model="big", mode="plan") as here:
        assert here.agent.model == "big"
        await here.say("hello")
        assert (len(here.told("session/set_model")), len(here.told("session/set_mode"))) == (1, 1)


async def test_a_model_that_is_refused_fails_the_turn_with_the_reason(tmp_path: Path) -> None:
    async with stage(tmp_path, "model", model="big") as here:
        assert "refused the model big (-32603): not in your plan" in str(await failing(here, "hello"))


async def test_a_missing_sign_in_is_said_with_its_cure_and_logged_once(tmp_path: Path) -> None:
    with capture_logs() as logs:
        async with stage(tmp_path, "auth") as here:
            for _ in range(2):
                error = await failing(here, "hello")
                assert (error.code, "not signed in" in str(error)) == ("sign_in_required", True)
    assert [one["agent"] for one in logs if one["event"] == "acp.sign_in_required"] == ["coder"]


async def test_a_cancelled_turn_is_told_to_the_program_whose_session_goes_on(tmp_path: Path) -> None:
    async with stage(tmp_path) as here:
        await stopped(here, "wait")
        heard = await here.say("hello")
        assert (heard.steps, len(here.told("session/cancel"))) == (["hello "], 1)
        assert len(here.told("initialize")) == 1


async def test_a_cancelled_turn_tells_what_it_has_cost(tmp_path: Path) -> None:
    async with stage(tmp_path) as here:
        heard = here.heard("odd go wait")
        async with asyncio.TaskGroup() as tasks:
            running = tasks.create_task(here.agent.run(here.turn("odd go wait"), heard, heard))
            while not heard.previews:
                await asyncio.sleep(0.005)
            running.cancel()
        assert heard.so_far is not None
        assert heard.so_far.cost_micros == 12_500


async def stopped(here: Stage, prompt: str) -> None:
    """Begin a turn, and cancel it as soon as it has said something."""
    heard = here.heard(prompt)
    async with asyncio.TaskGroup() as tasks:
        running = tasks.create_task(here.agent.run(here.turn(prompt), heard, heard))
        while not heard.previews and not heard.owned:
            await asyncio.sleep(0.005)
        running.cancel()
    here.memory = heard.memory
    assert heard.steps == []


async def test_case_96_a_program_that_goes_on_after_a_cancel_is_ended_with_its_children(
    tmp_path: Path,
) -> None:
    async with stage(tmp_path) as here:
        await stopped(here, "deaf")
        heard = await here.say("hello")
        assert heard.steps == ["hello "]
        assert (len(here.told("initialize")), len(here.told("session/load"))) == (2, 1)
        (pids,) = [one["pids"] for one in here.events() if "pids" in one]
        while any(map(alive, pids)):
            await asyncio.sleep(0.005)


async def test_case_97_a_session_that_waits_for_its_owner_delays_no_other(tmp_path: Path) -> None:
    async with stage(tmp_path, shared=True) as here:
        waiting = here.heard("shell")
        asked, go = asyncio.Event(), asyncio.Event()

        async def own(*given: Any) -> Any:
            call = await type(waiting).own(waiting, *given)
            return replace_ask(call, asked, go)

        waiting.own = own  # type: ignore[method-assign,assignment]  # its owner takes a while
        async with asyncio.TaskGroup() as tasks:
            tasks.create_task(here.agent.run(here.turn("shell"), waiting, waiting))
            await asked.wait()
            assert (await here.say("hello", "t")).steps == ["hello "]
            go.set()
        assert waiting.steps == ["once "]


def replace_ask(call: Any, asked: asyncio.Event, go: asyncio.Event) -> Any:
    real = call.ask

    async def ask(options: Any) -> Any:
        asked.set()
        await go.wait()
        return await real(options)

    call.ask = ask
    return call


async def test_of_a_shared_process_that_hangs_in_one_session_the_others_end_their_turns(
    tmp_path: Path,
) -> None:
    async with stage(tmp_path, shared=True) as here:
        waiting = here.heard("wait")
        async with asyncio.TaskGroup() as tasks:
            other = tasks.create_task(here.agent.run(here.turn("wait", "t"), waiting, waiting))
            while not waiting.previews:
                await asyncio.sleep(0.005)
            await stopped(here, "deaf")
            assert (await here.say("hello")).steps == ["hello "]
            assert len(here.told("initialize")) == 2
            assert not other.done()
            other.cancel()


def test_it_is_called_as_its_program_until_a_model_is_set() -> None:
    place = AgentPlace("coder", Home(Path("/nonexistent")), FakeClock())
    assert SPEC.create(AcpSettings(command=("/bin/x",)), place).model == "x"
    assert SPEC.create(AcpSettings(preset="codex"), place).model == "Codex"


async def test_its_processes_end_with_it(tmp_path: Path) -> None:
    async with stage(tmp_path) as here:
        await stopped(here, "deaf")
        (pids,) = [one["pids"] for one in here.events() if "pids" in one]
    assert not any(map(alive, pids))
