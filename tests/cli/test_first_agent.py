"""The questions about the agent: only what it needs, nothing in vain, and its check before it is saved."""

import asyncio
from pathlib import Path

import pytest

from bridge import registry
from bridge.agents import llm
from bridge.cli.answers import Given, Person
from bridge.cli.first_agent import ChosenAgent, ask, keep_key
from bridge.errors import ConfigError
from bridge.paths import Home
from tests.agents.llm.server import ModelServer, Reply


def chosen(lines: str, channel: str = "feishu", *, checks: bool = False) -> ChosenAgent:
    return ask(Given(lines), channel, checks=checks)


def test_where_nothing_is_said_the_offline_one_answers(monkeypatch: pytest.MonkeyPatch) -> None:
    assert chosen("") == ChosenAgent("echo")

    class One:
        def names(self) -> list[str]:
            return ["only"]

    monkeypatch.setattr(registry, "agents", One)
    assert chosen("agent=other") == ChosenAgent("only")


def test_what_must_be_installed_is_said_before_anything_is_asked_in_vain(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(llm, "LIBRARIES", ("no_such_library",))
    with pytest.raises(ConfigError, match=r"^agent: .*pip install '\.\[llm\]'"):
        chosen("agent=llm")
    with pytest.raises(ConfigError, match=r"^agent: choose one of"):
        chosen("agent=nobody")


def test_a_known_providers_key_may_be_in_the_environment(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("DEEPSEEK_API_KEY", "sk-there")
    found = chosen("agent=llm\nagent_provider=deepseek")
    assert (found.name, found.key) == ("deepseek", "")
    assert found.table == {
        "type": "llm", "provider": "deepseek", "model": "deepseek-chat", "api_key.env": "DEEPSEEK_API_KEY",
    }  # fmt: skip
    assert chosen("agent=llm\nagent_provider=deepseek\nagent_key=sk-1").key == "sk-1"


def test_a_model_of_this_machine_needs_no_key() -> None:
    found = chosen("agent=llm\nagent_provider=ollama")
    assert (found.table, found.key) == ({"type": "llm", "provider": "ollama", "model": "qwen3:8b"}, "")


@pytest.mark.parametrize(
    ("lines", "words"),
    [
        ("agent_provider=nobody", "agent_provider: choose one of"),
        ("agent_provider=qwen", "agent_key: it needs a key"),
        ("agent_provider=qwen\nagent_key=sk 1", "agent_key: a key has no such characters"),
        ("agent_provider=compatible\nagent_base_url=nowhere", "agent_base_url: .*must be an address"),
        ("agent_provider=vllm", "agent_model: .*at least 1 character"),
    ],
)
def test_a_wrong_answer_is_told_by_its_key(lines: str, words: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("DASHSCOPE_API_KEY", raising=False)
    with pytest.raises(ConfigError, match=f"^{words}"):
        chosen(f"agent=llm\n{lines}")


def test_a_program_answers_the_owner_alone_so_somebody_answers_everybody_else() -> None:
    found = chosen("agent=acp")
    assert (found.name, found.table) == ("claude-code", {"type": "acp", "preset": "claude-code"})
    assert found.account == {"remote_tools": "owner", "approvals": "ask", "guest_agent": "echo"}
    assert chosen("agent=acp\nagent_preset=codex", "console").account == {}
    for lines, words in (
        ("agent_guests=acp", "agent_guests: choose one of: echo"),
        ("agent_preset=other", "agent_command: a command is"),
        ('agent_preset=other\nagent_command="', "agent_command: a command is"),
    ):
        with pytest.raises(ConfigError, match=f"^{words}"):
            chosen(f"agent=acp\n{lines}")


class Twice(Given):
    """A person who answers anew once, and then keeps what there is."""

    asked = 0

    def once_more(self, question: str) -> bool:
        self.asked += 1
        return self.asked == 1


async def test_what_is_wrong_is_told_and_may_be_answered_anew_or_kept(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("OWN_KEY", "sk-s3cr3t")
    async with ModelServer().serving() as server:
        lines = (
            f"agent=llm\nagent_provider=vllm\nagent_base_url={server.address}\nagent_key=env:OWN_KEY\n"
            "agent_model="
        )
        person = Twice(f"{lines}tiny")
        found = await asyncio.to_thread(ask, person, "feishu", checks=True)
        assert (person.asked, found.table["api_key.env"]) == (2, "OWN_KEY")
        assert capsys.readouterr().out.count("fault    agent        vllm: there is no model tiny") == 2
        person = Twice(f"{lines}small")
        await asyncio.to_thread(ask, person, "feishu", checks=True)
    said = capsys.readouterr().out
    assert (person.asked, "vllm: the model small is there" in said) == (0, True)
    assert "s3cr3t" not in said + repr(found)


def test_what_is_wrong_on_this_machine_may_be_kept_too(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("NO_SUCH_KEY", raising=False)
    for lines in (
        "agent=acp\nagent_preset=other\nagent_command=no-such-program --acp",
        "agent=llm\nagent_key=env:NO_SUCH_KEY",
    ):
        person = Twice(lines)
        found = ask(person, "console", checks=True)
        assert (person.asked, bool(found.table)) == (2, True)
    said = capsys.readouterr().out
    assert said.count("no-such-program is not installed") == 2
    assert said.count("the environment has no NO_SUCH_KEY") == 2
    assert "turnbridge-init-" not in said  # a home that is gone by then
    assert ask(Given("agent=llm\nagent_provider=ollama"), "console", checks=False).table


def test_a_key_is_kept_where_the_agent_looks_for_it(tmp_path: Path) -> None:
    where = Home(tmp_path / "home")
    keep_key(where, ChosenAgent("echo"))
    assert not where.root.exists()
    keep_key(where, ChosenAgent("fast", key="sk-1"))
    assert '"sk-1"' in where.credentials("agents", "fast").read_text()


async def test_a_refused_key_is_the_only_thing_that_has_to_be_typed_once_more(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    async with ModelServer().serving() as server:
        good, server.models = server.models, Reply([b"{}"], status=401)
        address = f"{server.address}/v1"
        lines = iter(["llm", "compatible", address, "small", "sk-bad", *[""] * 5, "sk-1"])
        prompts: list[str] = []

        def typed(prompt: str) -> str:
            prompts.append(prompt)
            line = next(lines)
            server.models = good if line == "sk-1" else server.models
            return line

        monkeypatch.setattr("builtins.input", typed)
        monkeypatch.setattr("getpass.getpass", typed)
        found = await asyncio.to_thread(ask, Person(), "console", checks=True)
    assert (found.name, found.table["model"], found.key) == ("model", "small", "sk-1")
    assert [prompt.partition("[")[2] for prompt in prompts[6:]] == [
        "llm]: ", "compatible]: ", f"{address}]: ", "small]: ", "as it was typed]: ",
    ]  # fmt: skip
    said = capsys.readouterr().out
    assert "-> give another key; once all is saved, it is in credentials/agents/model.json" in said
