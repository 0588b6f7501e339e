"""The agent ``llm``: a language model over HTTP, with tools. Its libraries are the extra ``llm``.

Nothing of them is imported before a profile of it is made.
"""

from __future__ import annotations

import os
from importlib.util import find_spec

from bridge.agents.contract import Agent, AgentPlace, AgentSpec
from bridge.agents.llm.key import find_key
from bridge.agents.llm.settings import LlmSettings
from bridge.errors import ConfigError

LACKING = "the agent llm needs libraries that are not installed: run pip install '.[llm]' in a clone"
LIBRARIES = ("anthropic", "mcp", "openai", "pydantic_ai")


def lacks() -> str:
    """LACKING where one of its libraries is not there."""
    return "" if all(map(find_spec, LIBRARIES)) else LACKING


def create(settings: LlmSettings, place: AgentPlace) -> Agent:
    """An agent for the profile ``place.name``.

    Raises:
        ConfigError: its key is missing, or its libraries.
    """
    key = find_key(settings, place, os.environ)
    try:
        from bridge.agents.llm.agent import Llm
    except ImportError as error:
        raise ConfigError(LACKING) from error
    return Llm(settings, place, key)


SPEC = AgentSpec(name="llm", settings=LlmSettings, create=create, lacks=lacks)
