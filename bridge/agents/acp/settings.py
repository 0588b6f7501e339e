"""``[agents.<name>] type = "acp"``: which program, with which environment, and how long it may take."""

import re
from typing import Annotated, Literal

from pydantic import Field, field_validator, model_validator

from bridge.agents.contract import AgentSettings

PresetName = Literal["claude-code", "codex", "gemini", "opencode"]
_VARIABLE = re.compile(r"[A-Za-z_][A-Za-z0-9_]*(=.*)?", re.DOTALL)


class AcpSettings(AgentSettings):
    """Either ``preset`` or ``command``. ``env`` passes ``NAME`` on, or sets ``NAME=value``: never a secret.

    ``shared``: one process for all sessions of this profile; else each has its own.
    """

    preset: PresetName | Literal[""] = ""
    command: tuple[str, ...] = ()
    env: tuple[str, ...] = ()
    model: str = ""
    mode: str = ""
    shared: bool = False
    start_seconds: Annotated[float, Field(gt=0, le=600)] = 60.0  # npm's programs take seconds
    silent_seconds: Annotated[float, Field(gt=0, le=7200)] = 300.0  # a model may think for long
    cancel_seconds: Annotated[float, Field(gt=0, le=60)] = 5.0

    @model_validator(mode="after")
    def _one_program(self) -> "AcpSettings":
        if bool(self.preset) is bool(self.command):
            raise ValueError("set either preset or command, which names the program and its arguments")
        return self

    @field_validator("command")
    @classmethod
    def _words(cls, command: tuple[str, ...]) -> tuple[str, ...]:
        if any(not word or "\0" in word for word in command[:1]) or any("\0" in word for word in command):
            raise ValueError("the command begins with a program's name, and holds no NUL")
        return command

    @field_validator("env")
    @classmethod
    def _variables(cls, env: tuple[str, ...]) -> tuple[str, ...]:
        if any(not _VARIABLE.fullmatch(one) or "\0" in one for one in env):
            raise ValueError('each is "NAME", which is passed on, or "NAME=value"')
        return env
