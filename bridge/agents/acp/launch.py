"""How a profile's program is started, and what a person has to do where it is missing or not signed in."""

import os
import re
import shutil
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path, PurePath

from bridge.agents.acp.settings import AcpSettings, PresetName
from bridge.logs import SHORTEST_BORNE, register_secret
from bridge.tools.processes import clean_environment

_SECRET = re.compile(r"KEY|TOKEN|SECRET|PASSW|CREDENTIAL", re.IGNORECASE)
_PASSED = ("XDG_CONFIG_HOME", "XDG_DATA_HOME", "XDG_STATE_HOME", "XDG_CACHE_HOME", "NODE_EXTRA_CA_CERTS")


@dataclass(frozen=True, slots=True)
class Preset:
    """``sign_in`` and ``install`` are commands; ``env`` is passed on, ``sets`` is set where it is not passed.

    ``signed_in`` are files below the user's home, one of which is there after a sign-in, for programs that
    tell only in the middle of a turn that they lack one.
    """

    title: str
    command: tuple[str, ...]
    sign_in: str
    install: str
    env: tuple[str, ...] = ()
    sets: Mapping[str, str] = field(default_factory=dict)
    signed_in: tuple[str, ...] = ()


_ASKS = '{"edit":"ask","bash":"ask","webfetch":"ask","external_directory":"ask"}'  # by itself it asks nobody

PRESETS: Mapping[PresetName, Preset] = {
    "claude-code": Preset(
        "Claude Code",
        ("claude-agent-acp",),
        "claude /login",
        "npm install -g @agentclientprotocol/claude-agent-acp",
        ("ANTHROPIC_API_KEY", "ANTHROPIC_AUTH_TOKEN", "ANTHROPIC_BASE_URL", "CLAUDE_CODE_OAUTH_TOKEN"),
        signed_in=(".claude/.credentials.json",),
    ),
    "codex": Preset(
        "Codex",
        ("codex-acp",),
        "codex login",
        "npm install -g @zed-industries/codex-acp",
        ("CODEX_API_KEY", "OPENAI_API_KEY", "OPENAI_BASE_URL", "CODEX_HOME"),
    ),
    "gemini": Preset(
        "Gemini CLI",
        ("gemini", "--acp"),
        "gemini",
        "npm install -g @google/gemini-cli",
        ("GEMINI_API_KEY", "GOOGLE_API_KEY", "GOOGLE_CLOUD_PROJECT", "GOOGLE_CLOUD_LOCATION"),
    ),
    "opencode": Preset(
        "OpenCode",
        ("opencode", "acp"),
        "opencode auth login",
        "npm install -g opencode-ai",
        ("OPENCODE_CONFIG", "OPENCODE_CONFIG_DIR", "OPENCODE_API_KEY", "OPENCODE_PERMISSION"),
        {"OPENCODE_PERMISSION": _ASKS},
    ),
}


@dataclass(frozen=True, slots=True)
class Launch:
    """``name`` is the profile's, ``title`` what people call the agent."""

    name: str
    title: str
    command: tuple[str, ...]
    env: tuple[str, ...]
    preset: Preset | None

    @classmethod
    def of(cls, name: str, settings: AcpSettings) -> "Launch":
        preset = PRESETS[settings.preset] if settings.preset else None
        command = preset.command if preset else settings.command
        title = preset.title if preset else PurePath(command[0]).name
        return cls(name, title, command, settings.env, preset)

    def environment(self) -> dict[str, str]:
        """What the program sees of ours: no secret but those that it is meant to have."""
        env = clean_environment()
        passed = [*_PASSED, *(self.preset.env if self.preset else ())]
        env |= {name: os.environ[name] for name in passed if name in os.environ}
        for one in self.env:
            name, equals, value = one.partition("=")
            if equals or name in os.environ:
                env[name] = value if equals else os.environ[name]
        for name, value in env.items():
            if _SECRET.search(name) and len(value) >= SHORTEST_BORNE:
                register_secret(value)  # programs quote it where it is refused
        return {**(self.preset.sets if self.preset else {}), **env}

    def program(self) -> str | None:
        """Where the program is; None where there is none."""
        return shutil.which(self.command[0], path=self.environment()["PATH"])

    @property
    def missing(self) -> str:
        """What is said where there is no program."""
        return f"{self.title} is not installed: there is no {self.command[0]} on the PATH; {self.install}"

    @property
    def install(self) -> str:
        """What a person does to install it."""
        if self.preset is None:
            return f"correct [agents.{self.name}] command"
        return f"install it: {self.preset.install}"

    @property
    def sign_in(self) -> str:
        """What a person does to sign in, as the rest of a sentence."""
        if self.preset is None:
            return "sign in with the program's own command, or name its key in env"
        keys = " or ".join(name for name in self.preset.env if name.endswith(("_KEY", "_TOKEN")))
        return f"run {self.preset.sign_in} there, or set {keys} for the daemon"

    @property
    def not_signed_in(self) -> str:
        return f"{self.title} is not signed in on the machine of this bot: {self.sign_in}"

    def lacks_sign_in(self) -> bool:
        """Whether there is no trace of a sign-in, where that can be known without asking the program."""
        if self.preset is None or not self.preset.signed_in:
            return False
        env = self.environment()
        home = Path(env.get("HOME") or "/")
        files = [home / one for one in self.preset.signed_in]
        return not any(name in env for name in self.preset.env) and not any(one.exists() for one in files)
