"""A program that does not start, or not as an agent."""

import asyncio
from pathlib import Path

import pytest
from acp.schema import AgentCapabilities, CancelNotification, InitializeResponse, McpCapabilities
from structlog.testing import capture_logs

from bridge.agents.acp.launch import Launch
from bridge.agents.acp.peer import Peer, joined
from bridge.agents.acp.settings import AcpSettings
from bridge.agents.contract import AgentError
from tests.agents.acp.stage import stage
from tests.agents.acp.test_agent import failing


@pytest.mark.parametrize(
    ("fault", "said"),
    [
        ("exit", "it ended with exit code 3"),
        ("garbage", "it writes what is no Agent Client Protocol"),
        ("mute", "did not answer within 0.5 s"),
        ("no-session", "did not answer within 0.5 s"),
        ("no-id", "a session without an id"),
        ("refuse", "refused to start (-32603): no licence"),
        ("nonsense", "answers with what is no Agent Client Protocol"),
        ("version", "speaks another version of the protocol"),
    ],
)
async def test_a_program_that_is_no_good_fails_the_turn_and_is_ended(
    tmp_path: Path, fault: str, said: str
) -> None:
    async with stage(tmp_path, fault, start_seconds=0.5) as here:
        for _ in range(2):
            assert said in str(await failing(here, "hello"))
        assert not here.agent._peers._all or not any(one.alive for one in here.agent._peers._all)


@pytest.mark.parametrize("fault", ["banner", "flood"])
async def test_a_program_may_print_what_it_likes_beside_its_messages(tmp_path: Path, fault: str) -> None:
    async with stage(tmp_path, fault) as here:
        assert (await here.say("hello")).steps == ["hello "]


async def test_a_missing_program_is_said_with_the_way_to_install_it(tmp_path: Path) -> None:
    async with stage(tmp_path, command=["/nonexistent/agent"]) as here:
        error = await failing(here, "hello")
        assert (error.code, "is not installed" in str(error)) == ("setup_required", True)
    async with stage(tmp_path, command=[str(tmp_path)]) as here:
        assert "agents.coder] command" in str(await failing(here, "hello"))


async def test_an_end_by_itself_is_logged_once_and_one_that_was_asked_for_is_not() -> None:
    async with asyncio.TaskGroup() as tasks:
        with capture_logs() as logs:
            peer = Peer(Launch.of("x", AcpSettings(command=("true",))), Path("/"), 5)
            tasks.create_task(peer.run())
            with pytest.raises(AgentError):
                await peer.ready()
            await peer.gone.wait()
            with pytest.raises(AgentError, match="has ended"):
                await peer.request("x", {}, 1)
            peer.stop("again")
            sleeping = Peer(Launch.of("x", AcpSettings(command=("cat",))), Path("/"), 5)
            running = tasks.create_task(sleeping.run())
            sleeping.stop()
            await running
            with pytest.raises(AgentError, match="was stopped"):
                await sleeping.ready()
    assert [one["event"] for one in logs] == ["acp.ended"]


def test_servers_over_http_are_passed_on_where_the_program_takes_them() -> None:
    servers = [{"name": "a", "command": "x"}, {"type": "http", "name": "b"}]
    with_http = AgentCapabilities(mcp_capabilities=McpCapabilities(http=True))
    for capabilities, names in ((with_http, ["a", "b"]), (AgentCapabilities(), ["a"]), (None, ["a"])):
        about = InitializeResponse(protocol_version=1, agent_capabilities=capabilities)
        assert [one["name"] for one in joined(servers, about)] == names


async def test_what_it_asks_and_tells_finds_its_session_or_is_refused_or_dropped(tmp_path: Path) -> None:
    async with stage(tmp_path) as here:
        assert (await here.say("odd shell")).steps == ["once "]
        refused, invalid, cancelled, chosen = [
            one["answer"] for one in here.events() if str(one.get("to")).startswith(("fs/", "session/"))
        ]
        assert (refused["code"], invalid["code"]) == (-32601, -32602)
        assert cancelled == {"outcome": {"outcome": "cancelled"}}
        assert chosen == {"outcome": {"outcome": "selected", "optionId": "once"}}


async def test_one_that_is_stopped_is_told_nothing_more_and_says_why_it_was(tmp_path: Path) -> None:
    async with stage(tmp_path) as here:
        await here.say("hello")
        (peer,) = here.agent._peers._all
        assert not peer.is_busy
        told = CancelNotification(session_id="s")
        await peer.notify("session_cancel", told, 1)
        await here.until("session/cancel")
        with capture_logs() as logs:
            peer.stop("it hangs")
            await peer.notify("session_cancel", told, 1)
            await peer.gone.wait()
        assert [one["event"] for one in logs] == ["acp.stopped"]
        assert len(here.told("session/cancel")) == 1


async def test_one_that_does_not_read_is_not_waited_for(tmp_path: Path) -> None:
    command = ("sh", "-c", "sleep 100")
    peer = Peer(Launch.of("x", AcpSettings(command=command)), Path("/"), 5)
    async with asyncio.TaskGroup() as tasks:
        tasks.create_task(peer.run())
        while peer._connection is None:
            await asyncio.sleep(0.005)
        large = CancelNotification(session_id="s" * 1_000_000)
        await peer.notify("session_cancel", large, 0.05)
        peer.stop()
