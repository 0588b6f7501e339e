"""Whether what a model reads at once has room for messages beside its instructions and tools."""

from __future__ import annotations

from typing import TYPE_CHECKING

from bridge.cli.agent_checks import CHECK
from bridge.cli.findings import warning
from bridge.errors import BridgeError

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from bridge.accounts import AccountSetup
    from bridge.agents.contract import Bounded
    from bridge.cli.findings import Finding
    from bridge.config import Config
    from bridge.paths import Home
    from bridge.profiles import Profile, Profiles
    from bridge.tools.contract import Tool

LEAST_TOKENS = 1024  # with less, a question and a glance at a file do not fit
CURE = "give it more: context_tokens of [agents.{name}], or sessions.context_max_tokens; "
SHORTER = "or make its instructions shorter"
FEWER = "or fewer tools: tools.disabled"


async def narrow(
    profiles: Profiles, names: Sequence[str], where: Home, config: Config, accounts: Sequence[AccountSetup]
) -> list[Finding]:
    """A warning for each profile that has too little: for any message, or with tools for those of an owner.

    Only who owns one of ``accounts``, with tools, and is answered by the profile, counts for the latter. A
    profile that cannot be used is left out: it is told of elsewhere. The servers' tools are not counted.
    """
    found: list[Finding] = []
    for name in names:
        try:
            profile = profiles.read(name)
            agent = _bounded(profile, where)
            with_tools = _tools(where, config) if _is_owners(name, profiles, accounts) else {}
        except BridgeError:
            continue
        if agent is not None:
            found += await _judged(name, agent, with_tools, where, config)
    return found


def _bounded(profile: Profile, where: Home) -> Bounded | None:
    from bridge.agents.contract import AgentPlace, Bounded
    from bridge.clock import SystemClock

    agent = profile.spec.create(profile.settings, AgentPlace(profile.name, where, SystemClock()))
    return agent if isinstance(agent, Bounded) else None


def _is_owners(name: str, profiles: Profiles, accounts: Sequence[AccountSetup]) -> bool:
    from bridge.channel import RemoteTools

    theirs = [one.settings for one in accounts if one.settings.remote_tools is RemoteTools.OWNER]
    return any((one.agent or profiles.default) == name for one in theirs)


def _tools(where: Home, config: Config) -> Mapping[str, Tool]:
    from bridge.clock import SystemClock
    from bridge.tools.choose import ANY_CHANNEL, others_of, tools_for

    clock = SystemClock()
    others = others_of(where, clock, config.tools).tools
    return tools_for(where, clock, False, ANY_CHANNEL, table=config.tools, others=others)


async def _judged(
    name: str, agent: Bounded, with_tools: Mapping[str, Tool], where: Home, config: Config
) -> list[Finding]:
    cure = CURE.format(name=name)
    if (left := await _left(agent, {}, where, config)) < LEAST_TOKENS:
        return [warning(CHECK, f"{name}: its instructions leave {_shown(left)} for messages", cure + SHORTER)]
    if (left := await _left(agent, with_tools, where, config)) < LEAST_TOKENS:
        text = f"{name}: instructions and tools leave {_shown(left)} for the messages of an owner with tools"
        return [warning(CHECK, text, cure + FEWER)]
    return []


async def _left(agent: Bounded, tools: Mapping[str, Tool], where: Home, config: Config) -> int:
    """The tokens that a session has for its messages."""
    from bridge.agents.contract import Turn
    from bridge.sessions.budget import budget
    from bridge.tools.choose import ANY_CHANNEL
    from bridge.tools.mcp.servers import workspace_of

    turn = Turn("", "", (), tools, workspace_of(where, config), ANY_CHANNEL)
    system, room_tokens = await agent.bounds(turn)
    return budget(config.sessions.context_max_tokens, system, tools.values(), room_tokens)


def _shown(left: int) -> str:
    return f"{left} tokens" if left > 0 else "nothing"
