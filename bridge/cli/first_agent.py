"""Who answers: the questions of ``init`` about the agent, and its own check before anything is saved."""

from __future__ import annotations

import os
import re
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any

from bridge.cli.answers import one_of
from bridge.cli.common import visible
from bridge.errors import ConfigError

if TYPE_CHECKING:
    from collections.abc import Callable

    from bridge.cli.answers import Answers

LLM, ACP, ECHO, OTHER = "llm", "acp", "echo", "other"
NO_KEY = "none"
MODELS = {
    "openai": "gpt-5-mini",
    "anthropic": "claude-sonnet-5",
    "deepseek": "deepseek-chat",
    "qwen": "qwen-plus",
    "ollama": "qwen3:8b",
    "llamacpp": "default",
}
_VARIABLE = re.compile(r"env:([A-Za-z_][A-Za-z0-9_]*)")
WITH_TOOLS = "It works on this machine's files, so it answers you alone, the owner, in a direct chat."


@dataclass(frozen=True, slots=True)
class ChosenAgent:
    """``table`` is what ``[agents.<name>]`` gets, if anything; ``account`` what the account's table does.

    ``key`` is for the private file, "" where there is none or the environment has it.
    """

    name: str
    table: dict[str, Any] = field(default_factory=dict)
    key: str = field(default="", repr=False)
    account: dict[str, str] = field(default_factory=dict)


def ask(answers: Answers, channel: str, *, checks: bool) -> ChosenAgent:
    """Ask until it is well, or kept as it is.

    Raises:
        ConfigError: an answer is missing or wrong.
    """
    while True:
        chosen = _ask(answers, channel)
        if not chosen.table or not checks or _is_well(chosen):
            return chosen
        if not answers.once_more("Enter: answer this once more; keep: go on with it as it is: "):
            return chosen


def _ask(answers: Answers, channel: str) -> ChosenAgent:
    from bridge import registry

    names = registry.agents().names()
    usual = ECHO if ECHO in names else names[0]
    question = f"Which agent answers ({', '.join(names)})"
    kind = answers.to("agent", question, usual, _installed(names)) if len(names) > 1 else usual
    if kind == LLM:
        return _model(answers)
    return _program(answers, channel) if kind == ACP else ChosenAgent(kind)


def _installed(names: list[str]) -> Callable[[str], str]:
    """One of these, with all that it needs: nothing more is asked of one that could not answer."""
    from bridge import registry

    def check(text: str) -> str:
        name = one_of(names)(text)
        if lacking := registry.agents().load(name).lacks():
            raise ConfigError(lacking)
        return name

    return check


# --- a model --------------------------------------------------------------------------------------


def _model(answers: Answers) -> ChosenAgent:
    from bridge.agents.llm.settings import PRESETS

    listed = ", ".join(PRESETS)
    provider = answers.to("agent_provider", f"Whose model ({listed})", "openai", one_of([*PRESETS]))
    preset = PRESETS[provider]
    table = {"type": LLM, "provider": provider}
    if not preset.key_env:
        question = f"{provider}: its address"
        address = answers.to("agent_base_url", question, preset.base_url, _setting("base_url", table))
        table |= {"base_url": address} if address != preset.base_url else {}
    question = f"{provider}: the model's name there"
    table["model"] = answers.to("agent_model", question, MODELS.get(provider, ""), _setting("model", table))
    name = "model" if provider == "compatible" else provider
    key = answers.to(
        "agent_key",
        f"{provider}: the key, which is not shown, or env:NAME for a variable that the daemon has",
        _usual_key(preset.key_env),
        _key(is_required=bool(preset.key_env)),
        hidden=True,
    )
    if found := _VARIABLE.fullmatch(key):
        return ChosenAgent(name, {**table, "api_key.env": found[1]})
    return ChosenAgent(name, table, key)


def _setting(key: str, table: dict[str, str]) -> Callable[[str], str]:
    """Whether the model's table takes it."""

    def check(text: str) -> str:
        from pathlib import Path

        from bridge.agents.llm.settings import LlmSettings
        from bridge.tables import validate

        own = {name: value for name, value in {"model": "?", **table, key: text}.items() if name != "type"}
        validate(LlmSettings, own, Path("settings"), "agent")
        return text.rstrip("/") if key == "base_url" else text

    return check


def _usual_key(variable: str) -> str:
    """What is offered, where the provider's key is usually in ``variable``, "" for one that needs none."""
    if not variable:
        return NO_KEY
    return f"env:{variable}" if os.environ.get(variable) else ""


def _key(*, is_required: bool) -> Callable[[str], str]:
    def check(text: str) -> str:
        if not is_required and text == NO_KEY:
            return ""
        if not text:
            raise ConfigError("it needs a key: make one at the provider's console")
        if not text.isascii() or not text.isprintable() or " " in text:
            raise ConfigError("a key has no such characters: copy it again")
        return text

    return check


# --- a program ------------------------------------------------------------------------------------


def _program(answers: Answers, channel: str) -> ChosenAgent:
    import shlex

    from bridge.agents.acp.launch import PRESETS

    known = [*PRESETS, OTHER]
    preset = answers.to("agent_preset", f"Which one ({', '.join(known)})", known[0], one_of(known))
    name, table = preset, {"type": ACP, "preset": preset}
    if preset == OTHER:
        command = answers.to(
            "agent_command", "The command that starts it, such as my-agent --acp", "", _words
        )
        name, table = "program", {"type": ACP, "command": shlex.split(command)}
    if channel == "console":
        return ChosenAgent(name, table)
    others = _without_tools()
    question = f"{WITH_TOOLS} Who answers everybody else ({', '.join(others)})"
    guest = answers.to("agent_guests", question, ECHO if ECHO in others else "", one_of(others))
    account = {"remote_tools": "owner", "approvals": "ask", "guest_agent": guest}
    return ChosenAgent(name, table, account=account)


def _words(text: str) -> str:
    import shlex

    try:
        if shlex.split(text):
            return text
    except ValueError:
        pass
    raise ConfigError("a command is a program's name and its arguments")


def _without_tools() -> list[str]:
    """The agents that may answer anybody, without settings of their own."""
    from bridge import registry

    agents = registry.agents()
    return [name for name in agents.names() if name != LLM and not agents.load(name).own_tools]


# --- whether it is well ---------------------------------------------------------------------------


def _is_well(chosen: ChosenAgent) -> bool:
    """Tell what the agent says of itself, asked from an empty home, so that nothing is left of it.

    What to type there for it to be asked again is not told.
    """
    import asyncio
    import tempfile
    from pathlib import Path

    from bridge.cli.agent_checks import checked
    from bridge.cli.findings import Level, lines
    from bridge.paths import Home

    with tempfile.TemporaryDirectory(prefix="turnbridge-init-") as folder:
        where = Home(Path(folder))
        keep_key(where, chosen)
        found = asyncio.run(checked(_profile(where, chosen), where))
        file = f"credentials/agents/{chosen.name}.json"
        found = [replace(each, cure=_cure(each.cure, file, where.root.name)) for each in found]
    faults = [each for each in found if each.level is Level.FAULT]
    for line in [*lines(faults)][:-1] if faults else [*lines(found)][:-1]:
        print(visible(line))
    return not faults


def _cure(text: str, file: str, passing: str) -> str:
    """What can be done while nothing is saved: no key's ``file`` yet, and a ``passing`` home."""
    if file in text:
        return f"give another key; once all is saved, it is in {file}"
    return "" if passing in text else text


def _profile(where: Any, chosen: ChosenAgent) -> Any:
    from bridge.cli.agent_checks import profiles_of
    from bridge.config import Config

    own = {key: value for key, value in chosen.table.items() if key != "api_key.env"}
    if "api_key.env" in chosen.table:
        own["api_key"] = {"env": chosen.table["api_key.env"]}
    return profiles_of(Config(agents={chosen.name: own}), where).read(chosen.name)


def keep_key(where: Any, chosen: ChosenAgent) -> None:
    """Save the key, for its owner alone, where the agent looks for it.

    Raises:
        ConfigError: it cannot be written.
    """
    from bridge.credentials import save_texts
    from bridge.logs import register_secret

    if chosen.key:
        register_secret(chosen.key)
        save_texts(where, "agents", chosen.name, {"api_key": chosen.key})
