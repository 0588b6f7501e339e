"""What agents find out about themselves, without spending: for ``agents check``, ``doctor`` and ``init``."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

from bridge.cli.common import typed
from bridge.cli.findings import fault, good, warning
from bridge.errors import BridgeError, ConfigError

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from bridge.accounts import AccountSetup
    from bridge.agents.contract import Diagnoses
    from bridge.agents.contract import Finding as AgentFinding
    from bridge.cli.findings import Finding
    from bridge.config import Config
    from bridge.paths import Home
    from bridge.profiles import Profile, Profiles

CHECK = "agent"
CHECK_SECONDS = 25.0  # an agent's own check takes 20 at the most
AT_ONCE = 4  # each may start a program
OF_THE_ENVIRONMENT = ("the environment has no ", "set the variable ")


def profiles_of(config: Config, where: Home) -> Profiles:
    from bridge import registry
    from bridge.profiles import Profiles

    return Profiles(config, where, registry.agents())


def named(profiles: Profiles, accounts: Sequence[AccountSetup]) -> list[str]:
    """The profiles that answer somebody: the default, and those that an account names."""
    theirs = {name for one in accounts for name in (one.settings.agent, one.settings.guest_agent) if name}
    return [profiles.default, *sorted(theirs - {profiles.default})]


async def examined(profiles: Profiles, names: Sequence[str], where: Home, *, runs: bool) -> list[Finding]:
    """The findings of each, in order. ``runs``: there is a daemon, whose environment may be another.

    A profile that cannot be read is left out: it is told of with the settings.
    """
    turn = asyncio.Semaphore(AT_ONCE)
    async with asyncio.TaskGroup() as tasks:
        asking = [tasks.create_task(_in_turn(turn, profile, where)) for profile in _read(profiles, names)]
    found = [each for task in asking for each in task.result()]
    return [elsewhere(each) for each in found] if runs else found


def _read(profiles: Profiles, names: Sequence[str]) -> Iterator[Profile]:
    for name in names:
        try:
            yield profiles.read(name)
        except ConfigError:
            continue


async def _in_turn(turn: asyncio.Semaphore, profile: Profile, where: Home) -> list[Finding]:
    async with turn:
        return await checked(profile, where)


async def checked(profile: Profile, where: Home) -> list[Finding]:
    """Whether the profile can be made, and what its agent says of key, endpoint, model, program, sign-in."""
    from bridge.agents.contract import AgentPlace, Diagnoses
    from bridge.clock import SystemClock
    from bridge.sessions.agents import asked

    name, place = profile.name, AgentPlace(profile.name, where, SystemClock())
    try:
        agent = await asyncio.to_thread(profile.spec.create, profile.settings, place)
        if not isinstance(agent, Diagnoses):
            return [good(CHECK, f"{name}: {profile.spec.name} is there")]
        found = await asked(_diagnosed(agent), f"agent {name}/diagnose", CHECK_SECONDS)
    except BridgeError as error:
        again = typed(where, f"agents check {name}")
        text = str(error) if f"[agents.{name}]" in str(error) else f"{name}: {error}"
        return [fault(CHECK, text, f"do what it says, then see: {again}")]
    return [(fault if each.cure else _good)(CHECK, f"{name}: {each.text}", each.cure) for each in found]


async def _diagnosed(agent: Diagnoses) -> Sequence[AgentFinding]:
    """What it says while whatever it runs is there, which is ended again."""
    from contextlib import nullcontext

    from bridge.agents.contract import Runs

    async with agent.running() if isinstance(agent, Runs) else nullcontext():
        return await agent.diagnose()


def _good(check: str, text: str, _: str) -> Finding:
    return good(check, text)


def elsewhere(found: Finding) -> Finding:
    """A variable that this shell lacks may be there for the daemon."""
    if any(words in found.text for words in OF_THE_ENVIRONMENT):
        return warning(found.check, found.text, "unless the daemon has it; then set it in this shell, too")
    return found


def voice(where: Home, config: Config) -> Iterator[Finding]:
    """Whether voice can be transcribed: the key is there, and what decodes the voice of some platforms."""
    import os
    from importlib.util import find_spec

    from bridge.media.voice import find_key

    if not config.voice.base_url:
        return
    try:
        find_key(config.voice, where, os.environ)
    except BridgeError as error:
        yield fault("voice", str(error), "do what it says")
    else:
        yield good("voice", f"transcribed at {config.voice.base_url}")
    if not (find_spec("av") and find_spec("pysilk")):
        cure = "pip install '.[voice]' in a clone"
        yield warning("voice", "voice in SILK and AMR, as WeChat has it, is not transcribed", cure)


def skills(where: Home, config: Config) -> Iterator[Finding]:
    """Each package of instructions that does not count."""
    from bridge.tools.mcp.servers import workspace_of
    from bridge.tools.skills import find

    for each in find(where, workspace_of(where, config)).faults:
        cure = f"mend or remove it; see what counts: {typed(where, 'skills')}"
        yield warning("skills", f"{each.path}: {each.reason}", cure)
