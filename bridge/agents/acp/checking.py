"""What ``doctor`` finds out about a profile without spending: the program, its start, its sign-in."""

import asyncio
import tempfile
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path

from bridge.agents.acp.launch import Launch
from bridge.agents.acp.peer import Peer
from bridge.agents.acp.session import open_session
from bridge.agents.contract import AgentError, Finding
from bridge.logs import clean
from bridge.protocol.ours import SIGN_IN_REQUIRED

CHECK_SECONDS = 18.0
LAST_LINES, LINE_CHARACTERS = 2, 200


async def check(launch: Launch) -> Sequence[Finding]:
    """Start the program in an empty folder and begin a session, which sends nothing to a model."""
    if launch.program() is None:
        return [Finding(launch.missing, launch.install)]
    with tempfile.TemporaryDirectory(prefix="turnbridge-check-") as folder:
        async with asyncio.TaskGroup() as tasks:
            peer = Peer(launch, Path(folder), CHECK_SECONDS)
            tasks.create_task(peer.run())
            try:
                async with asyncio.timeout(CHECK_SECONDS):
                    return await _look(launch, peer, Path(folder))
            except TimeoutError:
                return [
                    Finding(f"{launch.title} does not answer within {CHECK_SECONDS:g} s", _start_it(launch))
                ]
            finally:
                peer.stop()


async def _look(launch: Launch, peer: Peer, folder: Path) -> list[Finding]:
    try:
        await peer.ready()
        version = f" {peer.about.agent_info.version}" if peer.about.agent_info else ""
        session = await open_session(peer, folder, (), CHECK_SECONDS)
    except AgentError as error:
        if error.code == SIGN_IN_REQUIRED:
            return [Finding(f"{launch.title} is not signed in", launch.sign_in)]
        await _heard(peer)
        return [Finding(f"{error}{_last_words(peer)}", _start_it(launch))]
    if launch.lacks_sign_in():
        return [Finding(f"{launch.title}{version} starts, but no sign-in of it was found", launch.sign_in)]
    models = len(session.options.of("model").names)
    return [
        Finding(f"{launch.title}{version} starts and begins sessions, with {models or 'no'} models to choose")
    ]


async def _heard(peer: Peer) -> None:
    """What it said last comes with its end."""
    peer.stop()
    with suppress(TimeoutError):
        async with asyncio.timeout(3):
            await peer.gone.wait()


def _last_words(peer: Peer) -> str:
    said = peer.stderr.decode(errors="replace").splitlines()
    lines = [clean(line).strip() for line in said if line.strip()]
    told = " / ".join("".join(c if c.isprintable() else " " for c in line) for line in lines[-LAST_LINES:])
    return f"; it said: {told[-LINE_CHARACTERS:]}" if told else ""


def _start_it(launch: Launch) -> str:
    return f"start {' '.join(launch.command)} yourself and see what it says"
