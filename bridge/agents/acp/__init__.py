"""Any Agent Client Protocol process as an agent: Claude Code, Codex, Gemini CLI, OpenCode, or one's own.

Protocol: https://agentclientprotocol.com/protocol/overview (read 2026-11-30). Needs the extra ``acp``.
"""

from importlib.util import find_spec

from bridge.agents.acp.settings import AcpSettings
from bridge.agents.contract import Agent, AgentPlace, AgentSpec
from bridge.errors import ConfigError

LACKING = "the agent acp needs a library that is not installed: run pip install '.[acp]' in a clone"


def lacks() -> str:
    """LACKING where its library is not there."""
    return "" if find_spec("acp") else LACKING


def create(settings: AcpSettings, place: AgentPlace) -> Agent:
    """Raises ConfigError: the extra is not installed."""
    try:
        from bridge.agents.acp.agent import Acp
    except ModuleNotFoundError as error:
        if error.name is None or error.name.split(".")[0] != "acp":
            raise
        raise ConfigError(
            f"[agents.{place.name}] needs a library that is not installed: pip install '.[acp]' in a clone"
        ) from error
    return Acp(settings, place)


SPEC = AgentSpec(name="acp", settings=AcpSettings, create=create, own_tools=True, lacks=lacks)
