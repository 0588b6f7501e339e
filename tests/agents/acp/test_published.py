"""Agents that others publish, as npm installs them: ``make agents`` puts them into ``.npm-agents``.

They are looked for on the PATH, in the folder ``TURNBRIDGE_NPM``, and there.
"""

import asyncio
import json
import os
import shutil
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest
from aiohttp import web
from structlog.testing import capture_logs

from bridge.agents.acp import prompting
from bridge.agents.acp.launch import PRESETS
from bridge.agents.contract import AgentError
from tests.agents.acp.stage import Stage, stage
from tests.agents.llm.server import ModelServer, Reply, call, calls, says

pytestmark = pytest.mark.check

HERE = Path(__file__).parents[3] / ".npm-agents"
PATIENT: dict[str, Any] = {"start_seconds": 50.0, "silent_seconds": 50.0, "cancel_seconds": 5.0}


@pytest.fixture(autouse=True)
def _programs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The programs on the PATH, and a user without any sign-in."""
    folders = [os.environ.get("TURNBRIDGE_NPM") or str(HERE), str(HERE)]
    binaries = [f"{folder}/node_modules/.bin" for folder in folders]
    monkeypatch.setenv("PATH", os.pathsep.join([os.environ["PATH"], *binaries]))
    home = tmp_path / "user"
    home.mkdir()
    monkeypatch.setenv("HOME", str(home))
    for name in [name for preset in PRESETS.values() for name in preset.env]:
        monkeypatch.delenv(name, raising=False)


def installed(preset: Any) -> None:
    program = PRESETS[preset].command[0]
    if shutil.which(program) is None:
        pytest.skip(f"{program} is not installed: make agents")


class Model(ModelServer):
    """Answers requests with tools by the script, and the others, which want a title, at once."""

    async def _answer(self, request: web.Request) -> web.StreamResponse:
        if request.method == "POST" and not (await request.json()).get("tools"):
            return await self._play(request, says("A title"))
        return await super()._answer(request)


@asynccontextmanager
async def opencode(folder: Path, *replies: Reply) -> AsyncIterator[tuple[Stage, Model]]:
    """OpenCode with a model that answers as the test says."""
    installed("opencode")
    async with Model(replies).serving() as model:
        options = {"baseURL": f"{model.address}/v1", "apiKey": "none"}
        local = {"npm": "@ai-sdk/openai-compatible", "name": "Local", "options": options,
                 "models": {"small": {"name": "Small", "tool_call": True}}}  # fmt: skip
        config = folder / "opencode.json"
        config.write_text(
            json.dumps({"provider": {"local": local}, "model": "local/small", "small_model": "local/small"})
        )
        env = [
            f"OPENCODE_CONFIG={config}",
            "OPENCODE_DISABLE_MODELS_FETCH=1",
            "OPENCODE_DISABLE_AUTOUPDATE=1",
        ]
        async with stage(folder, preset="opencode", env=env, **PATIENT) as here:
            assert isinstance(model, Model)
            yield here, model


async def test_opencode_runs_a_whole_turn_asks_and_attaches_a_file(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(prompting, "DUE_SECONDS", 20.0)  # it may ask late where others are at work
    shell = call("bash", json.dumps({"command": "echo hello > made.txt", "description": "Make a file"}))
    attach = call("turnbridge_chat_attach", json.dumps({"path": "made.txt"}))
    script = (calls(shell), calls(attach), says("It is ", "there."))
    async with opencode(tmp_path, *script) as (here, _):
        heard = await here.say("make a file and send it")
        assert (heard.steps[-1], (here.cwd / "made.txt").read_text()) == ("It is there.", "hello\n")
        (shell_call, *_) = heard.owned
        assert [one.allows for one in shell_call.options] == [True, False]
        assert "echo hello" in json.dumps(shell_call.call.arguments)
        assert shell_call.result is not None
        assert shell_call.result.success
        assert [name for name, _ in heard.calls] == ["chat_attach"]
        assert heard.results[0].success
        assert heard.usage is not None


async def test_opencode_goes_on_with_its_session_after_a_restart(tmp_path: Path) -> None:
    async with opencode(tmp_path, says("Hello Ann.")) as (here, _):
        assert (await here.say("I am Ann")).steps == ["Hello Ann."]
        memory, history = here.memory, here.history
    async with opencode(tmp_path, says("Still here.")) as (here, model):
        here.memory, here.history = memory, history
        assert (await here.say("and now?")).steps == ["Still here."]
        asked = [one["content"] for one in model.last["messages"] if one["role"] == "user"]
        assert len(asked) == 2  # its own memory, and nothing of ours before the question
        assert "This was said" not in json.dumps(asked)


async def test_opencode_makes_no_call_that_was_denied_and_can_be_stopped(tmp_path: Path) -> None:
    shell = call("bash", json.dumps({"command": "touch made.txt", "description": "Make a file"}))
    async with opencode(tmp_path, calls(shell), says("As you like.")) as (here, model):
        here.chooses = -1
        heard = await here.say("make a file")
        assert not (here.cwd / "made.txt").exists()
        assert heard.owned[0].result is not None
        assert not heard.owned[0].result.success
        model.script = [calls(call("bash", json.dumps({"command": "sleep 60", "description": "Wait"})))]
        here.chooses = 0
        heard = here.heard("wait")
        async with asyncio.TaskGroup() as tasks:
            turn = tasks.create_task(here.agent.run(here.turn("wait"), heard, heard))
            while not (heard.owned and "started" in heard.owned[0].told):
                await asyncio.sleep(0.02)
            turn.cancel()
        model.script = [says("On we go.")]
        assert (await here.say("go on")).steps == ["On we go."]


async def test_opencode_offers_its_models_and_modes(tmp_path: Path) -> None:
    async with opencode(tmp_path) as (here, _):
        offered = await here.agent.choices(here.turn(""))
        assert "local/small" in offered.models
        assert "plan" in offered.modes
        (finding,) = await here.agent.diagnose()
        assert "starts and begins sessions" in finding.text


@pytest.mark.parametrize(
    ("preset", "command"), [("claude-code", "claude /login"), ("codex", "codex login"), ("gemini", "gemini")]
)
async def test_a_missing_sign_in_is_said_in_the_chat_the_log_and_by_the_doctor(
    tmp_path: Path, preset: str, command: str
) -> None:
    installed(preset)
    with capture_logs() as logs:
        async with stage(tmp_path, preset=preset, **PATIENT) as here:
            with pytest.raises(AgentError) as error:
                await here.say("hello")
            (finding,) = await here.agent.diagnose()
    assert error.value.code == "sign_in_required"
    assert f"is not signed in on the machine of this bot: run {command} there" in str(error.value)
    assert [one["agent"] for one in logs if one["event"] == "acp.sign_in_required"] == ["coder"]
    assert "sign" in finding.text
    assert finding.cure.startswith(f"run {command} there")
